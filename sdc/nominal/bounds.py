"""Bounds on the chi-square of every protected frequency vector of a file, whatever method made it.

A published count is 0 or at least k, and so is every cell, a sum of such counts. Alone, a cell with fewer
than k records therefore costs at least what the cheaper of 0 and k costs: the *free* bound. What it leaves
out is that the cells of a table add up to those of its margins: where many small cells are emptied, or
filled, a small margin pays. The *nested* bound lets every cell carry its error, and that of the cells inside
it, to its margins, in shares; for a margin the least cost of each count is then a convolution over the cells
inside, 0 or at least k each. The copies of a cell at its margins need not agree, so that what adds up is
below every solution (a Lagrangian relaxation with fixed multipliers).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.nominal.control_tables import ControlTables

#: Margins up to this many times k records are priced: larger ones absorb what their cells lose for nearly
#: nothing (at 30 k, full Adult has all but a thousandth of the bound that ten times as many give).
_LARGEST_MARGIN = 30
#: Counts of a cell are told apart up to this many times k above its original one; larger ones are one.
_ABOVE = 4
#: Additions of the convolutions, and counts that are kept: about two seconds and 160 MB. Where they do not
#: suffice, smaller margins are priced only.
_MOST_ADDITIONS, _MOST_COUNTS = 2_000_000_000, 20_000_000
#: Taken off each bound, as a share, so that rounding never lifts it above the optimum: far above what one
#: sum of floating-point numbers loses, and what the convolutions of margins in margins lose.
_ROUNDING_OF_SUM, _ROUNDING_OF_CONVOLUTIONS = 1e-12, 1e-9


def free_bound(original: np.ndarray, k: int) -> float:
    """Sum over control cells of the least error that a count of 0 or at least k has.

    Parameters
    ----------
    original : (cells,) int array
        Counts before; cells that did not occur add nothing.
    k : int

    Returns
    -------
    float
        In units of chi-square: sum of (n - o)^2 / o, o being the count before and n that after.
    """
    return float(least_chi2(original, k).sum()) * (1 - _ROUNDING_OF_SUM)


def least_chi2(original: np.ndarray, k: int) -> np.ndarray:
    """What each cell costs at least where it is to be 0 or at least k, (cells,): see `free_bound`."""
    count = np.maximum(original, 1).astype(float)
    return np.where((original > 0) & (original < k), np.minimum(count, (k - count) ** 2 / count), 0.0)


def nested_bound(tables: ControlTables, k: int) -> float:
    """The free bound, tightened by the margins that are control tables, too; never below it.

    A bound on the chi-square of every vector of counts that are 0 or at least k: all regions, totals and
    combinations are let loose but for the additivity of each cell to each of its small margins.
    """
    free = free_bound(tables.original, k)
    nesting = _Nesting.of(tables, k)
    if nesting is None:
        return free
    width = np.bincount(tables.table, minlength=len(tables.tables))  # cells of each table, for the order only
    names = np.array([len(table) for table in tables.tables])
    finest_first = np.lexsort((width[tables.table], -names[tables.table]))
    least = _least_costs(
        finest_first,
        tables.original,
        np.where(tables.original <= nesting.largest, tables.original + nesting.above, -1),
        nesting.first,
        nesting.cell,
        nesting.table,
        nesting.share,
        k,
    )
    return max(free, float(least[nesting.roots].sum()) * (1 - _ROUNDING_OF_CONVOLUTIONS))


@dataclass(frozen=True)
class _Nesting:
    """Which cells lie in which small margins: pairs sorted by margin, then by table of the cell.

    Attributes
    ----------
    first : (cells + 1,) pairs of each margin begin here
    cell, table, share : (pairs,) the cell inside, its table, and the share of its cost it carries there
    roots : (cells,) bool, cells in no small margin
    largest : most records of a margin priced
    above : counts above the original one that are told apart
    """

    first: np.ndarray
    cell: np.ndarray
    table: np.ndarray
    share: np.ndarray
    roots: np.ndarray
    largest: int
    above: int

    @classmethod
    def of(cls, tables: ControlTables, k: int) -> _Nesting | None:
        """Margins as large as the work allows; None where there are none."""
        margin, cell, table = _pairs(tables)
        largest, above = _LARGEST_MARGIN * k, _ABOVE * k
        while largest >= k:
            small = tables.original[margin] <= largest
            lengths = tables.original.astype(float) + above + 1
            additions = (lengths[margin[small]] * lengths[cell[small]]).sum()
            counts = lengths[tables.original <= largest].sum()
            if additions <= _MOST_ADDITIONS and counts <= _MOST_COUNTS:
                break
            largest //= 2
        margin, cell, table = margin[small], cell[small], table[small]
        if largest < k or not len(margin):
            return None
        order = np.lexsort((cell, table, margin))
        margin, cell, table = margin[order], cell[order], table[order]
        weight = 1.0 / tables.original[margin]  # small margins pay most: they get the largest shares
        total = np.bincount(cell, weights=weight, minlength=len(tables.original))
        return cls(
            first=np.searchsorted(margin, np.arange(len(tables.original) + 1)),
            cell=cell,
            table=table,
            share=weight / total[cell],
            roots=total == 0,
            largest=largest,
            above=above,
        )


def _pairs(tables: ControlTables) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Margin, cell and table of the cell: margins in tables with as many of its variables as there are."""
    names = [frozenset(table) for table in tables.tables]
    pairs = [np.empty((0, 3), np.int64)]
    for t, variables in enumerate(names):
        inside = [s for s, other in enumerate(names) if other < variables]
        margins = [s for s in inside if not any(names[s] < names[u] for u in inside)]
        cells = np.flatnonzero(tables.table == t)
        rows = np.zeros(
            len(cells), np.int64
        )  # a combination of each cell: any will do, its margins are theirs
        rows[tables.cells[:, t] - cells[0]] = np.arange(len(tables.cells))
        occur = tables.original[cells] > 0
        cells, rows = cells[occur], rows[occur]
        pairs += [np.column_stack([tables.cells[rows, s], cells, np.full(len(cells), t)]) for s in margins]
    margin, cell, table = np.concatenate(pairs).astype(np.int64).T
    return margin, cell, table


@kernel
def _least_costs(
    order: np.ndarray,
    original: np.ndarray,
    last: np.ndarray,
    first: np.ndarray,
    inside: np.ndarray,
    table: np.ndarray,
    share: np.ndarray,
    k: int,
) -> np.ndarray:
    """Least cost of each cell with what lies in it, over its counts, (cells,).

    Parameters
    ----------
    order : (cells,) cells, those that lie in others first
    last : (cells,) count from which on counts of a cell are told apart no more; -1: larger than is priced
    """
    start = np.concatenate((np.zeros(1, np.int64), np.cumsum(last + 1)))
    costs = np.zeros(start[-1])
    least = np.zeros(len(original))
    for cell in order:
        top = last[cell]
        if top < 0 or original[cell] == 0:
            continue
        by_count = costs[start[cell] : start[cell + 1]]
        for count in range(top + 1):
            attainable = count == 0 or count >= k
            by_count[count] = (count - original[cell]) ** 2 / original[cell] if attainable else np.inf
        pair = first[cell]
        while pair < first[cell + 1]:
            end = pair
            sums = np.full(top + 1, np.inf)
            sums[0] = 0.0
            while end < first[cell + 1] and table[end] == table[pair]:
                begin = start[inside[end]]
                sums = _added(sums, costs[begin : start[inside[end] + 1]], share[end])
                end += 1
            by_count += sums
            pair = end
        least[cell] = by_count.min()
    return least


@kernel
def _added(sums: np.ndarray, costs: np.ndarray, share: float) -> np.ndarray:
    """Least cost of each sum with one cell more; the last entry of each array is for all that is larger.

    Counts beyond the last of `costs` cost its last entry at least, sums beyond the last of `sums` likewise.
    """
    top, most = len(sums) - 1, len(costs) - 1
    added = np.full(top + 1, np.inf)
    for so_far in range(top + 1):
        if sums[so_far] < np.inf:
            for count in range(most + 1):
                if costs[count] < np.inf:
                    at = min(so_far + count, top)
                    added[at] = min(added[at], sums[so_far] + share * costs[count])
    low = np.inf
    for so_far in range(top + 1 - most):
        low = min(low, sums[so_far])
        added[so_far + most] = min(added[so_far + most], low + share * costs[most])
    return added
