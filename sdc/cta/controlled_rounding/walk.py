"""Unbiased controlled rounding by a random walk from the true values to multiples of the base.

The walk moves along directions d with M d = 0, within the adjacent multiples of each cell, so that all
constraints hold at every step. From x the largest steps are x + a d and x - c d; at each of these points a
cell reaches one of its multiples and is fixed. The walk takes the first with probability c / (a + c), so that
the expectation of every cell is its value. A direction is the change of one cell and the compensating changes
of the basic cells, as in the simplex method. Each cell is moved at most once. At the end only basic cells may
differ from multiples. In two dimensions, at most one of them hierarchical, they are multiples too, because
the constraints are those of a network.

Source: Cox 1987, A constructive procedure for unbiased controlled rounding (cycles of a two-way table);
Gandhi, Khuller, Parthasarathy, Srinivasan 2006, Dependent rounding (any direction).
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.controlled_rounding.basis import NONE, PIVOT, Basis
from microguard.sdc.kernels.compile import kernel
from scipy import sparse

#: Tolerance of the bounds, in bases. The walk may exceed a bound by this much; the result is clipped.
BOUND_TOLERANCE = 1e-9

#: Maximum number of eta-file entries that the walk reads; 1e9 entries take about five seconds. A table of two
#: hierarchies and 24,000 cells needs 5e9; tables of three dimensions need more.
MOST_WORK = 10_000_000_000


def random_walk(
    relations: sparse.csr_matrix,
    start: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    order: np.ndarray,
    numbers: np.ndarray,
) -> np.ndarray:
    """Return the end point of the walk (cells,) in units of the base, additive up to the tolerance.

    Parameters
    ----------
    relations : sparse (constraints, cells), with ``relations @ start = 0``
    start, lower, upper : (cells,) values and their bounds, in units of the base
    order : (k,) positions of the cells strictly inside their bounds, in the order in which they are moved
    numbers : (k,) independent random numbers, uniform in [0, 1), one for each of these cells
    """
    basis = Basis(relations)
    values, lower, upper = np.array(start, dtype=float), lower.astype(float), upper.astype(float)
    for cell, number in zip(order.tolist(), numbers.tolist(), strict=True):
        if basis.work > MOST_WORK:
            break
        row = basis.ftran(cell)
        if row == NONE:
            row = _step(
                cell, number, values, lower, upper, basis.cells, basis.direction, basis.touched, basis.count
            )
        if row != NONE:
            basis.pivot(row, cell)
    return np.clip(values, lower, upper)


@kernel
def _step(cell, number, values, lower, upper, cells, direction, touched, count):
    """Move a cell up or down at random and return the constraint whose basic cell reached a bound first.

    Returns `NONE` if the cell itself reached its bound.
    """
    up, up_row = upper[cell] - values[cell], NONE
    down, down_row = values[cell] - lower[cell], NONE
    for sign in (1.0, -1.0):
        own_slack = up if sign > 0 else down
        # Harris 1973, two-pass ratio test: among the basic cells that reach a bound within the tolerance,
        # choose the one with the largest pivot element, which keeps the basis well-conditioned
        longest = own_slack
        for at in range(count):
            basic, change = cells[touched[at]], -sign * direction[touched[at]]
            if abs(change) > PIVOT:
                bound = upper[basic] if change > 0 else lower[basic]
                step = max((bound - values[basic]) / change, 0.0)
                longest = min(longest, step + BOUND_TOLERANCE / abs(change))
        shortest, blocking, largest = own_slack, NONE, 1.0 if own_slack <= longest else 0.0
        for at in range(count):
            basic, change = cells[touched[at]], -sign * direction[touched[at]]
            if abs(change) > max(largest, PIVOT):
                bound = upper[basic] if change > 0 else lower[basic]
                step = max((bound - values[basic]) / change, 0.0)
                if step <= longest:
                    shortest, blocking, largest = step, touched[at], abs(change)
        if sign > 0:
            up, up_row = shortest, blocking
        else:
            down, down_row = shortest, blocking
    upward = number * (up + down) < down
    step, row = (up, up_row) if upward else (-down, down_row)
    for at in range(count):
        basic = cells[touched[at]]
        if basic != NONE:
            values[basic] -= step * direction[touched[at]]
    values[cell] += step
    leaving, rises = (cell, upward) if row == NONE else (cells[row], (direction[row] < 0) == upward)
    values[leaving] = upper[leaving] if rises else lower[leaving]
    return row
