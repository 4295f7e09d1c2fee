"""Cell suppression as a method of microguard."""

import numpy as np
from microguard.pipelines.guarantees.suppressed_table import SuppressedTable
from microguard.pipelines.tables.cell_method import CellMethod

from suppression.pattern import suppressed


class CellSuppression(CellMethod):
    """Withhold sensitive and secondary cells; published values are the original ones."""

    def guarantee(self):
        """No withheld value follows from a single constraint."""
        return SuppressedTable()

    def protect(self, problem, key):
        """Suppress sensitive cells and the cells from which they could be computed."""
        table = problem.table
        return np.where(suppressed(table.values, table.relations, table.sensitive), np.nan, table.values)
