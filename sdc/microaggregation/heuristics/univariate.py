"""One variable: clusters of neighbours in its ranking, of fixed size or optimal.

By Theorem 1 of Domingo-Ferrer and Mateo-Sanz (2002) the clusters of an optimal k-partition of one
variable are connected: runs of the sorted values. So a partition is written as its `starts`, the
positions in the sorted values at which a cluster begins (the first is 0); the ones of the binary
strings of their section 4.2.1.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from microguard.sdc.kernels.compile import kernel

#: Which cluster of a fixed-size partition takes the records beyond a multiple of k.
Larger = Literal["mode", "first", "last"]
#: Values beyond this are multiplied by 2^-600 before they are subtracted, which is exact for any that count
#: beside them: their squares would overflow.
LARGEST_VALUE, SCALED_DOWN = 1e150, 2.0**-600


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

    Parameters
    ----------
    values : (n,) array
        In ascending order, n >= k; floats or integers.
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
    return shortest_path(steps_between(values)[0], k)[0]


def shortest_path(steps: np.ndarray, k: int) -> tuple[np.ndarray, float]:
    """The optimal clusters of values by the steps between them, and their SSE.

    A shortest path through the positions 0 to n, whose arc (i, j) is the cluster of the values i to
    j - 1, of k to 2k - 1 of them. The cost of an arc grows from that of the one before by
    (m - 1) / m (x - mean)^2 >= 0 (Welford 1962, *Technometrics* 4), distances taken from the first value
    of the cluster: nothing cancels, so that the SSE has a relative error of at most `relative_error`,
    whatever lies far from the cluster.

    Parameters
    ----------
    steps : (n - 1,) float array
        Differences between successive values, not negative.
    k : int

    Returns
    -------
    starts : int64 array
    sse : float
        In squared units of the steps.
    """
    tails, costs = _shortest_path(np.ascontiguousarray(steps, dtype=np.float64), k)
    starts = [int(tails[-1])]
    while starts[-1] > 0:
        starts.append(int(tails[starts[-1]]))
    return np.array(starts[::-1], dtype=np.int64), float(costs[-1])


def steps_between(values: np.ndarray) -> tuple[np.ndarray, float]:
    """Steps between ascending values, and the factor they were multiplied by, a power of two.

    Integers are subtracted as integers; floats so large that squares would overflow are scaled down.
    """
    if values.dtype.kind in "iu":
        whole = values.astype(np.uint64)
        return (whole[1:] - whole[:-1]).astype(np.float64), 1.0
    factor = 1.0
    if len(values) and max(abs(float(values[0])), abs(float(values[-1]))) > LARGEST_VALUE:
        factor = SCALED_DOWN
    return np.diff(np.asarray(values, dtype=np.float64) * factor), factor


def relative_error(n: int, k: int) -> float:
    """Largest relative error of the SSE of `shortest_path`.

    A distance from the mean is at least the distance from the first value over the cluster's size, so
    that its relative error is that of a sum of 2k terms times 2k; a path adds up to n / k costs.
    """
    unit = float(np.finfo(np.float64).eps)
    return (8 * (2 * k) ** 2 + n) * unit


def labels_of(starts: np.ndarray, n: int) -> np.ndarray:
    """Cluster of each of the n sorted values, (n,) int64."""
    return np.repeat(np.arange(len(starts), dtype=np.int64), np.diff(starts, append=n))


def sum_of_squares(values: np.ndarray, starts: np.ndarray) -> float:
    """SSE of the clusters of ascending values that begin at `starts`, equation (1)."""
    sizes = np.diff(starts, append=len(values))
    means = np.add.reduceat(values, starts) / sizes
    return float(np.sum((values - np.repeat(means, sizes)) ** 2))


@kernel
def _shortest_path(steps, k):
    """For each position the start of the last cluster of its best path, and the cost of that path."""
    n = len(steps) + 1
    cost = np.full(n + 1, np.inf)
    cost[0] = 0.0
    tail = np.zeros(n + 1, np.int64)
    for i in range(n - k + 1):
        if cost[i] == np.inf:
            continue
        distance, mean, within = 0.0, 0.0, 0.0  # of the last value and of the mean from value i; the SSE
        for size in range(2, min(2 * k - 1, n - i) + 1):
            distance += steps[i + size - 2]
            change = distance - mean
            mean += change / size
            within += change * change * ((size - 1) / size)
            head = i + size
            if size >= k and cost[i] + within < cost[head]:
                cost[head] = cost[i] + within
                tail[head] = i
    return tail, cost
