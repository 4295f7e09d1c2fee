"""Deviations into values: margins that add up to the last digit, whole numbers where the table had them.

Float margins are summed again from the internal cells where these determine the table. Whole numbers:
the constraint matrix of a two-way table is totally unimodular, so vertex solutions are whole up to the
solver's tolerance and rounding them is exact; otherwise internal cells are rounded and margins summed
again; where neither keeps every promise to the last unit, a small integer program finds whole deviations
next to the fractional ones, and at last what is open is solved for again (`refinement`). Decimals: give the
table in units of its last digit (`in_last_digits`).
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.refinement import admissible, refined
from microguard.sdc.cta.table.cell_table import CellTable
from microguard.sdc.cta.table.check import check
from microguard.sdc.cta.table.rows import kept_rows
from microguard.sdc.cta.table.summation import Summation
from microguard.sdc.errors import InvalidParameter
from microguard.sdc.solver import Limits, Program, solve

#: Branch-and-bound nodes of the rounding program; tables that need more keep their fractions.
ROUNDING_NODES = 500
#: Cells up to which the rounding program is tried.
MAX_ROUNDED_CELLS = 20_000


def in_last_digits(table: CellTable, decimals: int) -> CellTable:
    """The table in units of its last published digit, as whole numbers: levels up, capacities down.

    Divide the adjusted values by ``10 ** decimals`` to publish them. Costs keep their meaning per unit of
    the last digit, so objectives are ``10 ** decimals`` times larger.

    Raises
    ------
    NotAdditive
        Where values rounded to these decimals do not add up.
    InvalidParameter
        Where `decimals` is not a whole number.
    """
    if decimals != int(decimals):
        raise InvalidParameter("decimals must be a whole number")
    factor = 10.0 ** int(decimals)

    def up(array: np.ndarray) -> np.ndarray:
        return np.ceil(np.round(array * factor, 6))

    def down(array: np.ndarray) -> np.ndarray:
        return np.floor(np.round(array * factor, 6))

    return CellTable(
        values=np.rint(table.values * factor),
        relations=table.relations,
        sensitive=table.sensitive,
        lower_protection=up(table.lower_protection),
        upper_protection=up(table.upper_protection),
        lower_capacity=down(table.lower_capacity),
        upper_capacity=down(table.upper_capacity),
        costs=table.costs,
        quality=None if table.quality is None else table.quality.in_units(factor),
    )


def settled(
    table: CellTable, summation: Summation | None, deviations: np.ndarray, mode: str
) -> tuple[np.ndarray, bool]:
    """Deviations in original units made additive, and whether they are whole numbers."""
    low, high = admissible(table, deviations, mode)
    placed = np.clip(deviations, np.minimum(low, high), high)
    if table.whole:
        for candidate in _whole_candidates(summation, placed):
            if check(table, table.values + candidate, mode).sound:
                return candidate, True
        whole = _nearby_whole(table, placed, low, high)
        if whole is None or not check(table, table.values + whole, mode).sound:
            whole = refined(table, deviations, mode)
        if whole is not None and check(table, table.values + whole, mode).sound:
            return whole, True
    elif summation is not None:
        summed = summation.resum(placed)
        if check(table, table.values + summed, mode).sound:
            return summed, False
    closed = None if table.whole else refined(table, deviations, mode)
    return (placed if closed is None else closed), False


def _whole_candidates(summation: Summation | None, deviations: np.ndarray) -> list[np.ndarray]:
    nearest = np.rint(deviations)
    return [nearest] if summation is None else [nearest, summation.resum(nearest)]


def _nearby_whole(
    table: CellTable, deviations: np.ndarray, lowest: np.ndarray, highest: np.ndarray
) -> np.ndarray | None:
    """Cheapest whole deviations between floor and ceiling of the given ones, within their bounds."""
    if table.cells > MAX_ROUNDED_CELLS:
        return None
    low = np.maximum(np.floor(deviations + 1e-6), lowest)
    high = np.minimum(np.ceil(deviations - 1e-6), highest)
    if np.any(low > high):
        return None
    rows = kept_rows(table)
    program = Program(
        costs=table.costs * np.sign(low + high),
        matrix=rows.matrix,
        row_lower=rows.least,
        row_upper=rows.most,
        lower=low,
        upper=high,
        integer=np.ones(table.cells, dtype=bool),
    )
    solution = solve(program, Limits(nodes=ROUNDING_NODES, relative_gap=0.01))
    return None if solution.values is None else np.rint(solution.values)
