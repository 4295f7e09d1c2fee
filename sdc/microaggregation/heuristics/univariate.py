"""One variable: clusters of neighbours in its ranking, of fixed size or optimal.

By Theorem 1 of Domingo-Ferrer and Mateo-Sanz (2002) the clusters of an optimal k-partition of one
variable are connected: runs of the sorted values. So a partition is written as its `starts`, the
positions in the sorted values at which a cluster begins (the first is 0); the ones of the binary
strings of their section 4.2.1.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from sdc.kernels.compile import kernel

#: Which cluster of a fixed-size partition takes the records beyond a multiple of k.
Larger = Literal["mode", "first", "last"]


def fixed_size(values: np.ndarray, k: int, *, larger: Larger = "mode") -> np.ndarray:
    """Clusters of k consecutive values, of which one takes the n mod k values left over.

    Parameters
    ----------
    values : (n,) array
        In ascending order, n >= k.
    k : int
        Cluster size.
    larger : {"mode", "first", "last"}
        The larger cluster holds the modal value, or the smallest or largest values. Around the mode,
        values are dense and the larger cluster costs least.

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
    """Position of the half-sample mode of ascending values.

    The half of the values that lies closest together is kept until at most two are left; it needs no
    bandwidth and is not moved by outliers (Robertson and Cryer 1974, *JASA* 69; Bickel 2002).
    """
    low, count = 0, len(values)
    while count > 2:
        half = (count + 1) // 2
        ranges = values[low + half - 1 : low + count] - values[low : low + count - half + 1]
        low += int(np.argmin(ranges))
        count = half
    return low


def optimal(values: np.ndarray, k: int) -> np.ndarray:
    """The connected clusters of k to 2k - 1 values with the least sum of squares.

    A shortest path through the positions 0 to n, whose arc (i, j) is the cluster of the values i to
    j - 1. Arc costs satisfy the quadrangle inequality, so the last start of the best path to j never
    decreases with j; and all tails of k successive heads are known before them. Each k heads are
    therefore solved by halving, in O(n log k) altogether instead of O(n k). The SSE is the least up to
    the rounding of squared distances between 3k neighbouring values.

    Parameters
    ----------
    values : (n,) float array
        In ascending order, n >= k.
    k : int
        Smallest cluster size.

    Returns
    -------
    int64 array
        Starts of the clusters.

    References
    ----------
    Hansen and Mukherjee (2003), A polynomial algorithm for optimal univariate microaggregation, IEEE
    TKDE 15(4); Proposition 1 and Theorem 1 of Domingo-Ferrer and Mateo-Sanz (2002).
    """
    tails = _shortest_path(np.ascontiguousarray(values, dtype=np.float64), k)
    starts = [int(tails[len(values)])]
    while starts[-1] > 0:
        starts.append(int(tails[starts[-1]]))
    return np.array(starts[::-1], dtype=np.int64)


def labels_of(starts: np.ndarray, n: int) -> np.ndarray:
    """Cluster of each of the n sorted values, (n,) int64."""
    return np.repeat(np.arange(len(starts), dtype=np.int64), np.diff(starts, append=n))


def sum_of_squares(values: np.ndarray, starts: np.ndarray) -> float:
    """SSE of the clusters of ascending values that begin at `starts`, equation (1)."""
    sizes = np.diff(starts, append=len(values))
    means = np.add.reduceat(values, starts) / sizes
    return float(np.sum((values - np.repeat(means, sizes)) ** 2))


@kernel
def _shortest_path(values, k):
    """For each position the start of the last cluster of its best path; heads in runs of k."""
    n = len(values)
    cost = np.full(n + 1, np.inf)
    cost[0] = 0.0
    tail = np.zeros(n + 1, np.int64)
    sums = np.zeros(3 * k)
    squares = np.zeros(3 * k)
    pending = np.empty((k + 1, 4), np.int64)
    for first in range(k, n + 1, k):
        last = min(first + k - 1, n)
        base = max(0, first - 2 * k + 1)
        # Sums about a value of the run: sums about the file's mean would cancel beside outliers.
        origin = values[(base + last) // 2]
        for i in range(base, last):
            value = values[i] - origin
            sums[i - base + 1] = sums[i - base] + value
            squares[i - base + 1] = squares[i - base] + value * value
        pending[0] = (first, last, base, first - 1)
        waiting = 1
        while waiting > 0:
            waiting -= 1
            low, high, left, right = pending[waiting]
            head = (low + high) // 2
            for i in range(max(left, head - 2 * k + 1), min(right, head - k) + 1):
                total = sums[head - base] - sums[i - base]
                within = squares[head - base] - squares[i - base] - total * total / (head - i)
                path = cost[i] + max(within, 0.0)
                if path < cost[head]:
                    cost[head] = path
                    tail[head] = i
            if low < head:
                pending[waiting] = (low, head - 1, left, tail[head])
                waiting += 1
            if head < high:
                pending[waiting] = (head + 1, high, tail[head], right)
                waiting += 1
    return tail
