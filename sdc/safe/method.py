"""The SAFE heuristic: eliminate counts below k within error bounds, then tighten the bounds (Cost 2023, 2.2).

A "confidentiality problem" of the paper is a key combination with a count from 1 to k - 1.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.algorithms.safe import SafeParams
from microguard.sdc.errors import InvalidParameter
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import FrequencyVector
from microguard.sdc.nominal.neighbours import sorted_combinations
from microguard.sdc.safe.selection import IMPROVEMENT_PENALTY, REPAIR_PENALTY, best_change

#: Selection rules of Algorithm 1, in its order. A rule selects the key combinations that are changed
#: together: the next problems (line 6); a problem and its nearest occupied neighbours (line 18); a problem
#: and its neighbours in the vector (line 21); every sequence of consecutive combinations (line 24).
PROBLEMS, OCCUPIED, ADJACENT, ALL = range(4)


def safe_counts(
    frequencies: FrequencyVector, k: int, tables: ControlTables, parameters: SafeParams
) -> tuple[np.ndarray, int]:
    """Return the protected counts of Algorithms 1 and 3, and the number of selection rules applied.

    The number of records may change (section 3.2). A vector with a single key combination does not change,
    because it has at least k records.
    """
    counts = frequencies.counts.copy()
    if len(counts) < 2:
        return counts, 0
    order = sorted_combinations(frequencies)
    run = _Run(
        counts=counts[order],
        original=frequencies.counts[order],
        cells=np.ascontiguousarray(tables.cells[order]),
        errors=np.zeros(len(tables.original), np.int64),
        k=k,
        deviation=max(parameters.allowed_deviation + k - 3, k - 1),
        slice=min(parameters.slice, len(counts)),
    )
    work, bounds = _eliminate(run, tables, parameters)
    work += _improve(run, bounds, tables, parameters)
    counts[order] = run.counts
    return counts, work


def extra_error(parameters: SafeParams, original: np.ndarray) -> np.ndarray:
    """Return the extra error g of cells with these original counts."""
    return np.searchsorted(np.array(parameters.extra_error_from, np.int64), original, side="right")


def target_bounds(parameters: SafeParams, dimension: np.ndarray) -> np.ndarray:
    """Return the target bounds b* of the cells of tables with the given dimensions."""
    one, higher = parameters.target_bound_one_dimension, parameters.target_bound_higher_dimension
    return np.where(dimension == 1, one, higher).astype(np.int64)


class _Run:
    """Working vector y*, its table errors, and the parameters of the run."""

    def __init__(
        self,
        *,
        counts: np.ndarray,
        original: np.ndarray,
        cells: np.ndarray,
        errors: np.ndarray,
        k: int,
        deviation: int,
        slice: int,
    ) -> None:
        self.counts, self.original, self.cells, self.errors = counts, original, cells, errors
        self.k, self.deviation, self.slice = k, deviation, slice

    def problems(self, end: int) -> np.ndarray:
        """Return the positions of the confidentiality problems (counts from 1 to k - 1) before `end`."""
        return np.flatnonzero((self.counts[:end] > 0) & (self.counts[:end] < self.k))

    def sweep(self, slices: np.ndarray, bounds: np.ndarray, improving: bool) -> int:
        """Apply the selection rule to each slice in turn."""
        penalty = IMPROVEMENT_PENALTY if improving else REPAIR_PENALTY
        _sweep(
            slices,
            self.counts,
            self.original,
            self.k,
            self.deviation,
            self.cells,
            self.errors,
            bounds,
            penalty,
            improving,
        )
        return len(slices)


def _eliminate(run: _Run, tables: ControlTables, parameters: SafeParams) -> tuple[int, np.ndarray]:
    """Run Algorithm 1, lines 1 to 26; return the work done and the final bounds b + g."""
    extra = extra_error(parameters, tables.original)
    one = tables.width == 1
    low, high = parameters.allowed_bound_one_dimension, parameters.allowed_bound_higher_dimension
    bounds = np.where(one, low, high) + extra
    largest = int(run.original.sum()) + run.k * len(run.counts)
    m, work = len(run.counts), 0
    at_first = len(run.problems(m))
    while len(run.problems(m)):
        for variant in (PROBLEMS, OCCUPIED, ADJACENT, ALL):
            for end in _ends(m, parameters):
                while True:
                    before = len(run.problems(end))
                    work += run.sweep(_slices(run, end, variant), bounds, improving=False)
                    eliminated = before - len(run.problems(end))
                    if eliminated >= parameters.stagnation * before or not len(run.problems(m)):
                        break
                    low, high = _raise(low, high, parameters)
                    if low > largest:
                        raise InvalidParameter(
                            f"SAFE with allowed_deviation = {parameters.allowed_deviation}: expected that "
                            f"no key combination has 1 to k - 1 records, found {len(run.problems(m))} that "
                            "could not be eliminated. Raise allowed_deviation"
                        )
                    bounds = np.where(one, low, high) + extra
            if len(run.problems(m)) <= parameters.stagnation * at_first:
                break
    return work, bounds


def _improve(run: _Run, bounds: np.ndarray, tables: ControlTables, parameters: SafeParams) -> int:
    """Run Algorithm 3: lower the bounds while few cells exceed them and apply the selection rule,
    repeatedly.
    """
    target = np.minimum(target_bounds(parameters, tables.width), bounds)
    slices = _slices(run, len(run.counts), ALL)
    work = 0
    for _ in range(parameters.max_improvements):
        sizes = np.abs(run.errors)
        if (bounds <= target).all() or (sizes > bounds).sum() >= max(1, parameters.max_total_exceedings):
            break
        while (bounds > target).any():
            lower = np.maximum(bounds - 1, target)
            if (sizes > lower).sum() >= max(1, parameters.max_exceedings):
                break
            bounds = lower
        work += run.sweep(slices, bounds, improving=True)
    return work


def _raise(low: int, high: int, parameters: SafeParams) -> tuple[int, int]:
    """Raise the bound of higher dimensions by 1; raise the bound of one dimension, too, if the gap between
    both is at its maximum.
    """
    if high - low >= parameters.max_gap_between_bounds:
        low += 1
    return low, high + 1


def _ends(m: int, parameters: SafeParams) -> list[int]:
    """Return the end positions of the growing prefix of the vector.

    The first prefix is the first part; each further prefix has one more part.
    """
    ends = list(range(parameters.first_part, m, parameters.part))
    return [*ends, m]


def _slices(run: _Run, end: int, variant: int) -> np.ndarray:
    """Return the positions that are changed together, (slices, slice length)."""
    m, s = len(run.counts), run.slice
    problems = run.problems(end)
    if variant == ALL:
        first = np.arange(m - s + 1)
        return first[:, None] + np.arange(s)
    if variant == PROBLEMS:
        if len(problems) < s:
            variant = ADJACENT
        else:
            starts = np.minimum(np.arange(0, len(problems), s), len(problems) - s)
            return problems[starts[:, None] + np.arange(s)]
    if variant == OCCUPIED:
        occupied = np.flatnonzero(run.counts > 0)
        if len(occupied) >= s:
            at = np.searchsorted(occupied, problems)
            starts = np.clip(at - (s - 1) // 2, 0, len(occupied) - s)
            return occupied[starts[:, None] + np.arange(s)]
    starts = np.clip(problems - (s - 1) // 2, 0, m - s)
    return starts[:, None] + np.arange(s)


@kernel
def _sweep(
    slices: np.ndarray,
    counts: np.ndarray,
    original: np.ndarray,
    k: int,
    deviation: int,
    cells: np.ndarray,
    errors: np.ndarray,
    bounds: np.ndarray,
    penalty: np.ndarray,
    improving: bool,
) -> None:
    for row in range(slices.shape[0]):
        best_change(slices[row], counts, original, k, deviation, cells, errors, bounds, penalty, improving)
