"""Selection rules of SAFE: the best joint change of a few key combinations (Cost 2023, Algorithms 2 and 4).

All changes of a slice of combinations by -k to k each are evaluated. The criteria are sums over cells, and
the error of a cell depends on the sum of the changes of the combinations that it contains. Each criterion is
therefore tabulated by set of combinations and sum of changes. A candidate then costs one look-up per set
instead of one visit per cell.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import kernel

#: Penalty s of Algorithm 2, by the distance of an error to its bound: 0, 1 or 2.
REPAIR_PENALTY = np.array([9, 4, 1], dtype=np.int64)
#: Penalty s~ of Algorithm 4, by the distance of an error to its bound: 0, 1, 2 or 3.
IMPROVEMENT_PENALTY = np.array([500, 9, 4, 1], dtype=np.int64)


@kernel
def best_change(
    chosen: np.ndarray,
    counts: np.ndarray,
    original: np.ndarray,
    k: int,
    allowed_deviation: int,
    cells: np.ndarray,
    errors: np.ndarray,
    bounds: np.ndarray,
    penalty: np.ndarray,
    improving: bool,
) -> int:
    """Apply the best change of the chosen key combinations; return the number of problems it eliminates.

    Parameters
    ----------
    chosen : (slice,) int array
        Distinct positions of the combinations.
    counts : (m,) int64 array
        Current frequencies, changed in place.
    original : (m,) int64 array
        Original frequencies.
    cells : (m, T) int32 array
        Cell of each combination in each table.
    errors : (cells,) int64 array
        Current errors, changed in place.
    bounds : (cells,) int64 array
        b + g in Algorithm 2, b in Algorithm 4.
    penalty : array
        `REPAIR_PENALTY` or `IMPROVEMENT_PENALTY`.
    improving : bool
        False: Algorithm 2, which forbids errors above the bound and minimises the confidentiality problems.
        True: Algorithm 4, which forbids problems and minimises the errors above the bound.

    Notes
    -----
    Ties are broken by the penalty, then by the sum of absolute errors, then by the lexicographic order of the
    changes (the paper's `first`).
    """
    s = len(chosen)
    exceedings, penalties, absolutes = _tabulate(chosen, cells, errors, bounds, penalty, k)
    middle = s * k
    sets = exceedings.shape[0]
    sums = np.zeros(sets, np.int64)
    change = np.full(s, -k, np.int64)
    best = np.zeros(s, np.int64)
    best_first = best_second = best_third = 1 << 62
    before = 0
    for j in range(s):
        before += 0 < counts[chosen[j]] < k
    has_incumbent = False
    while True:
        problems = 0
        admissible = True
        for j in range(s):
            value = counts[chosen[j]] + change[j]
            if value < 0 or abs(value - original[chosen[j]]) > allowed_deviation:
                admissible = False
                break
            problems += 0 < value < k
        if admissible and not (improving and problems > 0):
            exceeding = penalised = absolute = 0
            for members in range(1, sets):
                total = 0
                for j in range(s):
                    if members >> j & 1:
                        total += change[j]
                sums[members] = total
                exceeding += exceedings[members, middle + total]
            first = exceeding if improving else problems
            if first <= best_first and (improving or exceeding == 0):
                for members in range(1, sets):
                    penalised += penalties[members, middle + sums[members]]
                    absolute += absolutes[members, middle + sums[members]]
                if (
                    not has_incumbent
                    or first < best_first
                    or (penalised < best_second)
                    or (penalised == best_second and absolute < best_third)
                ):
                    has_incumbent = True
                    best_first, best_second, best_third = first, penalised, absolute
                    best[:] = change
        j = s - 1
        while j >= 0 and change[j] == k:
            change[j] = -k
            j -= 1
        if j < 0:
            break
        change[j] += 1
    after = 0
    for j in range(s):
        counts[chosen[j]] += best[j]
        after += 0 < counts[chosen[j]] < k
        if best[j] != 0:
            for t in range(cells.shape[1]):
                errors[cells[chosen[j], t]] += best[j]
    return before - after


@kernel
def _tabulate(
    chosen: np.ndarray,
    cells: np.ndarray,
    errors: np.ndarray,
    bounds: np.ndarray,
    penalty: np.ndarray,
    k: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tabulate excess, penalty and absolute error for each set (bit mask) of combinations and each sum of
    changes.
    """
    s = len(chosen)
    shape = (1 << s, 2 * s * k + 1)
    exceedings = np.zeros(shape, np.int64)
    penalties = np.zeros(shape, np.int64)
    absolutes = np.zeros(shape, np.int64)
    for t in range(cells.shape[1]):
        seen = 0
        for j in range(s):
            if seen >> j & 1:
                continue
            cell = cells[chosen[j], t]
            members, size = 0, 0
            for q in range(j, s):
                if cells[chosen[q], t] == cell:
                    members |= 1 << q
                    size += 1
            seen |= members
            for total in range(-size * k, size * k + 1):
                error = abs(errors[cell] + total)
                below = bounds[cell] - error
                if below < 0:
                    exceedings[members, s * k + total] += 1
                elif below < len(penalty):
                    penalties[members, s * k + total] += penalty[below]
                absolutes[members, s * k + total] += error
    return exceedings, penalties, absolutes
