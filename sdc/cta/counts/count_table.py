"""Convert counts to a table for adjustment: small counts must equal their draws, other cells change at least
cost.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from microguard.sdc.cta.table.cell_table import CellTable


def with_draws(table: CellTable, counts: np.ndarray, drawn: np.ndarray, base: int) -> CellTable:
    """Make each small count a sensitive cell whose only allowed published value is its draw.

    Parameters
    ----------
    table : CellTable
        Its capacities apply to large counts.
    counts, drawn : (cells,) original counts, and the draws of the small counts that are not totals
    base : int, see `draw`

    Returns
    -------
    CellTable
        The capacities of totals allow any draws of their parts. A large count that is not a total does not
        decrease below `base`.
    """
    is_total = totals(table)
    change = drawn - counts
    small = (counts > 0) & (counts < 2 * base) & ~is_total
    large = (counts >= 2 * base) & ~is_total
    moving = small & (change != 0)
    up, down = np.maximum(change, 0.0), np.maximum(-change, 0.0)
    largest = float(np.sum(np.abs(change[small])))
    upper = np.where(is_total, largest, np.where(small, up, table.upper_capacity))
    lower = np.where(is_total, np.minimum(largest, table.values), np.where(small, down, table.lower_capacity))
    lower = np.where(large, np.minimum(lower, counts - base), lower)
    zero = counts == 0
    level = np.where(moving, np.abs(change), 0.0)
    return replace(
        table,
        sensitive=moving,
        lower_protection=level,
        upper_protection=level,
        lower_capacity=np.where(zero, 0.0, lower),
        upper_capacity=np.where(zero, 0.0, upper),
    )


def as_known(table: CellTable, counts: np.ndarray, base: int) -> CellTable:
    """Describe the deviations that an attacker considers possible in a table of drawn counts.

    Every small count and every zero is within one base of its published value. A total deviates by at most
    the sum of these deviations.

    Parameters
    ----------
    table : CellTable
        From `with_draws`.
    counts : (cells,) original counts
    base : int
    """
    is_total = totals(table)
    hidden = (counts < 2 * base) & ~is_total
    step = float(base)
    together = step * float(hidden.sum())

    def possible(capacity: np.ndarray) -> np.ndarray:
        return np.where(is_total, together, np.where(hidden, step, capacity))

    lower, upper = possible(table.lower_capacity), possible(table.upper_capacity)
    return _with_possible_deviations(table, hidden & (counts > 0), step, lower, upper)


def as_rounded(table: CellTable, base: int) -> CellTable:
    """Describe the deviations that an attacker considers possible if each deviation is less than the base."""
    small = (table.values > 0) & (table.values < 2 * base) & ~totals(table)
    capacity = np.full(table.cells, base - 1.0)
    return _with_possible_deviations(table, small, base - 1.0, capacity, capacity)


def _with_possible_deviations(
    table: CellTable, small: np.ndarray, step: float, lower: np.ndarray, upper: np.ndarray
) -> CellTable:
    """Make small counts sensitive with both protection levels `step`, and replace all capacities."""
    level = np.where(small, step, 0.0)
    return replace(
        table,
        sensitive=small,
        lower_protection=level,
        upper_protection=level,
        lower_capacity=lower,
        upper_capacity=upper,
    )


def totals(table: CellTable) -> np.ndarray:
    """Return whether each cell is the total of a constraint, (cells,)."""
    relations = table.relations
    summed = np.zeros(table.cells, dtype=bool)
    summed[relations.indices[relations.data < 0]] = True
    return summed
