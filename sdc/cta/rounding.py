"""Deviations into values: margins that add up to the last digit, whole numbers where the table had them.

Float margins are summed again from the internal cells where these determine the table. Whole numbers:
the constraint matrix of a two-way table is totally unimodular, so vertex solutions are whole up to the
solver's tolerance and rounding them is exact; otherwise internal cells are rounded and margins summed
again; where neither stays within the capacities, a small integer program finds whole deviations next to
the fractional ones. Decimals: give the table in units of its last digit (`in_last_digits`).
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from sdc.cta.table.cell_table import CellTable
from sdc.cta.table.check import check
from sdc.cta.table.summation import Summation
from sdc.errors import InvalidParameter
from sdc.solver import Limits, Program, solve

#: Scaled deviations below this are the solver's dust.
DUST = 1e-7
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
    )


def settled(
    table: CellTable, summation: Summation | None, deviations: np.ndarray, mode: str
) -> tuple[np.ndarray, bool]:
    """Deviations in original units made additive, and whether they are whole numbers."""
    largest = float(np.max(np.abs(deviations), initial=0.0))
    clean = np.where(np.abs(deviations) <= DUST * max(largest, 1e-300), 0.0, deviations)
    if table.whole:
        for candidate in _whole_candidates(summation, clean):
            if not np.any(table.relations @ candidate) and check(table, table.values + candidate, mode).sound:
                return candidate, True
        whole = _nearby_whole(table, clean, mode)
        if whole is not None:
            return whole, True
    if summation is not None:
        summed = summation.resum(clean)
        margins = np.abs(summed) <= DUST * max(largest, 1e-300)
        summed[margins & (deviations == 0)] = 0.0
        if check(table, table.values + summed, mode).sound:
            return summed, False
    return clean, False


def _whole_candidates(summation: Summation | None, deviations: np.ndarray) -> list[np.ndarray]:
    nearest = np.rint(deviations)
    return [nearest] if summation is None else [nearest, summation.resum(nearest)]


def _nearby_whole(table: CellTable, deviations: np.ndarray, mode: str) -> np.ndarray | None:
    """Cheapest whole deviations between floor and ceiling of the given ones that keep every promise."""
    if table.cells > MAX_ROUNDED_CELLS:
        return None
    low, high = np.floor(deviations + 1e-6), np.ceil(deviations - 1e-6)
    low = np.maximum(low, -table.lower_capacity)
    high = np.minimum(high, table.upper_capacity)
    rising = table.sensitive & (deviations > 0)
    falling = table.sensitive & (deviations < 0)
    low[rising] = np.maximum(low[rising], table.upper_protection[rising])
    high[falling] = np.minimum(high[falling], -table.lower_protection[falling])
    if np.any(low > high):
        return None
    zeros = np.zeros(table.lines)
    program = Program(
        costs=table.costs * np.sign(low + high),
        matrix=sparse.csr_matrix(table.relations),
        row_lower=zeros,
        row_upper=zeros,
        lower=low,
        upper=high,
        integer=np.ones(table.cells, dtype=bool),
    )
    solution = solve(program, Limits(nodes=ROUNDING_NODES, relative_gap=0.01))
    if solution.values is None:
        return None
    whole = np.rint(solution.values)
    sound = not np.any(table.relations @ whole) and check(table, table.values + whole, mode).sound
    return whole if sound else None
