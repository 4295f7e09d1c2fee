"""`SolveHeuristicPricing` of Gentile et al. (2020), section 5.1: greedy disjoint clusters.

Nodes are processed in descending order of their dual. Each node starts a cluster. The node with the least
contribution is added repeatedly, until the cluster has eta members. A cluster with negative reduced cost is
stored, and its nodes are removed.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import kernel


def price_heuristically(distances: np.ndarray, duals: np.ndarray, size: int, threshold: float) -> np.ndarray:
    """Find disjoint clusters of `size` records whose reduced cost is below `threshold`, (clusters, size).

    Parameters
    ----------
    distances : (n, n) array
        Squared distances c_e.
    duals : (n,) array
        Duals lambda_v of the records.
    size : int
        Cluster size eta of the paper, at least 2.
    threshold : float
        Threshold of the reduced cost, zero up to rounding.
    """
    order = np.lexsort((np.arange(len(duals)), -duals))
    return _grow(distances, duals, order, size, threshold)


@kernel
def _grow(distances, duals, order, size, threshold):
    n = len(duals)
    free = np.ones(n, dtype=np.bool_)
    clusters = np.empty((n // size, size), dtype=np.int32)
    stored = 0
    unassigned = n
    to_cluster = np.empty(n)
    cluster = np.empty(size, dtype=np.int32)
    for place in range(n):
        first = order[place]
        if not free[first]:
            continue
        if unassigned < size:
            break
        free[first] = False  # step 3 (a): the first node is removed from U in any case
        unassigned -= 1
        cluster[0] = first
        to_cluster[:] = 0.0
        reduced = -duals[first]
        for members in range(1, size):
            last = cluster[members - 1]
            added = -1
            least = np.inf
            for j in range(n):
                to_cluster[j] += distances[last, j] / size
                if not free[j]:
                    continue
                # As in the edge model (14), the dual of a node is divided equally among its eta - 1 edges.
                contribution = to_cluster[j] - duals[j] / (size - 1)
                if contribution < least:
                    least = contribution
                    added = j
            cluster[members] = added
            free[added] = False
            reduced += to_cluster[added] - duals[added]
        if reduced < threshold:
            clusters[stored] = cluster
            stored += 1
            unassigned -= size - 1
        else:
            free[cluster[1:]] = True
    return clusters[:stored]
