"""The (n, k)-dominance rule: find clusters in which a few contributors make up most of the total."""

from __future__ import annotations

import numpy as np
from microguard.sdc.errors import InvalidParameter, ShapeMismatch
from microguard.sdc.kernels.compile import kernel


def dominated(values: np.ndarray, labels: np.ndarray, n: int, k: float) -> int:
    """Count the clusters whose `n` largest contributors exceed `k` percent of the cluster's total.

    Parameters
    ----------
    values : (records,) array
        Magnitudes. A negative value contributes its absolute value, NaN contributes nothing.
    labels : (records,) int array
        Cluster of each record, 0 to clusters - 1.
    n : int
        Number of largest contributors that are added up.
    k : float
        Limit in percent of the total.

    References
    ----------
    Hundepool et al. (2012), Statistical Disclosure Control, section 4.2.2: the (n, k)-dominance rule.
    """
    if values.shape != labels.shape:
        raise ShapeMismatch(
            f"labels: expected one per value, shape {values.shape}, found shape {labels.shape}"
        )
    if n < 1 or not 0 < k <= 100:
        raise InvalidParameter(f"dominance: expected n >= 1 and 0 < k <= 100 percent, found n={n} and k={k}")
    if len(values) == 0:
        return 0
    sizes = np.abs(np.nan_to_num(values, nan=0.0))
    clusters = int(labels.max()) + 1
    totals = np.bincount(labels, sizes, clusters)
    largest = _largest(sizes, labels, clusters, n).sum(axis=1)
    return int(np.count_nonzero(largest * 100.0 > k * totals))


def of_one_value(values: np.ndarray, labels: np.ndarray) -> int:
    """Count the records in clusters in which all values are equal.

    Parameters
    ----------
    values : (n,) array
    labels : (n,) int array
        Cluster of each record, 0 to m - 1.
    """
    least, most = np.full(int(labels.max()) + 1, np.inf), np.full(int(labels.max()) + 1, -np.inf)
    np.minimum.at(least, labels, values)
    np.maximum.at(most, labels, values)
    return int(np.count_nonzero((least == most)[labels]))


@kernel
def _largest(sizes, labels, clusters, n):
    """Return the n largest sizes in each cluster, (clusters, n), descending; 0 where a cluster has fewer
    records.
    """
    top = np.zeros((clusters, n))
    for i in range(len(sizes)):
        ranks, place = top[labels[i]], n
        while place > 0 and sizes[i] > ranks[place - 1]:
            if place < n:
                ranks[place] = ranks[place - 1]
            place -= 1
        if place < n:
            ranks[place] = sizes[i]
    return top
