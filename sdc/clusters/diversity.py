"""Distinct l-diversity: every cluster contains enough distinct values of variables that are not clustered.

For sensitive variables this is distinct l-diversity (Machanavajjhala et al. 2007). For the household variable
it makes k count households. The clusters of any method become diverse by mergers: a cluster with too few
values is merged with the cheapest cluster (Ward's criterion) that contains a value it lacks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from microguard.sdc.arguments import check_records
from microguard.sdc.errors import ImpossibleProtection, InvalidParameter, ShapeMismatch
from microguard.sdc.kernels.compile import borrowing, embedded, kernel

#: Number of merges after which the clusters are sorted again.
RESORTED = 512
#: Upper bound on the relative floating-point error of a product of a few numbers.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Diversity:
    """Required number of distinct values of each variable in every cluster.

    Attributes
    ----------
    codes : (n, q) int64 array, C-contiguous
        Codes from 0 of q variables, compared for equality only. A missing value has a negative code and does
        not count as a value.
    least : (q,) int64 array
        Required number of distinct values of each variable; 1 is no requirement.
    known : (q,) bool array
        Variables that an attacker knows along with the clustered ones, such as the household. The other
        variables are protected against minimality attacks, see
        `sdc.microaggregation.minimality_attack_mitigation`.
    """

    codes: np.ndarray
    least: np.ndarray
    known: np.ndarray

    @classmethod
    def of(cls, codes: Any, least: Any, known: Any = False) -> Diversity:
        """Validate the arguments and build a Diversity.

        Parameters
        ----------
        codes : (n, q) integers
        least : (q,) integers, or one integer for all variables
        known : (q,) bool, or one for all variables

        Raises
        ------
        ImpossibleProtection
            If all records together have fewer distinct values than required.
        InvalidParameter, ShapeMismatch
        """
        values = np.ascontiguousarray(codes, dtype=np.int64)
        if values.ndim != 2:
            raise ShapeMismatch(f"codes: expected an array of shape (n, q), found {values.ndim} dimension(s)")
        required = np.broadcast_to(np.asarray(least, dtype=np.int64), values.shape[1:]).copy()
        if required.min(initial=1) < 1:
            raise InvalidParameter(
                f"distinct values: expected a requirement of at least 1, found {required.min()}"
            )
        for position, column in enumerate(values.T):
            distinct = len(np.unique(column[column >= 0]))
            if distinct < required[position]:
                raise ImpossibleProtection(
                    f"diversity: expected {required[position]} distinct values of a variable in every "
                    f"cluster, found {distinct} distinct among all {len(values)} records. Require fewer, "
                    "or use larger blocks",
                    variable=position,
                )
        return cls(values, required, np.broadcast_to(np.asarray(known, dtype=bool), required.shape).copy())

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, chosen: np.ndarray) -> Diversity:
        """Return the same requirements for the records at the positions `chosen`, in that order."""
        return Diversity(np.ascontiguousarray(self.codes[chosen]), self.least, self.known)

    @property
    def hidden(self) -> np.ndarray:
        """Return the positions of the variables that have a requirement and that the attacker does
        not know.
        """
        return np.flatnonzero(~self.known & (self.least > 1))

    def held(self, labels: np.ndarray) -> bool:
        """Return whether every cluster meets the diversity requirements."""
        return not self.lacking(np.unique(labels, return_inverse=True)[1].ravel()).any()

    def lacking(self, labels: np.ndarray) -> np.ndarray:
        """Return for each cluster 0 to m - 1 whether any variable has too few distinct values, (m,) bool."""
        lacking = np.zeros(int(labels.max(initial=-1)) + 1, dtype=bool)
        for column, least in zip(self.codes.T, self.least, strict=True):
            lacking |= _distinct(column, labels) < least
        return lacking

    @property
    def most_clusters(self) -> int:
        """Return an upper bound on the number of diverse clusters: each value counts at most once per
        cluster.
        """
        return min(
            (
                _most_clusters(column, int(least))
                for column, least in zip(self.codes.T, self.least, strict=True)
            ),
            default=len(self.codes),
        )


def _most_clusters(column: np.ndarray, least: int) -> int:
    """Return the largest c for which the sum of min(count of a value, c) over all values is at least c *
    `least`.
    """
    counts = np.unique(column[column >= 0], return_counts=True)[1]
    low, high = 1, len(column) // least
    while low < high:
        middle = (low + high + 1) // 2
        if np.minimum(counts, middle).sum() >= middle * least:
            low = middle
        else:
            high = middle - 1
    return low


def diversify(points: np.ndarray, labels: np.ndarray, diversity: Diversity) -> np.ndarray:
    """Merge clusters until each meets the diversity requirements.

    Parameters
    ----------
    points : (n, p) float array
        Coordinates of the records in the units of the clustering.
    labels : (n,) int array
        Cluster of each record.
    diversity : Diversity
        Requirements for the same records.

    Returns
    -------
    (n,) int64 array
        Labels 0 to m - 1 of the merged clusters, which may have more than 2k - 1 records.

    Raises
    ------
    ShapeMismatch
    """
    if len(diversity) != len(labels) or len(points) != len(labels):
        raise ShapeMismatch(
            f"points, labels and codes: expected one row per record in each, found {len(points)}, "
            f"{len(labels)} and {len(diversity)}"
        )
    compact = np.unique(labels, return_inverse=True)[1].astype(np.int64).ravel()
    records = np.ascontiguousarray(points, dtype=np.float64)
    merged = _merge(records, compact, diversity.codes, diversity.least, _direction(records))
    return np.unique(merged, return_inverse=True)[1].astype(np.int64).ravel()


def least_distinct(values: np.ndarray, labels: np.ndarray) -> int:
    """Return the smallest number of distinct values in a cluster; negative codes are missing values."""
    if len(values) != len(labels):
        raise ShapeMismatch(f"labels: expected one per value, {len(values)}, found {len(labels)}")
    check_records(len(values))
    return int(_distinct(values, np.unique(labels, return_inverse=True)[1].ravel()).min())


def _distinct(values: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Count the distinct values of each cluster 0 to m - 1, (m,)."""
    width, known = int(values.max(initial=0)) + 1, values >= 0
    cells = np.sort(labels[known].astype(np.int64) * width + values[known])
    first = cells[np.append(True, cells[1:] != cells[:-1])[: len(cells)]]
    return np.bincount(first // width, minlength=int(labels.max(initial=-1)) + 1)


def _direction(points: np.ndarray) -> np.ndarray:
    """Return the first principal direction of the points, (p,), with unit length."""
    largest = float(np.abs(points).max(initial=0.0))
    if largest == 0.0:
        return np.zeros(points.shape[1])
    spread = (points - points.mean(axis=0)) / largest
    return np.ascontiguousarray(np.linalg.eigh(spread.T @ spread)[1][:, -1])


@kernel
def _merge(points, labels, codes, required, direction):
    n, p = points.shape
    clusters = labels.max() + 1
    # members of a cluster are a linked list, so that a merge takes one step
    first = np.full(clusters, -1, dtype=np.int64)
    last = np.full(clusters, -1, dtype=np.int64)
    following = np.full(n, -1, dtype=np.int64)
    sizes = np.zeros(clusters)
    means = np.zeros((clusters, p))
    for i in range(n - 1, -1, -1):
        a = labels[i]
        following[i] = first[a]
        if first[a] < 0:
            last[a] = i
        first[a] = i
        sizes[a] += 1.0
        means[a] += points[i]
    for a in range(clusters):
        means[a] /= sizes[a]
    least_size = sizes.min()
    slack = ROUNDING * p * np.abs(means).max() if p > 0 else 0.0
    order, near, along = _sorted_along(direction, first, means)
    moved, is_moved, merges = np.empty(RESORTED, dtype=np.int64), np.zeros(clusters, dtype=np.bool_), 0
    for a in range(clusters):
        while first[a] >= 0:
            variable = _lacking(first[a], following, codes, required)
            if variable < 0:
                break
            if merges == RESORTED:
                order, near, along = _sorted_along(direction, first, means)
                is_moved[:] = False
                merges = 0
            reachable = along, near, order, is_moved
            b = _cheapest(
                a,
                variable,
                first,
                following,
                sizes,
                means,
                codes,
                direction,
                reachable,
                moved[:merges],
                least_size,
                slack,
            )
            mass = sizes[a] + sizes[b]
            means[a] = (means[a] * sizes[a] + means[b] * sizes[b]) / mass
            sizes[a] = mass
            following[last[a]] = first[b]
            last[a] = last[b]
            first[b] = -1
            moved[merges] = a
            is_moved[a] = True
            merges += 1
    merged = np.empty(n, dtype=np.int64)
    for a in range(clusters):
        i = first[a]
        while i >= 0:
            merged[i] = a
            i = following[i]
    return merged


@kernel
def _lacking(start, following, codes, required):
    """Return the first variable with too few distinct values in the list that begins at `start`, or -1."""
    for variable in range(codes.shape[1]):
        seen = np.empty(required[variable], dtype=np.int64)
        distinct = 0
        i = start
        while i >= 0 and distinct < required[variable]:
            fresh = codes[i, variable] >= 0
            for t in range(distinct):
                fresh = fresh and seen[t] != codes[i, variable]
            if fresh:
                seen[distinct] = codes[i, variable]
                distinct += 1
            i = following[i]
        if distinct < required[variable]:
            return variable
    return -1


@kernel
def _sorted_along(direction, first, means):
    """Sort the remaining clusters by the projections of their means on a direction.

    Returns
    -------
    The sorted clusters, their means, and their projections.
    """
    left = np.flatnonzero(first >= 0)
    along = means[left] @ direction
    by_mean = np.argsort(along)
    order = left[by_mean]
    return order, means[order], along[by_mean]


@borrowing
def _cheapest(
    a, variable, first, following, sizes, means, codes, direction, reachable, moved, least_size, slack
):
    """Return the cheapest cluster to merge with cluster a that has a value which a lacks.

    Ties go to the lowest number.

    Clusters are visited in order of their projections, starting next to cluster a, until a lower bound on the
    cost exceeds the best cost. Clusters whose means changed since the last sort (`moved`) are checked
    separately.
    """
    along, near, order, is_moved = reachable
    best, cost, reach = -1, np.inf, np.inf
    least_factor = sizes[a] * least_size / (sizes[a] + least_size) * (1.0 - ROUNDING)
    for b in moved:
        square = _square(means[a], means[b])
        if square <= reach and b != a and first[b] >= 0:
            ward = square * sizes[a] * sizes[b] / (sizes[a] + sizes[b])
            if _earlier(ward, b, cost, best) and _adds_value(b, a, variable, first, following, codes):
                best, cost, reach = b, ward, ward / least_factor
    at = 0.0
    for d in range(len(direction)):
        at += means[a, d] * direction[d]
    start = np.searchsorted(along, at)
    for step in (-1, 1):
        i = min(start, start + step)
        while 0 <= i < len(order) and max(abs(at - along[i]) - slack, 0.0) ** 2 <= reach:
            square, b = _square(means[a], near[i]), order[i]
            if square <= reach and b != a and first[b] >= 0 and not is_moved[b]:
                ward = square * sizes[a] * sizes[b] / (sizes[a] + sizes[b])
                if _earlier(ward, b, cost, best) and _adds_value(b, a, variable, first, following, codes):
                    best, cost, reach = b, ward, ward / least_factor
            i += step
    return best


@embedded
def _square(one, other):
    """Return the squared Euclidean distance of two points."""
    square = 0.0
    for d in range(len(one)):
        square += (one[d] - other[d]) ** 2
    return square


@embedded
def _earlier(ward, b, cost, best):
    """Return whether cluster b costs less than `best`, or the same and has a lower number."""
    return ward < cost or (ward == cost and b < best)


@borrowing
def _adds_value(b, a, variable, first, following, codes):
    """Return whether cluster b contains a value of the variable that cluster a lacks."""
    i = first[b]
    while i >= 0:
        j = first[a]
        missing = codes[i, variable] >= 0
        while j >= 0 and missing:
            missing = codes[j, variable] != codes[i, variable]
            j = following[j]
        if missing:
            return True
        i = following[i]
    return False
