"""Lower bounds on the chi-square of every k-anonymous frequency vector of a file, for every method.

A published count is 0 or at least k. A cell is a sum of such counts, so it is 0 or at least k too.

- The *free* bound treats each cell alone: a cell with fewer than k records costs at least the cheaper of the
  counts 0 and k.
- The *nested* bound also uses that the cells of a table add up to those of its margins. If many small cells
  are emptied or filled, a small margin changes. Each cell distributes its cost, and that of its inner cells,
  over its margins in fixed shares. The least cost of a margin with a given count is then a convolution over
  its inner cells. The copies of a cell in different margins need not agree, so this is a Lagrangian
  relaxation with fixed multipliers, and its value is a lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.nominal.control_tables import ControlTables

#: Maximum number of records of a margin in the bound, in multiples of k. In larger margins, changes cost
#: almost nothing: for full Adult, ten times as many margins raise the bound by 0.1 %.
_LARGEST_MARGIN = 30
#: Range of counts per cell: counts above original + this * k are treated as one level.
_ABOVE = 4
#: Limits on the additions of the convolutions and on the stored counts: about two seconds and 160 MB. Beyond
#: them, only smaller margins are used.
_MOST_ADDITIONS, _MOST_COUNTS = 2_000_000_000, 20_000_000
#: Shares by which the free and the nested bound are reduced, so that rounding errors never raise them above
#: the optimum. They are far above the rounding errors of one sum and of nested convolutions, respectively.
_ROUNDING_OF_SUM, _ROUNDING_OF_CONVOLUTIONS = 1e-12, 1e-9


def free_bound(original: np.ndarray, k: int) -> float:
    """Return the free bound: the sum over all cells of the least cost of a count that is 0 or at least k.

    Parameters
    ----------
    original : (cells,) int array
        Original counts. Cells with count 0 add nothing.
    k : int

    Returns
    -------
    float
        Bound on chi-square, the sum of (n - o)^2 / o with original counts o and protected counts n.
    """
    return float(least_chi2(original, k).sum()) * (1 - _ROUNDING_OF_SUM)


def least_chi2(original: np.ndarray, k: int) -> np.ndarray:
    """Return the least cost of each cell with a count of 0 or at least k, (cells,); see `free_bound`."""
    count = np.maximum(original, 1).astype(float)
    return np.where((original > 0) & (original < k), np.minimum(count, (k - count) ** 2 / count), 0.0)


def nested_bound(tables: ControlTables, k: int) -> float:
    """Return the nested bound, which uses control tables that are margins of others; it is at least the free
    bound.

    The bound is valid for every vector of counts that are 0 or at least k. The relaxation keeps only one kind
    of constraint: cells add up to their small margins.
    """
    free = free_bound(tables.original, k)
    nesting = _Nesting.from_tables(tables, k)
    if nesting is None:
        return free
    # number of cells per table, used for sorting only
    width = np.bincount(tables.table, minlength=len(tables.tables))
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
    """Pairs of a small margin and a cell inside it, sorted by margin and then by the cell's table.

    Attributes
    ----------
    first : (cells + 1,) int array
        First pair of each margin.
    cell, table, share : (pairs,) arrays
        Inner cell, its table, and the share of its cost that it passes to this margin.
    roots : (cells,) bool array
        Cells that are in no small margin.
    largest : int
        Largest number of records of a small margin.
    above : int
        Counts up to this number above the original count are distinguished.
    """

    first: np.ndarray
    cell: np.ndarray
    table: np.ndarray
    share: np.ndarray
    roots: np.ndarray
    largest: int
    above: int

    @classmethod
    def from_tables(cls, tables: ControlTables, k: int) -> _Nesting | None:
        """Build the pairs for margins as large as the work limits allow; return None if there are no
        pairs.
        """
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
        # small margins have large shares, because their changes cost most
        weight = 1.0 / tables.original[margin]
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
    """Return for each pair of a margin and a cell inside it the margin, the cell and the cell's table."""
    names = [frozenset(table) for table in tables.tables]
    pairs = [np.empty((0, 3), np.int64)]
    for t, variables in enumerate(names):
        inside = [s for s, other in enumerate(names) if other < variables]
        margins = [s for s in inside if not any(names[s] < names[u] for u in inside)]
        cells = np.flatnonzero(tables.table == t)
        # one key combination of each cell suffices, because all combinations of a cell have the same margins
        rows = np.zeros(len(cells), np.int64)
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
    """Compute the least cost of each cell together with its inner cells, (cells,).

    Parameters
    ----------
    order : (cells,) int array
        Cells in topological order: inner cells before their margins.
    last : (cells,) int array
        Largest count of a cell that is distinguished; -1 for cells that are too large.
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
    """Return the min-plus convolution of `sums` with the costs of a further cell.

    The last entry of each array is a lower bound for all larger counts or sums.
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
