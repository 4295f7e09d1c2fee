"""Small count rounding: counts below the base become 0 or the base; other counts remain unchanged."""

from __future__ import annotations

from microguard.pipelines.guarantees.small_counts import SmallCounts
from microguard.pipelines.method import TableMethod
from microguard.pipelines.methods.absent_cells import absent_cells
from microguard.pipelines.tables.adjusted import with_small_counts_rounded
from microguard.pipelines.tables.product import Tables
from microguard.schemas.specification.table_input import table_of


class SmallCountRounding(TableMethod):
    """Tables without small counts: every total is the sum of its parts."""

    def guarantee(self) -> SmallCounts:
        """Promise that no count is between 0 and the base."""
        table = table_of(self.specification)
        assert table.base is not None
        return SmallCounts(table.base, absent_cells(self.specification, table))

    def product(self) -> Tables:
        """Return the product of tables whose small counts are rounded."""
        return Tables(self.specification, self.guarantee(), with_small_counts_rounded)
