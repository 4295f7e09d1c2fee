"""Product "table" for adjusted cells: sensitive cells are protected and the table remains additive."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from microguard.pipelines.guarantees.original_cells import OriginalCells
from microguard.pipelines.guarantees.tables import TableGuarantee
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.pipelines.job import Job
from microguard.pipelines.measures.measure import Measured
from microguard.pipelines.measures.registry import measures_of
from microguard.pipelines.tables.adjusted import (
    ProtectCells,
    protect_beside_earlier_releases,
    refusal,
    whole_adjustment,
)
from microguard.pipelines.tables.cells.cell_list import write_cells
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.disclosure_audit import intervals_of
from microguard.pipelines.tables.files import published
from microguard.pipelines.tables.groupings import CodeGroups
from microguard.pipelines.tables.infeasible_lines import named
from microguard.pipelines.tables.measures import TableComparison
from microguard.pipelines.tables.problem import TableProblem, few_with_nothing, table_problem
from microguard.pipelines.tables.published_before import (
    PublishedValues,
    StandingValueFails,
    new_cells,
    standing_cells,
)
from microguard.pipelines.tables.published_cells import write_published_cells
from microguard.pipelines.tables.table_product import NO_TABLE, ProtectedTable, TableProduct
from microguard.schemas.errors import GateRefused, InputRejected, ProtectionFailed
from microguard.schemas.requirements.requirement import Requirement
from microguard.schemas.requirements.tables import table_requirements
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table import Table
from microguard.sdc.cta import Adjustment
from microguard.sdc.cta.disclosure_audit import Intervals
from microguard.sdc.cta.program.infeasible import NoSolutionFound
from microguard.sdc.cta.rules.tighten_bounds import tighten_bounds
from microguard.sdc.errors import ImpossibleProtection, SdcError

#: Maximum product of sensitive cells and cells for which "auto" examines all sensitive cells; each needs two
#: linear programs over the table.
_EXAMINED_WORK = 2_000_000
_MOST_EXAMINED, _FEWEST_EXAMINED = 400, 10
#: Maximum number of times that a table is adjusted and examined as long as a direction is disclosed.
_ATTEMPTS = 6


class Tables(TableProduct[TableComparison]):
    """Adjusted tables; every total remains the sum of its parts."""

    measures = measures_of("table", ("table", "attacker", "fit", "changes", "metrics", "adjustment"))

    def __init__(
        self, specification: Specification, guarantee: TableGuarantee, protect_cells: ProtectCells
    ) -> None:
        super().__init__(specification, guarantee)
        self.protect_cells = protect_cells

    def protect_counted(
        self, job: Job, screened: ValidatedInput, release_id: str
    ) -> ProtectedTable[TableComparison]:
        """Tabulate, adjust, and compute the remaining disclosure.

        Raises
        ------
        InputRejected, ProtectionFailed
        """
        folder = job.areas.record(release_id)
        with job.progress.stage("tabulate"):
            cells = self._tabulated(job, screened, release_id)
            write_cells(folder, cells, self.table)
        with job.progress.stage("adjust"):
            standing = self._standing(job, cells, screened)
            problem = _problem(cells, self.specification, job.areas.key(), standing)
            # written first, because refusals refer to the numbers in this list
            write_cells(folder, cells, self.table, problem)
            try:
                problem, adjustment = protect_beside_earlier_releases(
                    self.protect_cells, problem, self.specification, self.table, job.areas.key()
                )
            except ProtectionFailed as error:
                raise named(error, cells, problem, self.table) from error
        with job.progress.stage("attack"):
            comparison = self._attacked(cells, problem, adjustment, job.areas.key())
        units = comparison.adjustment.values[comparison.problem.variables]
        return ProtectedTable(
            comparison,
            published(cells.codes, units, self.table, few_with_nothing(cells, self.specification)),
            standing,
            {**self._origin, "release_id": release_id},
        )

    def _attacked(
        self, cells: Cells, problem: TableProblem, adjustment: Adjustment, key: bytes
    ) -> TableComparison:
        """Examine the table; as long as a cell's direction is disclosed, adjust again with tighter bounds."""
        for attempt in range(_ATTEMPTS):
            intervals = self._intervals(problem, adjustment, key)
            shown = intervals.cells[intervals.determined]
            if not len(shown) or attempt == _ATTEMPTS - 1:
                break
            narrower = tighten_bounds(problem.secret, adjustment.deviations, shown)
            if narrower is None:
                break
            try:
                adjustment = whole_adjustment(narrower, self.specification, self.table)
            except ProtectionFailed:
                break  # the gate judges the final table
            problem = replace(problem, secret=narrower)
        return TableComparison(self.table, cells, problem, adjustment, intervals)

    def original(self, protected: ProtectedTable[TableComparison]) -> tuple[OriginalCells, CodeGroups]:
        """Return the cells before protection, and the codes of further hierarchies over a column."""
        comparison = protected.comparison
        groupings = {(each.finer, each.coarser): each.codes for each in comparison.cells.groupings}
        return original_cells(comparison.cells, comparison.problem, self.table), groupings

    def requirements(self, measured: Measured) -> Iterable[Requirement]:
        """Return the requirements on the written files, and the limits of `[table.quality]`."""
        return table_requirements(self.table, bool(measured.sections["attacker"]["examined"]))

    def write_annex(self, folder: Path, protected: ProtectedTable[TableComparison]) -> None:
        """Write each cell before and after protection, its interval, and whether it is published for the
        first time.
        """
        comparison = protected.comparison
        values = comparison.adjustment.values[comparison.problem.variables]
        fresh = new_cells(comparison.cells, self.table, values, protected.standing, protected.origin)
        write_published_cells(folder, fresh)
        write_cells(
            folder,
            comparison.cells,
            self.table,
            comparison.problem,
            comparison.adjustment,
            comparison.intervals,
        )

    def _standing(self, job: Job, cells: Cells, screened: ValidatedInput) -> PublishedValues:
        """Return the cells of this table that were published before, under any name, seed or version."""
        before = self._before(self._every_cell(job), cells)
        if self.specification.publish.successive != "accept":
            self._refuse_related_columns(screened, cells, before)
        try:
            return standing_cells(cells, self.table, before)
        except StandingValueFails as error:
            raise contradicts(error) from error

    def _intervals(self, problem: TableProblem, adjustment: Adjustment, key: bytes) -> Intervals:
        drawn = hmac.new(key, b"cells to check", hashlib.sha256).digest()
        return intervals_of(
            problem,
            adjustment,
            self.table,
            most_cells=examined_at_most(self.table, problem.known.cells),
            seed=int.from_bytes(drawn[:8], "big"),
        )


def _problem(
    cells: Cells, specification: Specification, key: bytes, standing: PublishedValues
) -> TableProblem:
    try:
        return table_problem(cells, specification, key, standing)
    except StandingValueFails as error:
        raise contradicts(error) from error
    except (ImpossibleProtection, NoSolutionFound) as error:
        raise refusal(error) from error
    except SdcError as error:
        raise InputRejected(NO_TABLE.format(error=error)) from error


def examined_at_most(table: Table, cells: int) -> int:
    """Return the maximum number of sensitive cells that are examined in a table of this size."""
    asked = table.quality.examined
    affordable = min(_MOST_EXAMINED, max(_FEWEST_EXAMINED, _EXAMINED_WORK // cells))
    return affordable if asked == "auto" else int(asked)


def contradicts(error: StandingValueFails) -> GateRefused:
    """Return the refusal of a table that would contradict a published one."""
    return GateRefused(
        f"A table of this source was published before, and this table would contradict it: {error}. Nothing "
        "was published."
    )


def original_cells(cells: Cells, problem: TableProblem, table: Table) -> OriginalCells:
    """Return the cells before protection, with the levels of the rule and the limits of the method."""
    rule = problem.by_rule
    return OriginalCells(
        codes=cells.codes,
        units=cells.units,
        lower=rule.lower_protection,
        upper=rule.upper_protection,
        sensitive=rule.sensitive,
        fall=problem.secret.lower_capacity[problem.variables],
        rise=problem.secret.upper_capacity[problem.variables],
        digits=table.digits,
        zeros_absent=table.counts,
        base=table.base if table.method == "rounding" else None,
        relaxed=() if problem.relaxation is None else tuple(problem.relaxation.cells),
    )
