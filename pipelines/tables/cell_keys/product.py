"""Product "table" for counts with cell-key noise: the noise of each count is independent, and totals are not
additive.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from microguard.pipelines.guarantees.original_cells import OriginalCells
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.pipelines.job import Job
from microguard.pipelines.measures.measure import Measured
from microguard.pipelines.measures.registry import measures_of
from microguard.pipelines.tables.cell_keys.measures import NoiseComparison, write_noisy_cells
from microguard.pipelines.tables.cell_keys.noise import (
    attacked,
    noise_table,
    published_counts,
    standing_counts,
)
from microguard.pipelines.tables.cell_keys.record_keys import keys_of_cells
from microguard.pipelines.tables.files import published
from microguard.pipelines.tables.groupings import CodeGroups
from microguard.pipelines.tables.nested_columns import refuse_unrelated_columns
from microguard.pipelines.tables.product import contradicts, examined_at_most
from microguard.pipelines.tables.published_before import StandingValueFails, new_cells
from microguard.pipelines.tables.published_cells import write_published_cells
from microguard.pipelines.tables.table_product import ProtectedTable, TableProduct, cells_of
from microguard.schemas.errors import ProtectionFailed
from microguard.schemas.requirements.requirement import Requirement
from microguard.schemas.requirements.tables import table_requirements
from microguard.sdc.errors import SdcError


class NoisyTables(TableProduct[NoiseComparison]):
    """Tables of one specification, judged together."""

    measures = measures_of("table", ("table", "noise", "changes", "metrics"))

    def protect_counted(
        self, job: Job, screened: ValidatedInput, release_id: str
    ) -> ProtectedTable[NoiseComparison]:
        """Tabulate, add the noise, and compute the remaining disclosure.

        Raises
        ------
        InputRejected, GateRefused, ProtectionFailed
        """
        key = job.areas.key()
        with job.progress.stage("tabulate"):
            cells = cells_of(screened, self.specification, key)
            keys = keys_of_cells(screened.frame, self.specification, cells, key)
            if self.specification.publish.successive != "accept":
                refuse_unrelated_columns(screened.frame, self.table, tied=True)
        noise = noise_table(self.specification)
        with job.progress.stage("adjust"):
            try:
                accepted = self.specification.publish.successive == "accept"
                standing = standing_counts(
                    cells, self.table, self._before(self._every_cell(job), cells), accepted=accepted
                )
                values = published_counts(cells, keys, noise, standing)
            except StandingValueFails as error:
                raise contradicts(error) from error
        with job.progress.stage("attack"):
            drawn = hmac.new(key, b"cells to check", hashlib.sha256).digest()
            most = examined_at_most(self.table, len(cells))
            try:
                noisy = attacked(cells, values, noise, most_cells=most, seed=int.from_bytes(drawn[:8], "big"))
            except SdcError as error:
                raise ProtectionFailed(
                    f"The disclosure by this table cannot be computed: {error}. Nothing was published. Name "
                    "fewer or smaller tables."
                ) from error
        comparison = NoiseComparison(self.table, cells, noisy)
        return ProtectedTable(
            comparison,
            published(cells.codes, noisy.values, self.table),
            standing,
            {**self._origin, "release_id": release_id},
        )

    def original(self, protected: ProtectedTable[NoiseComparison]) -> tuple[OriginalCells, CodeGroups]:
        """Return the cells before protection; counts with noise have no further hierarchies."""
        cells = protected.comparison.cells
        largest = float(protected.comparison.noisy.noise.parameters.largest)
        none, far = np.zeros(len(cells)), np.full(len(cells), largest)
        sensitive = none.astype(bool)
        return OriginalCells(cells.codes, cells.units, none, none, sensitive, far, far, zeros_absent=True), {}

    def requirements(self, measured: Measured) -> Iterable[Requirement]:
        """Return the requirements on the written files, and the limits of `[table.quality]`."""
        return table_requirements(self.table, True)

    def write_annex(self, folder: Path, protected: ProtectedTable[NoiseComparison]) -> None:
        """Write each cell before and after protection, its interval, and whether it is published for the
        first time.
        """
        comparison = protected.comparison
        values = comparison.noisy.values.astype(float)
        fresh = new_cells(comparison.cells, self.table, values, protected.standing, protected.origin)
        write_published_cells(folder, fresh)
        write_noisy_cells(folder, comparison)
