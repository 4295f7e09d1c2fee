"""Dominance: clusters in which a few contributors make up most of a magnitude's total (the (n, k) rule)."""

from __future__ import annotations

import numpy as np
from microguard.sdc.errors import InvalidParameter, ShapeMismatch
from microguard.sdc.kernels.compile import kernel


def dominated(values: np.ndarray, labels: np.ndarray, n: int, k: float) -> int:
    """Number of clusters whose `n` largest contributors exceed `k` percent of the cluster's total.

    Parameters
    ----------
    values : (records,) array
        Magnitudes; of negative ones the absolute value contributes. NaN contributes nothing.
    labels : (records,) int array
        Cluster of each record, 0 to clusters - 1.
    n : int
        Largest contributors counted together.
    k : float
        Percent of the total.

    References
    ----------
    Hundepool et al. (2012), Statistical Disclosure Control, section 4.2.2: the (n, k)-dominance rule.
    """
    if values.shape != labels.shape:
        raise ShapeMismatch(f"{values.shape} values and {labels.shape} labels do not fit together")
    if n < 1 or not 0 < k <= 100:
        raise InvalidParameter("dominance takes n of at least 1 and k above 0 and up to 100 percent")
    if len(values) == 0:
        return 0
    sizes = np.abs(np.nan_to_num(values, nan=0.0))
    clusters = int(labels.max()) + 1
    totals = np.bincount(labels, sizes, clusters)
    largest = _largest(sizes, labels, clusters, n).sum(axis=1)
    return int(np.count_nonzero(largest * 100.0 > k * totals))


def of_one_value(values: np.ndarray, labels: np.ndarray) -> int:
    """Return the number of records in clusters whose values are all the same.

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
    """The n largest sizes of each cluster, (clusters, n), descending, 0 where it has fewer."""
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
