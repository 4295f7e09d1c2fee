"""Partitions of one variable into clusters of consecutive values, either of fixed size or optimal.

By Theorem 1 of Domingo-Ferrer and Mateo-Sanz (2002), the clusters of an optimal k-partition of one variable
are connected, that is, consecutive in the sorted values. A partition is represented by its `starts`, the
positions in the sorted values at which clusters start. The first start is 0. They correspond to the ones in
the binary strings of section 4.2.1 of that paper.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.microaggregation.encoding import LARGEST_COORDINATE

#: Choices of the cluster of a fixed-size partition that receives the n mod k remaining records.
Larger = Literal["mode", "first", "last"]
#: Factor applied to values whose squares would overflow. Multiplication is exact for all values that are not
#: negligible relative to them.
SCALED_DOWN = 2.0**-600
#: Relative cost difference below which two paths count as equally cheap; the one with the earlier tail is
#: chosen. Without this tolerance, rounding errors would decide, and the clusters would depend on the unit.
TIE = 1e-13


def fixed_size(values: np.ndarray, k: int, *, larger: Larger = "mode") -> np.ndarray:
    """Form clusters of k consecutive values; one of them also receives the n mod k remaining values.

    Parameters
    ----------
    values : (n,) array
        Ascending values, n >= k.
    k : int
        Cluster size.
    larger : {"mode", "first", "last"}
        The larger cluster contains the modal value, the smallest value or the largest value. Values are dense
        around the mode, so the larger cluster costs least there.

    Returns
    -------
    (n // k,) int64 array
        Starts of the clusters.

    References
    ----------
    Domingo-Ferrer and Mateo-Sanz (2002), section 4, method F of Table 1.
    """
    n = len(values)
    clusters = n // k
    position = {"first": 0, "last": n - 1}.get(larger)
    if position is None:
        position = mode_position(values)
    starts = np.arange(clusters, dtype=np.int64) * k
    starts[min(position // k, clusters - 1) + 1 :] += n - clusters * k
    return starts


def mode_position(values: np.ndarray) -> int:
    """Return the position of the half-sample mode of ascending values.

    Each step keeps the half of the values with the smallest range, until at most two remain. The estimator
    needs no bandwidth and is robust to outliers (Robertson and Cryer 1974, *JASA* 69; Bickel 2002).
    """
    low, count = 0, len(values)
    while count > 2:
        half = (count + 1) // 2
        ranges = values[low + half - 1 : low + count] - values[low : low + count - half + 1]
        low += int(np.argmin(ranges))
        count = half
    return low


def optimal(values: np.ndarray, k: int) -> np.ndarray:
    """Compute the clusters of k to 2k - 1 consecutive values with minimal SSE.

    Parameters
    ----------
    values : (n,) array
        Ascending floats or integers, n >= k.
    k : int
        Minimum cluster size.

    Returns
    -------
    int64 array
        Starts of the clusters.

    References
    ----------
    Hansen and Mukherjee (2003), A polynomial algorithm for optimal univariate microaggregation, IEEE
    TKDE 15(4); Proposition 1 and Theorem 1 of Domingo-Ferrer and Mateo-Sanz (2002).
    """
    return shortest_path(steps_between(values)[0], k)[0]


def shortest_path(steps: np.ndarray, k: int) -> tuple[np.ndarray, float]:
    """Compute the optimal clusters and their SSE from the differences of ascending values.

    The clusters are a shortest path through the positions 0 to n. The arc (i, j) is the cluster of the values
    i to j - 1, with k to 2k - 1 values. Adding a value to a cluster increases the cost by (m - 1) / m (x -
    mean)^2 >= 0 (Welford 1962, *Technometrics* 4), with distances from the first value of the cluster. There
    is no cancellation, so the relative error of the SSE is at most `relative_error`, even if other values are
    extreme.

    Parameters
    ----------
    steps : (n - 1,) float array
        Nonnegative differences between successive values.
    k : int
        Minimum cluster size.

    Returns
    -------
    starts : int64 array
    sse : float
        SSE in squared units of the steps.
    """
    tails, costs = _shortest_path(np.ascontiguousarray(steps, dtype=np.float64), k)
    starts = [int(tails[-1])]
    while starts[-1] > 0:
        starts.append(int(tails[starts[-1]]))
    return np.array(starts[::-1], dtype=np.int64), float(costs[-1])


def steps_between(values: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the differences of ascending values, and the power of two by which they were multiplied.

    Integers are subtracted exactly. Floats are scaled down if their squares would overflow.
    """
    if values.dtype.kind in "iu":
        whole = values.astype(np.uint64)
        return (whole[1:] - whole[:-1]).astype(np.float64), 1.0
    factor = 1.0
    if len(values) and max(abs(float(values[0])), abs(float(values[-1]))) > LARGEST_COORDINATE:
        factor = SCALED_DOWN
    return np.diff(np.asarray(values, dtype=np.float64) * factor), factor


def relative_error(n: int, k: int) -> float:
    """Return an upper bound on the relative error of the SSE that `shortest_path` computes.

    A distance from the mean is at least the distance from the first value divided by the cluster size. Its
    relative error is therefore at most 2k times that of a sum of 2k terms. A path sums up to n / k costs, and
    because of ties each of its arcs may cost more than the cheapest one by the share `TIE`.
    """
    unit = float(np.finfo(np.float64).eps)
    return (8 * (2 * k) ** 2 + n) * unit + n / k * TIE


def labels_of(starts: np.ndarray, n: int) -> np.ndarray:
    """Return the cluster of each of the n sorted values, (n,) int64."""
    return np.repeat(np.arange(len(starts), dtype=np.int64), np.diff(starts, append=n))


def sum_of_squares(values: np.ndarray, starts: np.ndarray) -> float:
    """Return the SSE, equation (1), of the clusters of ascending values with these starts."""
    sizes = np.diff(starts, append=len(values))
    means = np.add.reduceat(values, starts) / sizes
    return float(np.sum((values - np.repeat(means, sizes)) ** 2))


@kernel
def _shortest_path(steps, k):
    """Return for each position the start of the last cluster of the shortest path to it, and the cost of the
    shortest path to the end.
    """
    n = len(steps) + 1
    cost = np.full(n + 1, np.inf)
    cost[0] = 0.0
    tail = np.zeros(n + 1, np.int64)
    inverse = 1.0 / np.arange(1, 2 * k)  # multiplication is several times as fast as division
    for i in range(n - k + 1):
        if cost[i] == np.inf:
            continue
        # distances of the last value and of the mean from value i; SSE
        distance, mean, within = 0.0, 0.0, 0.0
        for size in range(2, min(2 * k - 1, n - i) + 1):
            distance += steps[i + size - 2]
            change = distance - mean
            mean += change * inverse[size - 1]
            within += change * (distance - mean)
            head = i + size
            if size >= k and cost[i] + within < cost[head] * (1.0 - TIE):
                cost[head] = cost[i] + within
                tail[head] = i
    return tail, cost
