"""Controlled tabular adjustment: move sensitive cells to safe values, and adjust all others at the least
cost.
"""

from __future__ import annotations

from microguard.pipelines.guarantees.additive_table import AdditiveTable
from microguard.pipelines.method import TableMethod
from microguard.pipelines.methods.absent_cells import absent_cells
from microguard.pipelines.tables.adjusted import adjusted
from microguard.pipelines.tables.product import Tables
from microguard.schemas.specification.table_input import table_of


class ControlledTabularAdjustment(TableMethod):
    """Tables by controlled tabular adjustment: every total is the sum of its parts."""

    def guarantee(self) -> AdditiveTable:
        """Promise additive tables, and sensitive cells far enough from their true values or randomly drawn
        small counts.
        """
        table = table_of(self.specification)
        drawn = table.counts and table.levels == "secret"
        preserved = table.preserve.model_dump(exclude_none=True)
        return AdditiveTable(drawn, preserved, absent_cells(self.specification, table))

    def product(self) -> Tables:
        """Return the product of adjusted tables."""
        return Tables(self.specification, self.guarantee(), adjusted)
