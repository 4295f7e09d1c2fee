"""A random walk from the true values to multiples of the base that stays additive and keeps expectations.

The walk moves along directions d with M d = 0 inside the box of multiples next to each value. From x it can
go as far as x + a d one way and x - c d the other, where a cell reaches an end of its box and stays; it goes
up with odds c / (a + c), so that the expectation of every cell is its value. A direction is what one cell,
moved by one, takes from the cells of a basis, as in the simplex method. Every cell is moved once at most;
what is left are the cells of the basis. In two dimensions, one of them hierarchical, these are multiples too
(the relations are those of a network), otherwise some may stay between two.

(Cox 1987, A constructive procedure for unbiased controlled rounding, walks along cycles of a two-way table;
along any direction it is the dependent rounding of Gandhi, Khuller, Parthasarathy and Srinivasan 2006.)
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.controlled_rounding.basis import NONE, PIVOT, Basis
from microguard.sdc.kernels.compile import kernel
from scipy import sparse

#: Of a base: room that is none. The walk may leave a box by so much, and is put back into it at its end.
ROOM_TOLERANCE = 1e-9

#: Entries read after which a walk ends where it is: a thousand million take about five seconds. A table of
#: two hierarchies and 24,000 cells takes five thousand million, one of three dimensions and as many cells
#: more.
MOST_WORK = 10_000_000_000


def walked(
    relations: sparse.csr_matrix,
    start: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    order: np.ndarray,
    numbers: np.ndarray,
) -> np.ndarray:
    """(cells,) where the walk ends, in units of the base; additive up to the tolerance.

    Parameters
    ----------
    relations : sparse (lines, cells), with ``relations @ start = 0``
    start, lower, upper : (cells,) values and the ends of their boxes, in units of the base
    order : (k,) positions of the cells strictly inside their box, as they are to be moved
    numbers : (k,) independent and uniform in [0, 1), one for each of them
    """
    basis = Basis(relations)
    values, lower, upper = np.array(start, dtype=float), lower.astype(float), upper.astype(float)
    for cell, number in zip(order.tolist(), numbers.tolist(), strict=True):
        if basis.work > MOST_WORK:
            break
        line = basis.move(cell)
        if line == NONE:
            line = _step(
                cell, number, values, lower, upper, basis.cells, basis.direction, basis.touched, basis.count
            )
        if line != NONE:
            basis.enter(line, cell)
    return np.clip(values, lower, upper)


@kernel
def _step(cell, number, values, lower, upper, cells, direction, touched, count):
    """Move a cell one way or the other; the line whose cell stopped it, `NONE` where it stopped by itself."""
    up, up_line = upper[cell] - values[cell], NONE
    down, down_line = values[cell] - lower[cell], NONE
    for sign in (1.0, -1.0):
        way = up if sign > 0 else down
        # of those that stop it within the tolerance the one with the largest entry, which keeps the basis
        # well conditioned (Harris 1973, two passes)
        most = way
        for at in range(count):
            follower, change = cells[touched[at]], -sign * direction[touched[at]]
            if abs(change) > PIVOT:
                end = upper[follower] if change > 0 else lower[follower]
                most = min(most, (max((end - values[follower]) / change, 0.0)) + ROOM_TOLERANCE / abs(change))
        room, stopped, largest = way, NONE, 1.0 if way <= most else 0.0
        for at in range(count):
            follower, change = cells[touched[at]], -sign * direction[touched[at]]
            if abs(change) > max(largest, PIVOT):
                end = upper[follower] if change > 0 else lower[follower]
                reach = max((end - values[follower]) / change, 0.0)
                if reach <= most:
                    room, stopped, largest = reach, touched[at], abs(change)
        if sign > 0:
            up, up_line = room, stopped
        else:
            down, down_line = room, stopped
    upward = number * (up + down) < down
    step, line = (up, up_line) if upward else (-down, down_line)
    for at in range(count):
        follower = cells[touched[at]]
        if follower != NONE:
            values[follower] -= step * direction[touched[at]]
    values[cell] += step
    leaving, rises = (cell, upward) if line == NONE else (cells[line], (direction[line] < 0) == upward)
    values[leaving] = upper[leaving] if rises else lower[leaving]
    return line
