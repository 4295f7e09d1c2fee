"""Dominance: clusters in which a few contributors make up most of a magnitude's total (the (n, k) rule)."""

from __future__ import annotations

import numpy as np

from sdc.errors import InvalidParameter, ShapeMismatch


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
    order = np.lexsort((-sizes, labels))
    ranked, clusters = sizes[order], labels[order]
    first = np.flatnonzero(np.concatenate([[True], clusters[1:] != clusters[:-1]]))
    counts = np.diff(np.append(first, len(clusters)))
    rank = np.arange(len(clusters)) - np.repeat(first, counts)
    totals = np.add.reduceat(ranked, first)
    largest = np.add.reduceat(np.where(rank < n, ranked, 0.0), first)
    return int(np.count_nonzero(largest * 100.0 > k * totals))
