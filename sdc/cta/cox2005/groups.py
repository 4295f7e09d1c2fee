"""Groups of sensitive cells that share one direction: formed by size, then improved by swaps."""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.cox2005.alternate import by_size
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.kernels.compile import kernel
from scipy import sparse


def groups_by_size(problem: Problem, count: int) -> np.ndarray:
    """Assign the sensitive cells in descending order of value to the groups in turn, (p,).

    A sensitive cell that equals one of its sensitive totals is in the group of the total.

    Source: Cox 2005, section 3.
    """
    groups = np.empty(problem.size, dtype=np.int64)
    groups[by_size(problem)] = np.arange(problem.size) % count
    for part, total in _equal_totals(problem):
        groups[part] = groups[total]
    return groups


def swapped(problem: Problem, groups: np.ndarray) -> np.ndarray:
    """Swap cells between groups until no swap reduces the number of totals shared by cells of one group.

    The score of a group is the number of common totals, summed over its pairs of cells. The first improving
    swap in the order of cells is taken.

    Source: Cox 2005, section 3 (Hybrid-With-Swaps).
    """
    incidence = problem.incidence
    improved = groups.astype(np.int64).copy()
    _swap(incidence.indptr.astype(np.int64), incidence.indices.astype(np.int64), incidence.shape[0], improved)
    return improved


def _equal_totals(problem: Problem) -> list[tuple[int, int]]:
    """Return the pairs of a sensitive cell and one of its sensitive totals whose values are equal."""
    rows = sparse.csr_matrix(problem.incidence)
    values = problem.table.values[problem.sensitive]
    pairs = []
    for row in range(rows.shape[0]):
        cells = rows.indices[rows.indptr[row] : rows.indptr[row + 1]]
        entries = rows.data[rows.indptr[row] : rows.indptr[row + 1]]
        for total in cells[entries < 0]:
            pairs += [(int(cell), int(total)) for cell in cells[entries > 0] if values[cell] == values[total]]
    return pairs


@kernel
def _swap(pointers, rows, row_count, groups):
    size, count = len(groups), groups.max() + 1
    together = np.zeros((count, row_count), dtype=np.int64)
    for cell in range(size):
        for a in range(pointers[cell], pointers[cell + 1]):
            together[groups[cell], rows[a]] += 1
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
                    row = rows[a]
                    change += together[second, row] - together[first, row] + 1
                    together[first, row] -= 1
                    together[second, row] += 1
                for a in range(pointers[two], pointers[two + 1]):
                    row = rows[a]
                    change += together[first, row] - together[second, row] + 1
                    together[second, row] -= 1
                    together[first, row] += 1
                if change < 0:
                    groups[one], groups[two] = second, first
                    improving = True
                else:
                    for a in range(pointers[one], pointers[one + 1]):
                        together[first, rows[a]] += 1
                        together[second, rows[a]] -= 1
                    for a in range(pointers[two], pointers[two + 1]):
                        together[second, rows[a]] += 1
                        together[first, rows[a]] -= 1
