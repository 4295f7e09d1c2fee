"""Unbiased controlled rounding: the secret key draws one of the adjacent multiples of the base for every
count.
"""

from __future__ import annotations

from microguard.pipelines.guarantees.rounded_table import RoundedTable
from microguard.pipelines.method import TableMethod
from microguard.pipelines.methods.absent_cells import absent_cells
from microguard.pipelines.tables.adjusted import rounded
from microguard.pipelines.tables.product import Tables
from microguard.schemas.specification.table_input import table_of


class ControlledRounding(TableMethod):
    """Tables by controlled rounding: every total is the sum of its parts."""

    def guarantee(self) -> RoundedTable:
        """Promise that all cells are multiples of the base and that totals are the sums of their parts."""
        table = table_of(self.specification)
        assert table.base is not None
        return RoundedTable(table.base, absent_cells(self.specification, table))

    def product(self) -> Tables:
        """Return the product of rounded tables."""
        return Tables(self.specification, self.guarantee(), rounded)
