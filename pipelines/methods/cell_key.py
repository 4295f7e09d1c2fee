"""Cell keys: every count has bounded noise by the keys of the records behind it."""

from __future__ import annotations

from microguard.pipelines.guarantees.bounded_noise import BoundedNoise
from microguard.pipelines.method import TableMethod
from microguard.pipelines.methods.absent_cells import COUNTS_ZEROS
from microguard.pipelines.tables.cell_keys.noise import noise_table
from microguard.pipelines.tables.cell_keys.product import NoisyTables


class CellKeys(TableMethod):
    """Tables with noise: totals do not add up."""

    def guarantee(self) -> BoundedNoise:
        """Noise within a limit, and no small count."""
        noise = noise_table(self.specification).parameters
        return BoundedNoise(noise.largest, noise.variance, noise.k, COUNTS_ZEROS[0])

    def product(self) -> NoisyTables:
        """Tables with noise."""
        return NoisyTables(self.specification, self.guarantee())
