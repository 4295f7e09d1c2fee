"""Controlled rounding by simulated annealing, for tables whose integer program takes too long.

Each internal cell is rounded to one of its two adjacent multiples of the base, and totals are their sums.
Annealing chooses which internal cells to round up. It minimises the distances of the totals from their own
adjacent multiples, plus a small cost for each cell that differs from its keyed draw. In tables of four
dimensions, and in large tables of three, about one cell in a hundred ends one base beyond its adjacent
multiples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.cta.controlled_rounding.box import Box
from microguard.sdc.cta.table.summation import Summation
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.kernels.random import integer_below, new_stream, uniform
from scipy import sparse

#: Number of proposed moves for each effort. Ten million moves take two seconds.
_MOVES = {"fast": 10_000_000, "standard": 50_000_000, "thorough": 200_000_000, "exact": 200_000_000}
#: Maximum number of moves per cell; more moves gain nothing.
_MOVES_PER_CELL = 50_000
#: First and last temperature, in bases. If the last temperature is half of this, the cost is up to three
#: times as high.
_HOT, _COLD = 1.0, 0.2
#: Cost, in bases, of a cell whose value differs from its draw.
_DIFFERENCE_COST = 0.02


class _Totals(NamedTuple):
    pointers: np.ndarray
    totals: np.ndarray


def annealed_multiples(
    summation: Summation, targets: np.ndarray, box: Box, order: np.ndarray, seed: int, effort: str
) -> np.ndarray:
    """Return additive multiples of the base (cells,): internal cells within the box, totals near it.

    Parameters
    ----------
    summation : Summation
    targets : (cells,) keyed draws, whole numbers within the box
    box : Box
    order : (cells,) canonical order of the cells, which makes the result independent of their input order
    seed : int
    effort : {"fast", "standard", "thorough", "exact"}
    """
    inner = np.zeros(len(targets), dtype=bool)
    inner[summation.internal] = True
    moving = order[(inner & (box.upper > box.lower))[order]]
    column = np.full(len(targets), -1)
    column[summation.internal] = np.arange(len(summation.internal))
    outer = np.flatnonzero(~inner)
    matrix = sparse.csc_matrix(summation.matrix[outer][:, column[moving]])
    raised = (targets[moving] > box.lower[moving]).astype(np.int64)
    multiples = np.where(inner, box.lower, 0.0)
    sums = np.rint(summation.recompute_margins(multiples)[outer] + matrix @ raised).astype(np.int64)
    moves = min(_MOVES[effort], _MOVES_PER_CELL * len(moving))
    of_cell = _Totals(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64))
    ends = box.lower[outer].astype(np.int64), box.upper[outer].astype(np.int64)
    if len(moving):
        _anneal(of_cell, *ends, sums, raised, raised.copy(), moves, new_stream(seed))
    multiples[moving] += raised
    return np.rint(summation.recompute_margins(multiples))


@kernel
def _anneal(of_cell, lower, upper, sums, raised, targets, moves, stream):
    temperature, cooling = _HOT, (_COLD / _HOT) ** (1.0 / moves)
    for _ in range(moves):
        cell = integer_below(stream, len(raised))
        step = 1 - 2 * raised[cell]
        change = _DIFFERENCE_COST if raised[cell] == targets[cell] else -_DIFFERENCE_COST
        for at in range(of_cell.pointers[cell], of_cell.pointers[cell + 1]):
            total = of_cell.totals[at]
            there = sums[total]
            change += max(there + step - upper[total], 0) + max(lower[total] - there - step, 0)
            change -= max(there - upper[total], 0) + max(lower[total] - there, 0)
        if change <= 0 or uniform(stream) < np.exp(-change / temperature):
            raised[cell] += step
            for at in range(of_cell.pointers[cell], of_cell.pointers[cell + 1]):
                sums[of_cell.totals[at]] += step
        temperature *= cooling
