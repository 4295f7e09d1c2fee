"""Tables of a method that decides cell by cell what is published: the true value, another one, or none.

The base class of methods of third parties. It tabulates, applies the disclosure rules, writes the files and
keeps the list of cells; a method says what becomes of each cell. A cell without a value is suppressed: it is
published as NULL with the status ``suppressed``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from microguard.pipelines.guarantees.original_cells import OriginalCells
from microguard.pipelines.guarantees.suppressed_table import SuppressedTable
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.pipelines.job import Job
from microguard.pipelines.measures.measure import Measure, Measured
from microguard.pipelines.method import TableMethod
from microguard.pipelines.tables.cell_list import write_cells
from microguard.pipelines.tables.cells import Cells
from microguard.pipelines.tables.files import published
from microguard.pipelines.tables.groupings import CodeGroups
from microguard.pipelines.tables.problem import few_with_nothing, rule_table
from microguard.pipelines.tables.published_before import PublishedValues, new_cells
from microguard.pipelines.tables.published_cells import write_published_cells
from microguard.pipelines.tables.table_product import ProtectedTable, TableProduct
from microguard.schemas.errors import GateRefused, InputRejected, ProtectionFailed
from microguard.schemas.requirements.requirement import Requirement
from microguard.schemas.requirements.tables import table_integrity
from microguard.sdc.cta import CellTable
from microguard.sdc.errors import SdcError


@dataclass(frozen=True)
class CellComparison:
    """Original cells, what the rules ask of them, and published values in units (NaN: suppressed)."""

    cells: Cells
    by_rule: CellTable
    values: np.ndarray


class CellMethod(TableMethod):
    """A method that decides cell by cell."""

    @abstractmethod
    def protect(self, table: CellTable, key: bytes) -> np.ndarray:
        """Protect the cells of all tables together.

        Parameters
        ----------
        table : CellTable
            Values in units of the last published digit, sensitive cells with their protection levels, and
            ``relations`` (lines, cells): every line adds up to 0.
        key : bytes
            The secret of the agency, for draws that nobody can repeat.

        Returns
        -------
        (cells,) float array
            Whole units; NaN suppresses a cell.
        """

    def product(self) -> CellTables:
        """Return the product that publishes what the method decides."""
        return CellTables(self)


class CellTables(TableProduct[CellComparison]):
    """The tables of one specification, protected cell by cell."""

    measures: tuple[Measure[Any, Any], ...] = ()

    def __init__(self, method: CellMethod) -> None:
        super().__init__(method.specification, method.guarantee())
        self.method, self.limits = method, (*method.guarantee().limits, *method.limits)

    def protect(self, job: Job, screened: ValidatedInput, release_id: str) -> ProtectedTable[CellComparison]:
        """Tabulate, apply the rules, and let the method decide.

        Raises
        ------
        InputRejected, GateRefused, ProtectionFailed
        """
        key = job.areas.key()
        with job.progress.stage("tabulate"):
            cells = self._tabulated(job, screened, release_id)
            try:
                by_rule = rule_table(cells, self.specification)
            except SdcError as error:
                raise InputRejected(f"The input makes no table: {error}.") from error
        if self._before(job, cells) and self.specification.publish.successive != "accept":
            raise GateRefused(
                "Cells of this source were published before, in another table: expected none, as this method "
                "cannot publish them with the values of then. Nothing was published. Withdraw that table, or "
                'set publish.successive to "accept" if a steward decides that they may be compared.'
            )
        with job.progress.stage("adjust"):
            values = np.asarray(self.method.protect(by_rule, key), float)
        if values.shape != (len(cells),) or not (np.isnan(values) | (values == np.rint(values))).all():
            raise ProtectionFailed(
                f"The method {self.table.method} returned values of the shape {values.shape}: expected "
                f"({len(cells)},), each a whole number of units or NaN. Nothing was published. This is a "
                "fault of the method."
            )
        comparison = CellComparison(cells, by_rule, values)
        none = PublishedValues(np.zeros(len(cells), bool), np.zeros(len(cells)))
        suppression = isinstance(self.guarantee, SuppressedTable)
        contents = published(
            cells.codes, values, self.table, few_with_nothing(cells, self.specification), suppression
        )
        origin = {**self._origin, "release_id": release_id}
        return ProtectedTable(comparison, contents, none, origin)

    def original(self, protected: ProtectedTable[CellComparison]) -> tuple[OriginalCells, CodeGroups]:
        """Return the cells before protection, and codes that further hierarchies group anew."""
        cells, rule = protected.comparison.cells, protected.comparison.by_rule
        original = OriginalCells(
            codes=cells.codes,
            units=cells.units,
            lower=rule.lower_protection,
            upper=rule.upper_protection,
            sensitive=rule.sensitive,
            fall=rule.lower_capacity,
            rise=rule.upper_capacity,
            digits=self.table.digits,
            zeros_absent=self.table.counts,
        )
        return original, {(each.finer, each.coarser): each.codes for each in cells.groupings}

    def requirements(self, measured: Measured) -> Iterable[Requirement]:
        """That the files hold what was protected; the promise is required by the guarantee."""
        return table_integrity(self.table)

    def write_annex(self, folder: Path, protected: ProtectedTable[CellComparison]) -> None:
        """Every cell as it was; and which are published first here."""
        comparison = protected.comparison
        shown = ~np.isnan(comparison.values)
        values = np.where(shown, comparison.values, 0.0)
        fresh = new_cells(comparison.cells, self.table, values, protected.standing, protected.origin)
        write_published_cells(folder, (cell for cell, public in zip(fresh, shown, strict=True) if public))
        write_cells(folder, comparison.cells, self.table, sensitive=comparison.by_rule.sensitive)
