"""Cell keys: every count or amount has noise that depends on the keys of its records."""

from __future__ import annotations

from typing import Any

from microguard.pipelines.guarantees.bounded_noise import BoundedNoise
from microguard.pipelines.guarantees.tables import TableGuarantee
from microguard.pipelines.method import TableMethod
from microguard.pipelines.methods.absent_cells import COUNTS_ZEROS, absent_cells
from microguard.pipelines.tables.table_product import TableProduct
from microguard.schemas.specification.table_input import table_of


class CellKeys(TableMethod):
    """Tables with noise, whose totals are not the sums of their parts."""

    def guarantee(self) -> TableGuarantee:
        """Promise noise within a limit and no small count; for amounts, promise noise within limits by their
        scale.
        """
        table = table_of(self.specification)
        if not table.counts:
            from microguard.pipelines.tables.cell_keys.amounts import guarantee_of_amounts

            return guarantee_of_amounts(self.specification, absent_cells(self.specification, table))
        from microguard.pipelines.tables.cell_keys.noise import noise_table

        noise = noise_table(self.specification).parameters
        return BoundedNoise(noise.largest, noise.variance, noise.k, COUNTS_ZEROS[0])

    def product(self) -> TableProduct[Any]:
        """Return the product for counts or for amounts with noise."""
        if not table_of(self.specification).counts:
            from microguard.pipelines.tables.cell_keys.amounts import NoisyAmountTables

            return NoisyAmountTables(self.specification, self.guarantee())
        from microguard.pipelines.tables.cell_keys.product import NoisyTables

        return NoisyTables(self.specification, self.guarantee())
