"""Turn drawn counts into a table to adjust: small counts move exactly to the drawn value."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from microguard.sdc.cta.table.cell_table import CellTable


def with_draws(table: CellTable, counts: np.ndarray, drawn: np.ndarray, base: int) -> CellTable:
    """Return the table with one direction and one level for every small count, and free margins.

    Parameters
    ----------
    table : CellTable
        Its capacities hold for large counts.
    counts, drawn : (cells,) counts, and published values of the small ones that are no totals
    base : of `draw`

    Returns
    -------
    CellTable
        Totals have capacity for any draw of their parts. A large count that is no total stays at `base` or
        above, so that no multiple below it is published by adjustment.
    """
    is_total = totals(table)
    change = drawn - counts
    small = (counts > 0) & (counts < 2 * base) & ~is_total
    large = (counts >= 2 * base) & ~is_total
    moving = small & (change != 0)
    up, down = np.maximum(change, 0.0), np.maximum(-change, 0.0)
    room = float(np.sum(np.abs(change[small])))
    upper = np.where(is_total, room, np.where(small, up, table.upper_capacity))
    lower = np.where(is_total, np.minimum(room, table.values), np.where(small, down, table.lower_capacity))
    lower = np.where(large, np.minimum(lower, counts - base), lower)
    still = counts == 0
    level = np.where(moving, np.abs(change), 0.0)
    return replace(
        table,
        sensitive=moving,
        lower_protection=level,
        upper_protection=level,
        lower_capacity=np.where(still, 0.0, lower),
        upper_capacity=np.where(still, 0.0, upper),
    )


def as_known(table: CellTable, counts: np.ndarray, base: int) -> CellTable:
    """Return the table as an attacker knows it: small counts and zeros within a base of the published value.

    Totals may be off by all of these together.

    Parameters
    ----------
    table : CellTable
        Of `with_draws`.
    """
    is_total = totals(table)
    hidden = (counts < 2 * base) & ~is_total
    step = float(base)
    together = step * float(hidden.sum())

    def room(capacity: np.ndarray) -> np.ndarray:
        return np.where(is_total, together, np.where(hidden, step, capacity))

    return _taken_for_possible(
        table, hidden & (counts > 0), step, room(table.lower_capacity), room(table.upper_capacity)
    )


def as_rounded(table: CellTable, base: int) -> CellTable:
    """Return the table as an attacker knows it if every count, totals too, is less than a base off."""
    small = (table.values > 0) & (table.values < 2 * base) & ~totals(table)
    room = np.full(table.cells, base - 1.0)
    return _taken_for_possible(table, small, base - 1.0, room, room)


def _taken_for_possible(
    table: CellTable, small: np.ndarray, step: float, lower: np.ndarray, upper: np.ndarray
) -> CellTable:
    """Return the table whose small counts are sensitive by a step either way, with these capacities."""
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
    """Return whether each cell is the total of a line."""
    relations = table.relations
    summed = np.zeros(table.cells, dtype=bool)
    summed[relations.indices[relations.data < 0]] = True
    return summed
