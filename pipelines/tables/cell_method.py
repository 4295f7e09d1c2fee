"""Tables of a method that decides for each cell whether to publish the true value, another value, or no
value.

The module has the base class of third-party methods. It tabulates, applies the disclosure rules, writes the
files and stores the list of cells; a method decides the published value of each cell. A cell without a value
is suppressed: it is published as NULL with the status ``suppressed``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from microguard.pipelines.guarantees.original_cells import OriginalCells
from microguard.pipelines.guarantees.suppressed_table import (
    COUNTED,
    FOR_READERS,
    NOT_COUNTED,
    SuppressedTable,
)
from microguard.pipelines.guarantees.tables import TableGuarantee
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.pipelines.job import Job
from microguard.pipelines.measures.measure import Measured
from microguard.pipelines.measures.registry import measures_of
from microguard.pipelines.method import TableMethod
from microguard.pipelines.tables.cells.cell_list import write_cells
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.chunks_in_tasks import mapper_of
from microguard.pipelines.tables.files import published
from microguard.pipelines.tables.groupings import CodeGroups
from microguard.pipelines.tables.problem import few_with_nothing, rule_table
from microguard.pipelines.tables.published_before import (
    CHANGED,
    TRUE,
    PublishedValues,
    StandingValueFails,
    new_cells,
    standing_cells,
)
from microguard.pipelines.tables.published_cells import write_published_cells
from microguard.pipelines.tables.suppression.earlier_tables import Joined, joined
from microguard.pipelines.tables.suppression.kept_tables import EarlierTable, tables_before, write_suppressed
from microguard.pipelines.tables.suppression.problem import original_cells, suppression_problem
from microguard.pipelines.tables.suppression.revised_cells import with_estimates
from microguard.pipelines.tables.table_product import NO_TABLE, ProtectedTable, TableProduct
from microguard.schemas.errors import GateRefused, InputRejected, ProtectionFailed
from microguard.schemas.requirements.requirement import Requirement
from microguard.schemas.requirements.tables import suppression_limits, table_integrity
from microguard.schemas.specification.table import Table
from microguard.sdc.cta import CellTable
from microguard.sdc.errors import ImpossibleProtection, SdcError, SolverFailed
from microguard.sdc.suppression import Audit, Mapper, Suppression, SuppressionProblem, audit, in_turn


@dataclass(frozen=True)
class CellProblem:
    """Input of a method: cells, specification and key.

    Attributes
    ----------
    table : CellTable
        Values in units of the last published digit, sensitive cells with their protection levels, and
        ``relations`` (lines, cells): the cells of every line, with their signs, add up to 0.
    suppression : SuppressionProblem or None
        For a method that promises a suppressed table: the same cells with contributors, the cells that must
        be published or suppressed, and the prior knowledge of attackers.
    mapper : Mapper
        Calls a function with each of some chunks of cells, in Spark tasks if there are several.
    estimates : (cells,) bool array, optional
        Cells that must stay suppressed because they estimate suppressed amounts of other records or periods.
    """

    table: CellTable
    suppression: SuppressionProblem | None = None
    mapper: Mapper = in_turn
    estimates: np.ndarray | None = None


@dataclass(frozen=True)
class CellComparison:
    """Original cells, results of the rules, and published values in units (NaN: suppressed)."""

    table: Table
    cells: Cells
    by_rule: CellTable
    values: np.ndarray
    joined: Joined | None = None
    proof: Suppression | None = None
    audit: Audit | None = None

    @property
    def problem(self) -> SuppressionProblem | None:
        """Return the suppression problem of this table, followed by the cells of earlier tables."""
        return None if self.joined is None else self.joined.problem

    @cached_property
    def sections(self) -> dict[str, Any]:
        """Return all measures by section."""
        from microguard.pipelines.tables.suppression.measures import measured

        return measured(self)


class CellMethod(TableMethod):
    """Method that decides about each cell."""

    @abstractmethod
    def protect(self, problem: CellProblem, key: bytes) -> np.ndarray | Suppression:
        """Protect the cells of all tables together.

        Parameters
        ----------
        problem : CellProblem
        key : bytes
            The secret of the agency, for draws that nobody else can repeat.

        Returns
        -------
        (cells,) float array, or Suppression
            Whole units, where NaN suppresses a cell; or the cells to suppress, with the proved bounds.
        """

    def product(self) -> CellTables:
        """Return the product that publishes the decisions of the method."""
        return CellTables(self)


class CellTables(TableProduct[CellComparison]):
    """Tables of one specification that are protected cell by cell."""

    def __init__(self, method: CellMethod) -> None:
        super().__init__(method.specification, method.guarantee())
        self.method = method
        self._promise(self.guarantee)
        self.suppression = isinstance(self.guarantee, SuppressedTable)
        self.measures = measures_of(
            "table", ("table", "suppression", "intervals") if self.suppression else ()
        )

    def _promise(self, guarantee: TableGuarantee) -> None:
        self.guarantee, self.guarantees = guarantee, (guarantee,)
        self.limits = (*guarantee.limits, *self.method.limits)

    def protect_counted(
        self, job: Job, screened: ValidatedInput, release_id: str
    ) -> ProtectedTable[CellComparison]:
        """Tabulate, apply the rules, call the method, and compute the remaining disclosure.

        Raises
        ------
        InputRejected, GateRefused, ProtectionFailed
        """
        key, folder = job.areas.key(), job.areas.record(release_id)
        with job.progress.stage("tabulate"):
            cells = self._tabulated(job, screened, release_id)
            # written first, because refusals refer to the numbers in this list
            write_cells(folder, cells, self.table)
            try:
                by_rule = rule_table(cells, self.specification)
            except SdcError as error:
                raise InputRejected(NO_TABLE.format(error=error)) from error
        standing = self._standing(job, cells, screened)
        mapper = mapper_of(job.spark)
        with job.progress.stage("adjust"):
            whole = self._joined(job, cells, by_rule, standing) if self.suppression else None
            given = CellProblem(by_rule, None if whole is None else whole.problem, mapper, standing.estimates)
            decided = self._decided(given, key, standing)
            if whole is not None and isinstance(self.guarantee, SuppressedTable):
                self._promise(replace(self.guarantee, combinations=self._of_combinations(whole)))
            if whole is not None and whole.with_combinations is not None:
                whole = whole.with_combinations
                again = self._audited_again(decided, whole, len(cells), mapper)
                given = replace(given, suppression=whole.problem)
                decided = again or self._decided(given, key, standing)
        proof = None if isinstance(decided, np.ndarray) else decided
        hidden = proof is not None and proof.suppressed[: len(cells)]
        values = decided if isinstance(decided, np.ndarray) else np.where(hidden, np.nan, cells.units)
        values = np.asarray(values, float)
        if values.shape != (len(cells),) or not (np.isnan(values) | (values == np.rint(values))).all():
            raise ProtectionFailed(
                f"The method {self.table.method} returned values of the shape {values.shape}, expected "
                f"({len(cells)},), each a whole number of units or NaN. Nothing was published. This is a "
                "fault of the method."
            )
        with job.progress.stage("attack"):
            audited = self._audited(whole, proof, values, mapper)
        comparison = CellComparison(self.table, cells, by_rule, values, whole, proof, audited)
        contents = published(
            cells.codes, values, self.table, few_with_nothing(cells, self.specification), self.suppression
        )
        origin = {**self._origin, "release_id": release_id}
        return ProtectedTable(comparison, contents, standing, origin)

    def _standing(self, job: Job, cells: Cells, screened: ValidatedInput) -> PublishedValues:
        """Return the cells of this table that were published before; refuse them if another method published
        them.
        """
        every = self._every_cell(job)
        before = self._before(every, cells)
        if not self.suppression and before and self.specification.publish.successive != "accept":
            raise GateRefused(
                "Cells of this source were published before in another table, and this method cannot "
                "publish them with the earlier values. Nothing was published. Withdraw that table, or set "
                'publish.successive to "accept" if a steward has decided that both tables may be compared.'
            )
        if self.specification.publish.successive != "accept":
            self._refuse_related_columns(screened, cells, before)
        try:
            standing = standing_cells(cells, self.table, before if self.suppression else [])
        except StandingValueFails as error:
            raise GateRefused(
                f"A table of this source was published before, and this table would contradict it: {error}. "
                "Nothing was published."
            ) from error
        if not self.suppression or self.specification.publish.successive == "accept":
            return standing
        return with_estimates(standing, cells, self.table, every, before, self._origin)

    def _joined(self, job: Job, cells: Cells, by_rule: CellTable, standing: PublishedValues) -> Joined:
        assert standing.suppressed is not None
        keep = standing.published & ~standing.suppressed
        for culprits, what in (
            (
                keep & by_rule.sensitive,
                "that are sensitive by the rule were published before with their values",
            ),
            (
                keep & (standing.units != cells.units),
                f"were published before with other values{self._rounded_parts(cells, standing, keep)}",
            ),
        ):
            if culprits.any() and self.specification.publish.successive != "accept":
                raise GateRefused(
                    f"{int(culprits.sum())} cell(s) {what}, by {', '.join(standing.releases[:3])}, for "
                    f"example cell {int(np.argmax(culprits))} of cells.parquet in the evidence: a published "
                    "cell can no longer be suppressed or changed. Nothing was published. Publish the table "
                    "without these cells, by the earlier rule, or (if the source was revised) for another "
                    "period."
                )
        keep &= ~by_rule.sensitive
        problem = suppression_problem(cells, self.specification, by_rule, keep, standing.suppressed)
        before = tables_before(job.areas, standing.every)
        self._refuse_fewer_attackers(before)
        try:
            return joined(problem, cells, self.table, before, standing.elsewhere)
        except SdcError as error:
            raise GateRefused(
                "This table does not agree with tables of the same records that were published before, by "
                f"{', '.join(standing.every[:3])}: expected the earlier values and rules of suppressed "
                f"cells, found that {error}. Nothing was published. Publish it by the earlier rules, or (if "
                "the source was revised) for another period."
            ) from error

    def _rounded_parts(self, cells: Cells, standing: PublishedValues, keep: np.ndarray) -> str:
        """Return text that names the rounding of parts as the cause of differing values, if it explains all
        of them.

        Every total of a finished table is the sum of its parts, each rounded to `table.decimals`. The parts
        of a cell differ between tables, and a cell has at most as many parts as contributors.
        """
        differences = np.abs(standing.units - cells.units)[keep]
        parts = np.full(len(cells), len(cells)) if cells.contributors is None else cells.contributors
        if self.table.source != "cells" or np.any(differences > (parts[keep] + 1) / 2):
            return ""
        return (
            ", which can be explained by the rounding of their parts to table.decimals = "
            f"{self.table.digits} (totals are summed from the rounded cells, and the earlier table has "
            "other cells; publish both tables with all digits of the file)"
        )

    def _refuse_fewer_attackers(self, before: Iterable[EarlierTable]) -> None:
        """Refuse a table with fewer kinds of attackers than an earlier table of the same records."""
        for earlier in before:
            missing = set(earlier.attackers) - set(self._attackers)
            if missing and self.specification.publish.successive != "accept":
                raise GateRefused(
                    f"The table {earlier.release_id} of the same records is protected against more "
                    f"attackers: expected {', '.join(sorted(missing))} in table.attackers, and contributors "
                    "or their numbers in the input, because sums in this table also narrow the earlier "
                    "intervals. Nothing was published. Add these attackers, or set publish.successive to "
                    '"accept" if a steward has decided that the two tables may be compared.'
                )

    def _decided(
        self, problem: CellProblem, key: bytes, standing: PublishedValues
    ) -> np.ndarray | Suppression:
        try:
            return self.method.protect(problem, key)
        except ImpossibleProtection as error:
            earlier = (
                f" Its cells must remain published or suppressed as in {', '.join(standing.releases[:3])}. "
                "If the table can be protected without this condition, publish both tables together "
                "(table.tables), or leave out a dimension that both have."
                if standing.releases
                else ""
            )
            raise ProtectionFailed(
                f"The table cannot be protected: {error}. Cells are numbered as in cells.parquet of the "
                f"evidence.{earlier} Nothing was published."
            ) from error
        except SolverFailed as error:
            raise ProtectionFailed(
                f"No pattern that protects the table was found: {error}. Nothing was published. Choose "
                "another table.effort, or use fewer or coarser tables."
            ) from error

    def _of_combinations(self, whole: Joined) -> str:
        """Return what is counted of the cells of combinations that no table has."""
        if not whole.counts_all:
            return NOT_COUNTED
        alone = whole.with_combinations is None or set(self._attackers) == {"outsider"}
        return COUNTED if alone else FOR_READERS

    def _audited_again(
        self, decided: np.ndarray | Suppression, whole: Joined, own: int, mapper: Mapper
    ) -> Suppression | None:
        """Return a pattern with its audit if it also protects from attackers who use combinations."""
        if isinstance(decided, np.ndarray):
            return None
        hidden = whole.suppressed(decided.suppressed[:own])
        found = audit(whole.problem, hidden, attackers=self._attackers, mapper=mapper)
        return replace(decided, suppressed=hidden, audit=found) if found.protected else None

    def _audited(
        self, whole: Joined | None, proof: Suppression | None, values: np.ndarray, mapper: Mapper
    ) -> Audit | None:
        if whole is None or proof is not None:
            return None if proof is None else proof.audit
        hidden = whole.suppressed(np.isnan(values))
        return audit(whole.problem, hidden, attackers=self._attackers, mapper=mapper)

    @property
    def _attackers(self) -> tuple[str, ...]:
        return self.guarantee.attackers if isinstance(self.guarantee, SuppressedTable) else ()

    def original(self, protected: ProtectedTable[CellComparison]) -> tuple[OriginalCells, CodeGroups]:
        """Return the cells before protection, and the codes of further hierarchies over a column."""
        comparison = protected.comparison
        cells = comparison.cells
        original = original_cells(cells, comparison.by_rule, self.table, comparison.joined)
        return original, {(each.finer, each.coarser): each.codes for each in cells.groupings}

    def requirements(self, measured: Measured) -> Iterable[Requirement]:
        """Return the requirements that the files contain the protected content, and the limits; the guarantee
        adds its own.
        """
        return (*table_integrity(self.table), *(suppression_limits(self.table) if self.suppression else ()))

    def write_annex(self, folder: Path, protected: ProtectedTable[CellComparison]) -> None:
        """Write each cell before and after protection, and whether it is published for the first time."""
        comparison = protected.comparison
        from microguard.pipelines.tables.suppression.jj import NAME as JJ
        from microguard.pipelines.tables.suppression.jj import write_jj
        from microguard.pipelines.tables.suppression.measures import suppression_columns

        fresh = new_cells(
            comparison.cells, self.table, comparison.values, protected.standing, protected.origin,
            TRUE if self.suppression else CHANGED,
        )  # fmt: skip
        write_published_cells(folder, fresh)
        columns = {} if comparison.problem is None else suppression_columns(comparison)
        sensitive = comparison.by_rule.sensitive
        write_cells(folder, comparison.cells, self.table, further=columns, sensitive=sensitive)
        if comparison.joined is not None:
            lines = comparison.by_rule.constraints
            hidden = np.isnan(comparison.values)
            write_suppressed(
                folder, comparison.cells, self.table, comparison.joined, hidden, lines, self._attackers
            )
            if self.table.tau_argus:
                write_jj(
                    folder / JJ,
                    comparison.joined.problem,
                    comparison.joined.suppressed(hidden),
                    self.table.digits,
                )
