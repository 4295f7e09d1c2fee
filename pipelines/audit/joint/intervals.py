"""Narrowing of the intervals of unknowns by propagation over rows, exact elimination and linear programs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from microguard.pipelines.audit.joint.system import System
from scipy import sparse
from scipy.optimize import linprog

#: Maximum number of sweeps of interval propagation; each costs one pass over the entries.
SWEEPS = 30
#: Relative difference below which two numbers may differ by rounding errors only.
TOLERANCE = 1e-9
#: Eigenvalues below this share of the largest count as zero; sums over sets have a wide gap there.
RANK_TOLERANCE = 1e-10
#: Entries of the null space below this count as zero.
NULL_TOLERANCE = 1e-6
#: Minimum width of a row in least squares, as a share of the widest row; narrower rows get equal weights.
FLATTEST = 1e-4
#: Number of random directions in which extreme points of the feasible set are computed. In these programs,
#: unknowns without bounds are limited to this multiple of the largest number.
WITNESSES, FARTHEST = 3, 10.0
#: Status codes of scipy's linear programs: stopped at a limit, infeasible, unbounded.
STOPPED, INFEASIBLE, UNBOUNDED = 1, 2, 3


class Contradiction(Exception):
    """Raised if no values satisfy all statements, because some statements describe different records."""


def propagate(system: System, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Narrow intervals until no row narrows one further, in at most `SWEEPS` sweeps (bounds consistency;
    Davis 1987).

    Raises
    ------
    Contradiction
    """
    lower, upper = lower.copy(), upper.copy()
    matrix = system.rows.tocoo()
    row, column, entry = matrix.row, matrix.col, matrix.data
    size = np.zeros(len(system))
    for _ in range(SWEEPS if len(row) else 0):
        ends = np.where(entry > 0, lower[column], upper[column]) * entry
        tops = np.where(entry > 0, upper[column], lower[column]) * entry
        m = len(system.low)
        open_low, open_high = np.isinf(ends), np.isinf(tops)
        count_low, count_high = np.bincount(row, open_low, m), np.bincount(row, open_high, m)
        sum_low = np.bincount(row, np.where(open_low, 0.0, ends), m)
        sum_high = np.bincount(row, np.where(open_high, 0.0, tops), m)
        scale = np.bincount(row, np.abs(np.where(open_low, 0.0, ends)), m) + 1.0
        others_low = np.where(
            count_low[row] - open_low > 0, -np.inf, sum_low[row] - np.where(open_low, 0, ends)
        )
        others_high = np.where(
            count_high[row] - open_high > 0, np.inf, sum_high[row] - np.where(open_high, 0, tops)
        )
        slack = TOLERANCE * scale[row]
        with np.errstate(invalid="ignore"):
            most = (system.high[row] - others_low + slack) / entry
            least = (system.low[row] - others_high - slack) / entry
        new_lower, new_upper = lower.copy(), upper.copy()
        np.maximum.at(new_lower, column, np.nan_to_num(np.where(entry > 0, least, most), nan=-np.inf,
                                                       posinf=np.inf, neginf=-np.inf))  # fmt: skip
        np.minimum.at(new_upper, column, np.nan_to_num(np.where(entry > 0, most, least), nan=np.inf,
                                                       posinf=np.inf, neginf=-np.inf))  # fmt: skip
        if system.whole:
            new_lower, new_upper = _whole(new_lower, new_upper)
        _require_consistent(new_lower, new_upper)
        with np.errstate(invalid="ignore"):
            size = np.fmax(np.abs(new_lower), np.abs(new_upper))
            gained = (new_lower > lower + 1e-6 * (1 + size)) | (new_upper < upper - 1e-6 * (1 + size))
        lower, upper = new_lower, new_upper
        if not gained.any():
            break
    return lower, upper


def _whole(lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.ceil(lower - 1e-6), np.floor(upper + 1e-6)


def _require_consistent(lower: np.ndarray, upper: np.ndarray) -> None:
    with np.errstate(invalid="ignore"):
        gap = lower - upper
        limit = 1e-6 * (1.0 + np.fmin(np.abs(lower), np.abs(upper)))
    if bool(np.any(gap > limit)):
        raise Contradiction


@dataclass(frozen=True)
class Elimination:
    """Exact linear algebra of a component.

    Attributes
    ----------
    null : (n, d) array
        Basis of the null space: directions in which no row changes.
    inverse : (n, r) array
        Left inverse of the narrow rows, for the unknowns that these determine.
    middle, half : (r,) arrays
        Middle and half-width of the rows.
    """

    null: np.ndarray
    inverse: np.ndarray
    middle: np.ndarray
    half: np.ndarray

    def interval(self, direction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the intervals of linear combinations (c, n) of unknowns, as far as the rows
        determine them.
        """
        combined = direction @ self.inverse
        value, width = combined @ self.middle, np.abs(combined) @ self.half
        return value - width, value + width


def eliminate(system: System, lower: np.ndarray, upper: np.ndarray) -> Elimination:
    """Return the null space and a left inverse of the rows and of intervals with two finite ends."""
    n = len(system)
    two = np.isfinite(system.low) & np.isfinite(system.high)
    known = np.flatnonzero(np.isfinite(lower) & np.isfinite(upper) & (system.units == 0))
    single = sparse.csr_matrix((np.ones(len(known)), (np.arange(len(known)), known)), (len(known), n))
    matrix = sparse.vstack([system.rows[np.flatnonzero(two)], single]).toarray()
    low = np.concatenate([system.low[two], lower[known]])
    high = np.concatenate([system.high[two], upper[known]])
    norm = np.sqrt((matrix**2).sum(axis=1))
    used = norm > 0
    matrix, norm = matrix[used], norm[used]
    middle, half = (low + high)[used] / 2, (high - low)[used] / 2
    if not len(middle):
        return Elimination(np.eye(n), np.zeros((n, 0)), middle, half)
    weight = 1.0 / np.maximum(half / norm, FLATTEST * max(float((half / norm).max()), 1e-300)) / norm
    weight /= weight.max()
    scaled = matrix * weight[:, None]
    values, vectors = np.linalg.eigh(matrix.T @ (matrix / norm[:, None] ** 2))
    spanned = values > RANK_TOLERANCE * values[-1]
    basis = vectors[:, spanned]
    projected = scaled @ basis
    inverse = basis @ np.linalg.pinv(projected, rcond=1e-12) * weight[None, :]
    return Elimination(vectors[:, ~spanned], inverse, middle, half)


def determined(elimination: Elimination) -> np.ndarray:
    """Return for each unknown whether the rows determine it up to the width of their intervals, (n,) bool."""
    return (elimination.null**2).sum(axis=1) < NULL_TOLERANCE**2


def narrowed(
    system: System, lower: np.ndarray, upper: np.ndarray, elimination: Elimination
) -> tuple[np.ndarray, np.ndarray]:
    """Intersect the intervals with those of determined unknowns, and propagate the result.

    Raises
    ------
    Contradiction
    """
    of = np.flatnonzero(determined(elimination))
    if not len(of):
        return lower, upper
    low, high = elimination.interval(np.eye(len(system))[of])
    slack = 1e-7 * (1.0 + np.abs(low) + np.abs(high))
    lower, upper = lower.copy(), upper.copy()
    lower[of] = np.maximum(lower[of], low - slack)
    upper[of] = np.minimum(upper[of], high + slack)
    _require_consistent(lower, upper)
    return propagate(system, lower, upper)


def _scale(system: System, upper: np.ndarray) -> float:
    """Return the largest absolute value of the numbers, by which linear programs are scaled."""
    ends = [each[np.isfinite(each)] for each in (system.low, system.high, upper)]
    return float(np.max(np.abs(np.concatenate([*ends, [1.0]]))))


def _rows(system: System, scale: float) -> tuple[np.ndarray, sparse.csr_matrix, np.ndarray]:
    """Return the rows that are equations, and the other rows as a matrix with upper limits."""
    equal = np.flatnonzero(system.low == system.high)
    above, below = (
        np.setdiff1d(np.flatnonzero(np.isfinite(each)), equal) for each in (system.high, system.low)
    )
    limits = sparse.vstack([system.rows[above], -system.rows[below]]).tocsr()
    return equal, limits, np.concatenate([system.high[above], -system.low[below]]) / scale


def feasible_range(
    system: System, lower: np.ndarray, upper: np.ndarray, wanted: np.ndarray, most: int, iterations: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Narrow the intervals of some unknowns by linear programs (HiGHS; Huangfu and Hall 2018).

    Each solution is a feasible value (witness) for all unknowns. An unknown for which two witnesses differ by
    more than the limit needs no program of its own. The first witnesses are the ends of the feasible set in
    random directions.

    Parameters
    ----------
    wanted : (w,) int64 array
        Unknowns, in the order in which they are examined.
    most : int
        Maximum number of unknowns that are examined.
    iterations : int
        Maximum number of simplex iterations over all programs.

    Returns
    -------
    lower, upper : (n,) arrays
    left : int
        Number of unknowns that were neither examined nor shown to be wide, and of programs that failed.

    Raises
    ------
    Contradiction
    """
    lower, upper = lower.copy(), upper.copy()
    if not len(wanted):
        return lower, upper, 0
    programs = _Programs(system, lower, upper, iterations)
    if len(wanted) > WITNESSES:
        random = np.random.default_rng(0)
        for _ in range(WITNESSES):
            direction = np.zeros(len(system))
            direction[wanted] = random.choice([-1.0, 1.0], len(wanted))
            programs.end(direction, bounded=True)
            programs.end(-direction, bounded=True)
    examined = failed = 0
    for position, unknown in enumerate(wanted):
        if programs.wide(unknown):
            continue
        if examined == most or programs.iterations <= 0:
            rest = wanted[position:]
            return lower, upper, failed + int((~programs.wide(rest)).sum())
        examined += 1
        for sign in (1.0, -1.0):
            direction = np.zeros(len(system))
            direction[unknown] = sign
            status, point = programs.end(direction)
            if status == UNBOUNDED:
                ends = programs.least if sign > 0 else programs.largest
                ends[unknown] = -sign * np.inf
            elif point is None:
                failed += 1
            elif sign > 0:
                lower[unknown] = max(lower[unknown], point[unknown] - 1e-7 * (1 + abs(point[unknown])))
            else:
                upper[unknown] = min(upper[unknown], point[unknown] + 1e-7 * (1 + abs(point[unknown])))
        if system.whole:
            lower, upper = _whole(lower, upper)
    return lower, upper, failed


class _Programs:
    """Linear programs over one system, and the extreme values of each unknown among their solutions."""

    def __init__(self, system: System, lower: np.ndarray, upper: np.ndarray, iterations: int) -> None:
        self.iterations, self._whole = iterations, system.whole
        self._scale = _scale(system, upper)
        equal, limits, ends = _rows(system, self._scale)
        slack = 1e-9
        self._bounds = np.column_stack([lower, upper]) / self._scale + [-slack, slack]
        self._rows = {
            "A_ub": limits if len(ends) else None, "b_ub": ends + slack if len(ends) else None,
            "A_eq": system.rows[equal] if len(equal) else None,
            "b_eq": system.low[equal] / self._scale if len(equal) else None,
        }  # fmt: skip
        self.least, self.largest = np.full(len(system), np.inf), np.full(len(system), -np.inf)

    def end(self, direction: np.ndarray, *, bounded: bool = False) -> tuple[int, np.ndarray | None]:
        """Return the status and the point (n,) that minimises a direction; None if there is no solution.

        Raises
        ------
        Contradiction
        """
        if self.iterations <= 0:
            return STOPPED, None
        bounds = np.clip(self._bounds, -FARTHEST, FARTHEST) if bounded else self._bounds
        solved = linprog(direction, **self._rows, bounds=bounds, method="highs",
                         options={"maxiter": self.iterations})  # fmt: skip
        self.iterations -= int(solved.nit or 0)
        if solved.status == INFEASIBLE and not bounded:
            raise Contradiction
        if solved.status != 0:
            return int(solved.status), None
        point = np.asarray(solved.x * self._scale)
        np.minimum(self.least, point, out=self.least)
        np.maximum(self.largest, point, out=self.largest)
        return 0, point

    def wide(self, unknowns: np.ndarray) -> np.ndarray:
        """Return for each unknown whether it has two feasible values that are more than 1 % away from their
        middle.
        """
        least, largest = self.least[unknowns], self.largest[unknowns]
        return np.asarray(~known_within(least, largest, self._whole) & (largest >= least))


def consistent_part(system: System) -> System:
    """Widen statements by the least total amount until all are consistent, and drop the widened ones
    (Chinneck 2008).

    Raises
    ------
    Contradiction
        If the program has no solution.
    """
    m, n = len(system.low), len(system)
    alone = sparse.csr_matrix((np.ones(len(system.said)), (np.arange(len(system.said)), system.said)),
                              (len(system.said), n))  # fmt: skip
    matrix = sparse.vstack([system.rows, alone])
    low, high = np.append(system.low, system.said_low), np.append(system.high, system.said_high)
    count = len(low)
    ends = np.append(low, high)
    scale = float(np.abs(ends[np.isfinite(ends)]).max(initial=1.0))
    room, none = sparse.identity(count), sparse.csr_matrix((count, count))
    above, below = np.isfinite(high), np.isfinite(low)
    limits = sparse.vstack([
        sparse.hstack([matrix, -room, none]).tocsr()[above],
        sparse.hstack([-matrix, none, -room]).tocsr()[below],
    ])  # fmt: skip
    solved = linprog(
        np.append(np.zeros(n), np.ones(2 * count)), A_ub=limits,
        b_ub=np.append(high[above], -low[below]) / scale,
        bounds=[(0 if each else None, None) for each in system.positive] + [(0, None)] * (2 * count),
        method="highs",
    )  # fmt: skip
    if solved.status != 0:
        raise Contradiction
    more, less = np.split(solved.x[n:] * scale, 2)
    dropped = more + less > 1e-7 * scale
    low, high = np.where(dropped, -np.inf, low), np.where(dropped, np.inf, high)
    return replace(system, low=low[:m], high=high[:m], said_low=low[m:], said_high=high[m:])


#: Maximum relative error of a value that counts as known.
KNOWN_WITHIN = 0.01


def known_within(lower: np.ndarray, upper: np.ndarray, whole: bool) -> np.ndarray:
    """Return whether an interval contains only one count, or only values within 1 % of its middle."""
    with np.errstate(invalid="ignore"):
        if whole:
            return np.asarray((upper - lower < 1.0) & (upper > 0.5))
        middle = np.abs(lower + upper) / 2
        near = (upper - lower <= 2 * KNOWN_WITHIN * middle) & (middle > 0)
        return np.asarray(near & np.isfinite(lower) & np.isfinite(upper))
