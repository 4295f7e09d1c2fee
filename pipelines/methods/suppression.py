"""Cell suppression: suppress sensitive cells, and further cells at the least cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from microguard.pipelines.guarantees.suppressed_table import SuppressedTable
from microguard.pipelines.methods.absent_cells import absent_cells
from microguard.pipelines.tables.cell_method import CellMethod, CellProblem
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table_input import table_of
from microguard.sdc.algorithms.parameters import Parameters
from microguard.sdc.suppression import Suppression, SuppressionProblem, suppress

#: Arrays of an audit with an element for each primary cell.
_OF_CELLS = ("cells", "lowest", "highest", "too_narrow", "who")


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
        given = problem.suppression
        assert given is not None
        found = suppress(
            with_uncertain_estimates(given, problem.estimates, table.safety_range / 100),
            effort=table.effort,
            attackers=table.attackers,
            seed=self.specification.release.seed,
            mapper=problem.mapper,
        )
        primary = given.primary[found.audit.cells]
        of_primary = {name: getattr(found.audit, name)[primary] for name in _OF_CELLS}
        return replace(found, audit=replace(found.audit, **of_primary))


def with_uncertain_estimates(
    problem: SuppressionProblem, estimates: np.ndarray | None, share: float
) -> SuppressionProblem:
    """Return a problem in which estimates of suppressed cells are protected like primary cells, as far as
    their bounds allow.

    The cells that were suppressed together with such a cell may have changed so much that they can be
    published now. The estimate would then be alone in a line, and would be computed from it.

    Parameters
    ----------
    estimates : (own,) boolean array, or None
        Forced cells of this table, which are the first ones of the problem.
    share : float
        Levels as a share of the value; they are at least one unit of publication.
    """
    if estimates is None or not estimates.any():
        return problem
    level = np.maximum(share * np.abs(problem.values), problem.unit)
    fall = np.minimum(problem.values - problem.lower_bound, level)
    rise = np.minimum(problem.upper_bound - problem.values, level)
    chosen = problem.force & (fall + rise >= problem.unit)
    chosen &= np.pad(estimates, (0, problem.cells - len(estimates)))
    return replace(
        problem,
        primary=problem.primary | chosen,
        force=problem.force & ~chosen,
        lower_level=np.where(chosen, fall, problem.lower_level),
        upper_level=np.where(chosen, rise, problem.upper_level),
    )
