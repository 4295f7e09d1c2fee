"""How much of a cluster's weight one record has: a weighted mean that hangs on one record gives it away.

Weights are published, so a reader knows what each record counts for in the mean of its class. With a share s
of the weight a record's value lies within 1 - s of its distance to the others' mean. So a cluster in which a
record (or a unit, where k counts units) has too large a share is merged with a neighbour; where that does
not help, the weight it counts with is trimmed. Both follow from the published weights alone, so that neither
says anything of a value.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.arguments import check_records
from microguard.sdc.errors import InvalidParameter, ShapeMismatch
from microguard.sdc.kernels.compile import kernel

#: Whatever k is, the others of a class make up a third of its mean.
LARGEST_SHARE = 2.0 / 3.0
#: Of a vote (a mode, a median, a medoid) nobody has half: else it would be that record's value for certain.
LARGEST_VOTE = 0.49
#: Of the k records that a class promises, one counts for two at most.
COUNTS_FOR = 2.0
#: Clusters that are merged into one at most: more would cost every one of them its values.
MOST_MERGED = 4


def largest_share(k: int) -> float:
    """The largest share of a class's weight that one record (or unit) may have."""
    return min(LARGEST_SHARE, COUNTS_FOR / k)


def spread(
    points: np.ndarray, labels: np.ndarray, weights: np.ndarray, most: float, owners: np.ndarray | None = None
) -> np.ndarray:
    """Merge clusters in which one has too large a share of the weight, each with those that cost least.

    Parameters
    ----------
    points : (n, p) float array
        Coordinates of the records in the units of the clustering.
    labels : (n,) int array
        Cluster of each record.
    weights : (n,) float array
        Positive.
    most : float
        Largest share that a record or owner may have, above 0.
    owners : (n,) int array, optional
        Whose weights are one share; by default every record's is its own.

    Returns
    -------
    (n,) int64 array
        Labels 0 to m - 1. A cluster that `MOST_MERGED` together do not mend is left as it was, for `trimmed`.

    Raises
    ------
    InvalidParameter, ShapeMismatch
    """
    cluster, owner = _checked(labels, weights, most, owners, points)
    order = np.argsort(cluster, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(cluster))[:-1])
    masses = np.bincount(cluster, weights)
    means = np.empty((len(masses), points.shape[1]))  # also of points without a coordinate
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
    """Weights of which none has more than the largest share of its cluster, (n,).

    The larger ones are cut down to one and the same; in a cluster with too few owners for that share all
    count alike. Nothing changes where no share is too large.

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
    """The largest mass such that none of those cut down to it has more than the share `most`."""
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
    """Clusters and owners, (n,) each, from 0."""
    check_records(len(labels))
    given = [each for each in (weights, owners, points) if each is not None]
    if any(len(each) != len(labels) for each in given):
        raise ShapeMismatch("points, labels, weights and owners need one row per record")
    if not most > 0.0 or not np.all(weights > 0.0):
        raise InvalidParameter("shares and weights must be above 0")
    cluster = np.unique(labels, return_inverse=True)[1].astype(np.int64).ravel()
    return cluster, np.arange(len(labels)) if owners is None else np.asarray(owners, dtype=np.int64)


def _shares(cluster: np.ndarray, owner: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Largest share of an owner in each cluster, (m,)."""
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
    """The free cluster that costs least to merge with one of this mean and mass (Ward's criterion), or -1."""
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
