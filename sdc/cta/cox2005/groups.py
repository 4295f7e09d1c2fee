"""Groups of sensitive cells that move in one direction together, by size and improved by swaps."""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.cox2005.alternate import by_size
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.kernels.compile import kernel
from scipy import sparse


def groups_by_size(problem: Problem, count: int) -> np.ndarray:
    """(p,) group of each cell: dealt out in turn from the largest to the smallest (Cox 2005, section 3).

    A sensitive cell that equals one of its totals, itself sensitive, shares the total's group.
    """
    groups = np.empty(problem.size, dtype=np.int64)
    groups[by_size(problem)] = np.arange(problem.size) % count
    for part, total in _equal_totals(problem):
        groups[part] = groups[total]
    return groups


def swapped(problem: Problem, groups: np.ndarray) -> np.ndarray:
    """Swap cells between groups while the number of totals shared within groups falls.

    Hybrid-With-Swaps of Cox 2005, section 3: the score of a group counts, over its pairs of cells, the
    totals they have in common; first improvement, in the order of cells, until none is left.
    """
    incidence = problem.incidence
    improved = groups.astype(np.int64).copy()
    _swap(incidence.indptr.astype(np.int64), incidence.indices.astype(np.int64), incidence.shape[0], improved)
    return improved


def _equal_totals(problem: Problem) -> list[tuple[int, int]]:
    """Pairs (cell, total) of sensitive cells in one line with opposite entries and equal values."""
    rows = sparse.csr_matrix(problem.incidence)
    values = problem.table.values[problem.sensitive]
    pairs = []
    for line in range(rows.shape[0]):
        cells = rows.indices[rows.indptr[line] : rows.indptr[line + 1]]
        entries = rows.data[rows.indptr[line] : rows.indptr[line + 1]]
        for total in cells[entries < 0]:
            pairs += [(int(cell), int(total)) for cell in cells[entries > 0] if values[cell] == values[total]]
    return pairs


@kernel
def _swap(pointers, lines, line_count, groups):
    size, count = len(groups), groups.max() + 1
    together = np.zeros((count, line_count), dtype=np.int64)
    for cell in range(size):
        for a in range(pointers[cell], pointers[cell + 1]):
            together[groups[cell], lines[a]] += 1
    improving = True
    while improving:
        improving = False
        for one in range(size):
            for two in range(one + 1, size):
                first, second = groups[one], groups[two]
                if first == second:
                    continue
                change = 0
                for a in range(pointers[one], pointers[one + 1]):
                    line = lines[a]
                    change += together[second, line] - together[first, line] + 1
                    together[first, line] -= 1
                    together[second, line] += 1
                for a in range(pointers[two], pointers[two + 1]):
                    line = lines[a]
                    change += together[first, line] - together[second, line] + 1
                    together[second, line] -= 1
                    together[first, line] += 1
                if change < 0:
                    groups[one], groups[two] = second, first
                    improving = True
                else:
                    for a in range(pointers[one], pointers[one + 1]):
                        together[first, lines[a]] += 1
                        together[second, lines[a]] -= 1
                    for a in range(pointers[two], pointers[two + 1]):
                        together[second, lines[a]] += 1
                        together[first, lines[a]] -= 1
