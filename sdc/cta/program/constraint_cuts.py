"""Cuts of single constraints: lower bounds on the sum of adjustments within each constraint.

Let the sensitive cells of a constraint have base deviations b_i in {-down_i, up_i}. The other adjustments in
the constraint sum to at least min |sum of entry_i b_i|, the smallest imbalance. It is computed by meet in the
middle: sort the sums of both halves and compare them. The cut is valid in both modes, because deviations
beyond the protection levels count as adjustments.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.program.problem import Problem
from scipy import sparse

#: Maximum number of sensitive cells of a constraint. Meet in the middle sorts 2^(half of it) sums. With more
#: cells the smallest imbalance is nearly zero.
MAX_CELLS = 24
#: Maximum number of sensitive cells of a constraint whose direction vectors are all enumerated in the integer
#: program.
MAX_PATTERN_CELLS = 10
#: Minimum scaled imbalance of a cut; protection levels are about 64.
NEGLIGIBLE = 1e-6


@dataclass(frozen=True)
class ConstraintCuts:
    """Lower bounds on the sums of adjustments in constraints.

    Attributes
    ----------
    constraints : (cuts,) positions in ``Problem.constraints``
    least : (cuts,) smallest imbalance, scaled
    """

    constraints: np.ndarray
    least: np.ndarray


def constraint_cuts(problem: Problem) -> ConstraintCuts:
    """Return the cut of each constraint with 1 to `MAX_CELLS` sensitive cells, without negligible cuts."""
    incidence = sparse.csr_matrix(problem.incidence)
    constraints, least = [], []
    for constraint in range(incidence.shape[0]):
        start, end = incidence.indptr[constraint], incidence.indptr[constraint + 1]
        if 0 < end - start <= MAX_CELLS:
            smallest = smallest_sum(*signed_levels(problem, incidence, constraint))
            if smallest > NEGLIGIBLE:
                constraints.append(constraint)
                least.append(smallest)
    return ConstraintCuts(np.array(constraints, dtype=np.int64), np.array(least))


def signed_levels(
    problem: Problem, incidence: sparse.csr_matrix, constraint: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the signed base deviations of a constraint's sensitive cells: downwards (k,) and upwards
    (k,).
    """
    start, end = incidence.indptr[constraint], incidence.indptr[constraint + 1]
    cells, entries = incidence.indices[start:end], incidence.data[start:end]
    down = np.where(problem.forced[cells] == 1, problem.up[cells], -problem.down[cells])
    up = np.where(problem.forced[cells] == 0, -problem.down[cells], problem.up[cells])
    return entries * down, entries * up


def smallest_sum(first: np.ndarray, second: np.ndarray, around: float = 0.0) -> float:
    """Return the smallest |sum - around| over all choices of `first` or `second` for each cell, both (k,)."""
    half = len(first) // 2
    left = _sums(first[:half], second[:half])
    right = np.sort(_sums(first[half:], second[half:]))
    target = around - left
    position = np.searchsorted(right, target)
    above = np.abs(right[np.minimum(position, len(right) - 1)] - target)
    below = np.abs(right[np.maximum(position - 1, 0)] - target)
    return float(min(above.min(), below.min()))


def patterns(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Enumerate all direction vectors of the k cells of a constraint: (2^k, k) of 0 and 1, and their
    imbalances (2^k,).
    """
    choices = np.array(list(itertools.product((0, 1), repeat=len(first))), dtype=np.int8)
    sums = np.where(choices == 1, second, first).sum(axis=1)
    return choices, np.abs(sums)


def _sums(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    sums = np.zeros(1)
    for low, high in zip(first, second, strict=True):
        sums = np.concatenate([sums + low, sums + high])
    return sums
