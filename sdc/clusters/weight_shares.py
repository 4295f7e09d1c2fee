"""Limit the share of one record in the weight of its cluster.

Sampling weights are published, so a reader knows the weight of each record in the mean of its class. If one
record has nearly all the weight, the published mean discloses its value. A cluster in which one record (or
one unit, if k counts units) exceeds the largest share is therefore merged with the cheapest neighbours. If
this does not suffice, the weight of the record is trimmed. Both decisions depend on published weights only,
so they disclose no value.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.arguments import check_records
from microguard.sdc.errors import InvalidParameter, ShapeMismatch
from microguard.sdc.kernels.compile import kernel

#: Maximum share of a class's weight that one record may have, whatever k is. The other records have at least
#: one third.
LARGEST_SHARE = 2.0 / 3.0
#: Maximum share if a mode, median or medoid is published. A record with half of the weight would determine
#: the published value alone.
LARGEST_VOTE = 0.49
#: Maximum weight of one record in a class of k records, in multiples of the mean weight of these k.
COUNTS_FOR = 2.0
#: Maximum number of clusters that are merged into one; larger merges lose too much information.
MOST_MERGED = 4


def largest_share(k: int) -> float:
    """Return the maximum share of a class's weight that one record (or unit) may have."""
    return min(LARGEST_SHARE, COUNTS_FOR / k)


def spread(
    points: np.ndarray, labels: np.ndarray, weights: np.ndarray, most: float, owners: np.ndarray | None = None
) -> np.ndarray:
    """Merge each cluster in which one record or owner exceeds the maximum share with the cheapest other
    clusters.

    Parameters
    ----------
    points : (n, p) float array
        Coordinates of the records in the units of the clustering.
    labels : (n,) int array
        Cluster of each record.
    weights : (n,) float array
        Positive weights of the records.
    most : float
        Largest share that a record or owner may have, above 0.
    owners : (n,) int array, optional
        Owner of each record: the weights of one owner add up to one share. By default each record has a
        different owner.

    Returns
    -------
    (n,) int64 array
        Labels 0 to m - 1. If merging `MOST_MERGED` clusters does not suffice, the cluster does not change and
        `trimmed` must limit its weights.

    Raises
    ------
    InvalidParameter, ShapeMismatch
    """
    cluster, owner = _checked(labels, weights, most, owners, points)
    order = np.argsort(cluster, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(cluster))[:-1])
    masses = np.bincount(cluster, weights)
    means = np.empty((len(masses), points.shape[1]))  # a positive minimum, also if all coordinates are zero
    for position, column in enumerate(points.T):
        means[:, position] = np.bincount(cluster, weights * column) / masses
    free = np.ones(len(masses), dtype=np.bool_)
    for a in np.flatnonzero(_shares(cluster, owner, weights) > most):
        if not free[a]:
            continue
        together, merged, mass, mean = members[a], [int(a)], masses[a], means[a]
        free[a] = False
        while _share(owner[together], weights[together]) > most:
            b = _cheapest(mean, mass, free, masses, means) if len(merged) < MOST_MERGED else -1
            if b < 0:
                break
            together = np.concatenate([together, members[b]])
            mean = (mass * mean + masses[b] * means[b]) / (mass + masses[b])
            mass += masses[b]
            merged.append(b)
            free[b] = False
        else:
            members[a], masses[a], means[a] = np.sort(together), mass, mean
            free[a] = True
            cluster[together] = a
            continue
        free[merged] = True
    return np.unique(cluster, return_inverse=True)[1].astype(np.int64).ravel()


def trimmed(
    weights: np.ndarray, labels: np.ndarray, most: float, owners: np.ndarray | None = None
) -> np.ndarray:
    """Trim the weights so that no owner exceeds the maximum share of its cluster, (n,).

    The owners above the limit are trimmed to the same weight. If a cluster has too few owners for the limit,
    all owners get equal weights. Clusters within the limit do not change.

    Parameters
    ----------
    weights, labels, most, owners
        See `spread`.

    Raises
    ------
    InvalidParameter, ShapeMismatch

    References
    ----------
    Potter (1990), A study of procedures to identify and trim extreme sampling weights.
    """
    cluster, owner = _checked(labels, weights, most, owners)
    cut = np.asarray(weights, dtype=np.float64).copy()
    for a in np.flatnonzero(_shares(cluster, owner, weights) > most):
        mine = np.flatnonzero(cluster == a)
        _, place = np.unique(owner[mine], return_inverse=True)
        masses = np.bincount(place.ravel(), weights[mine])
        cut[mine] *= (np.minimum(masses, _limit(masses, most)) / masses)[place.ravel()]
    return cut


def _limit(masses: np.ndarray, most: float) -> float:
    """Return the largest trimming limit for which each trimmed mass has at most the share `most`."""
    descending = np.sort(masses)[::-1]
    for cut in range(1, len(descending)):
        if cut * most >= 1.0:
            break
        limit = most * float(descending[cut:].sum()) / (1.0 - cut * most)
        if limit >= descending[cut]:
            return limit
    return float(descending[-1])


def _checked(
    labels: np.ndarray,
    weights: np.ndarray,
    most: float,
    owners: np.ndarray | None,
    points: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Validate the arguments; return the clusters, numbered from 0, and the owners, (n,) each."""
    check_records(len(labels))
    given = [each for each in (weights, owners, points) if each is not None]
    if any(len(each) != len(labels) for each in given):
        raise ShapeMismatch("points, labels, weights and owners: expected one row per record in each")
    if not most > 0.0 or not np.all(weights > 0.0):
        raise InvalidParameter("weights and the largest share: expected positive numbers, found 0 or less")
    cluster = np.unique(labels, return_inverse=True)[1].astype(np.int64).ravel()
    return cluster, np.arange(len(labels)) if owners is None else np.asarray(owners, dtype=np.int64)


def _shares(cluster: np.ndarray, owner: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the largest share of an owner in each cluster, (m,)."""
    order = np.lexsort((owner, cluster))
    of_cluster, of_owner = cluster[order], owner[order]
    fresh = np.flatnonzero(np.r_[True, (of_cluster[1:] != of_cluster[:-1]) | (of_owner[1:] != of_owner[:-1])])
    masses = np.add.reduceat(weights[order], fresh)
    heads = of_cluster[fresh]
    starts = np.flatnonzero(np.r_[True, heads[1:] != heads[:-1]])
    return np.maximum.reduceat(masses, starts) / np.add.reduceat(masses, starts)


def _share(owner: np.ndarray, weights: np.ndarray) -> float:
    masses = np.bincount(np.unique(owner, return_inverse=True)[1].ravel(), weights)
    return float(masses.max() / masses.sum())


@kernel
def _cheapest(mean, mass, free, masses, means):
    """Return the free cluster that is cheapest to merge with a cluster of this mean and mass (Ward's
    criterion), or -1.
    """
    best, cost = -1, np.inf
    for b in range(len(masses)):
        if not free[b]:
            continue
        square = 0.0
        for d in range(len(mean)):
            square += (means[b, d] - mean[d]) ** 2
        ward = square * mass * masses[b] / (mass + masses[b])
        if ward < cost:
            best, cost = b, ward
    return best
