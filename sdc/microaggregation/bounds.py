"""Lower bounds on the SSE that need no solver."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from sdc.microaggregation.records import Records


def nearest_neighbour_bound(records: Records, k: int) -> float:
    """A weak lower bound on the SSE of any clustering of a whole file, by nearest neighbours.

    A cluster of size s costs the sum over its members of 1 / (2s) times the squared distances to the
    others, and each has s - 1 of them, none nearer than its s - 1 nearest neighbours. Per member, 1 / (2s)
    times the s - 1 least distances does not fall as s grows (the average of a growing prefix of an
    ascending sequence, times (s - 1) / s), so that s = k gives a bound for every size.

    Parameters
    ----------
    records : Records
    k : int
        Least cluster size.

    Returns
    -------
    float
        Sum over records of w / (2k) times the squared distances to the k - 1 nearest neighbours, where w
        is the smallest record weight (lowering all weights to w lowers the weighted squares about any
        centre, so also their minimum).
    """
    values = records.values
    nearest, _ = cKDTree(values).query(values, k=k)
    return float(records.weights.min() * np.sum(nearest[:, 1:] ** 2) / (2 * k))
