"""What a line alone proves: the smallest |sum of signed protections| must be made good inside it.

For a line with base deviations b_i in {-down_i, up_i} on its sensitive cells, the other adjustments sum to
at least min |sum of entry_i b_i|, found by meet in the middle (sort the sums of both halves, walk them
against each other). Valid in both modes: what goes beyond the minimal levels counts as adjustment.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.program.problem import Problem
from scipy import sparse

#: Meet in the middle sorts 2^(half of this) sums; with more cells the smallest sum is next to nothing.
MAX_CELLS = 24
#: Lines with up to this many sensitive cells are written out pattern by pattern in the integer program.
MAX_PATTERN_CELLS = 10
#: In scaled units, so far below any level that a cut this weak is not worth its row.
NEGLIGIBLE = 1e-6


@dataclass(frozen=True)
class LineCuts:
    """Lower bounds on the adjustments of lines beyond the base deviations.

    Attributes
    ----------
    lines : (cuts,) positions in ``Problem.lines``
    least : (cuts,) smallest |sum of signed protections|, scaled
    """

    lines: np.ndarray
    least: np.ndarray


def line_cuts(problem: Problem) -> LineCuts:
    """The cut of every line with 1 to `MAX_CELLS` sensitive cells whose right side is not negligible."""
    incidence = sparse.csr_matrix(problem.incidence)
    lines, least = [], []
    for line in range(incidence.shape[0]):
        start, end = incidence.indptr[line], incidence.indptr[line + 1]
        if 0 < end - start <= MAX_CELLS:
            smallest = smallest_sum(*signed_levels(problem, incidence, line))
            if smallest > NEGLIGIBLE:
                lines.append(line)
                least.append(smallest)
    return LineCuts(np.array(lines, dtype=np.int64), np.array(least))


def signed_levels(problem: Problem, incidence: sparse.csr_matrix, line: int) -> tuple[np.ndarray, np.ndarray]:
    """Deviation of each sensitive cell of a line, down and up, with the sign of its entry; (k,) each."""
    start, end = incidence.indptr[line], incidence.indptr[line + 1]
    cells, entries = incidence.indices[start:end], incidence.data[start:end]
    down = np.where(problem.forced[cells] == 1, problem.up[cells], -problem.down[cells])
    up = np.where(problem.forced[cells] == 0, -problem.down[cells], problem.up[cells])
    return entries * down, entries * up


def smallest_sum(first: np.ndarray, second: np.ndarray, around: float = 0.0) -> float:
    """Smallest |sum - around| over all choices of one of two numbers per cell."""
    half = len(first) // 2
    left = _sums(first[:half], second[:half])
    right = np.sort(_sums(first[half:], second[half:]))
    target = around - left
    position = np.searchsorted(right, target)
    above = np.abs(right[np.minimum(position, len(right) - 1)] - target)
    below = np.abs(right[np.maximum(position - 1, 0)] - target)
    return float(min(above.min(), below.min()))


def patterns(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All directions of a line's k cells: (2^k, k) of 0 and 1, and the (2^k,) |sum of signed protections|."""
    choices = np.array(list(itertools.product((0, 1), repeat=len(first))), dtype=np.int8)
    sums = np.where(choices == 1, second, first).sum(axis=1)
    return choices, np.abs(sums)


def _sums(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    sums = np.zeros(1)
    for low, high in zip(first, second, strict=True):
        sums = np.concatenate([sums + low, sums + high])
    return sums
