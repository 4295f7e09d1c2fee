"""Cell suppression: suppress sensitive cells, and further cells at the least cost."""

from __future__ import annotations

from microguard.pipelines.guarantees.suppressed_table import SuppressedTable
from microguard.pipelines.methods.absent_cells import absent_cells
from microguard.pipelines.tables.cell_method import CellMethod, CellProblem
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table_input import table_of
from microguard.sdc.algorithms.parameters import Parameters
from microguard.sdc.suppression import Suppression, suppress


class CellSuppression(CellMethod):
    """Tables with suppressed cells: published values are true values."""

    def __init__(self, specification: Specification, parameters: Parameters | None = None) -> None:
        super().__init__(specification, parameters)
        self.limits = (absent_cells(specification, table_of(specification)),)

    def guarantee(self) -> SuppressedTable:
        """Promise intervals as wide as the levels, against every kind of attacker for which intervals can be
        counted.
        """
        table = table_of(self.specification)
        attackers = table.attackers if table.contributors_known else ("outsider",)
        return SuppressedTable(attackers, by_number=table.source == "cells" and len(attackers) > 1)

    def protect(self, problem: CellProblem, key: bytes) -> Suppression:
        """Select the cells to suppress."""
        table = table_of(self.specification)
        assert problem.suppression is not None
        return suppress(
            problem.suppression,
            effort=table.effort,
            attackers=table.attackers,
            seed=self.specification.release.seed,
            mapper=problem.mapper,
        )
