"""The p % rule for the mean of a cluster: the second largest contributor must not infer the largest.

A published mean and the published weights disclose the total of a cluster. The second largest contributor
subtracts its own contribution from the total and obtains the largest contribution plus a remainder. If the
remainder is less than p % of the largest contribution, the rule forbids the total (Hundepool et al. 2012,
Statistical Disclosure Control, section 4.2.2). The mean of such a cluster is moved up or down until this
estimate is wrong by one to three times p %. Direction and distance are random.

A cluster whose values differ by at most p % is not changed. Each of its members can already infer the other
values from its own, and moving the mean would cost many times the information loss of the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Relative precision that protects the largest contribution: the second largest contributor must not be able
#: to estimate it more closely.
P = 0.1
#: Relative displacements are drawn between `P` and this multiple of `P`. If the size were constant, its sign
#: alone would disclose the value.
LARGEST_LEVEL = 3.0
#: Minimum number of contributors for which the rule applies: clusters with fewer violate it for any values.
FEWEST = 3


@dataclass(frozen=True)
class Contributions:
    """Largest contributions to each cluster's total, arrays of shape (m,).

    Attributes
    ----------
    first, rest : float
        Sizes of the largest contribution, and of all but the two largest ones together.
    second, remainder : float
        Second largest contribution and the sum of the others; positive if they have the sign of the largest
        one.
    sign : float
        Sign of the largest contribution, 1 or -1.
    mass : float
        Sum of the weights.
    contributors : int
        Number of contributors.
    alike : bool
        Whether the values differ by at most `P` times the largest absolute value.
    """

    first: np.ndarray
    rest: np.ndarray
    second: np.ndarray
    remainder: np.ndarray
    sign: np.ndarray
    mass: np.ndarray
    contributors: np.ndarray
    alike: np.ndarray

    @property
    def forbidden(self) -> np.ndarray:
        """Return whether the rule forbids the total of each cluster."""
        return (self.contributors >= FEWEST) & (self.rest < P * self.first) & ~self.alike

    def known(self, means: np.ndarray) -> np.ndarray:
        """Return for each cluster whether the second largest contributor can estimate the largest within `P`
        from the published mean.
        """
        estimate = self.sign * means * self.mass - self.second
        near = np.abs(estimate - self.first) < P * self.first * (1.0 - 1e-9)
        return np.asarray(self.forbidden & near)


def contributions(
    values: np.ndarray, labels: np.ndarray, weights: np.ndarray, owners: np.ndarray | None = None
) -> Contributions:
    """Compute the largest contributions to each cluster's weighted total.

    Parameters
    ----------
    values, weights : (n,) float arrays
    labels : (n,) int array
        Cluster of each record, 0 to m - 1.
    owners : (n,) int array, optional
        Owner of each record. The records of one owner are one contribution; by default each record is one.
    """
    contribution, cluster = weights * values, labels
    if owners is not None:
        cells, cell = np.unique(np.column_stack([labels, owners]), axis=0, return_inverse=True)
        contribution, cluster = np.bincount(cell.ravel(), contribution), cells[:, 0]
    contributors = np.bincount(cluster)
    sizes = np.abs(contribution)
    largest = _largest(sizes, cluster, len(contributors))
    others = np.ones(len(sizes), dtype=np.bool_)
    others[largest] = False
    following = _largest(np.where(others, sizes, -1.0), cluster, len(contributors))
    several = contributors > 1
    others[following[several]] = False

    def total(numbers: np.ndarray) -> np.ndarray:
        return np.bincount(cluster[others], numbers[others], len(contributors))

    sign = np.where(contribution[largest] < 0.0, -1.0, 1.0)
    return Contributions(
        first=sizes[largest],
        rest=total(sizes),
        second=np.where(several, sign * contribution[following], 0.0),
        remainder=sign * total(contribution),
        sign=sign,
        mass=np.bincount(labels, weights),
        contributors=contributors,
        alike=_alike(values, labels, len(contributors)),
    )


def _largest(sizes: np.ndarray, cluster: np.ndarray, clusters: int) -> np.ndarray:
    """Return the position of the first largest size of each cluster, (m,)."""
    most = np.full(clusters, -np.inf)
    np.maximum.at(most, cluster, sizes)
    found = np.flatnonzero(sizes == most[cluster])[::-1]
    first = np.empty(clusters, dtype=np.int64)
    first[cluster[found]] = found
    return first


def _alike(values: np.ndarray, labels: np.ndarray, clusters: int) -> np.ndarray:
    least, most = np.full(clusters, np.inf), np.full(clusters, -np.inf)
    np.minimum.at(least, labels, values)
    np.maximum.at(most, labels, values)
    return np.asarray(most - least <= P * np.maximum(np.abs(least), np.abs(most)))


def displacements(of: Contributions, means: np.ndarray, units: np.ndarray, seed: int) -> np.ndarray:
    """Return the displacement of each mean, (m,); 0 if the rule allows the total.

    Parameters
    ----------
    means : (m,) float array
        No mean changes its sign: a mean that is too close to zero is moved away from zero.
    units : (m,) float array
        Largest effect of rounding on a mean. It is added to the length of each displacement.
    seed : int
        Seed of the directions and relative errors. It must be secret, because anyone who knows it can undo
        the moves.
    """
    random = np.random.default_rng(seed)
    upwards, level = random.random((2, len(means)))
    level = P * (1.0 + (LARGEST_LEVEL - 1.0) * level)
    up = (level * of.first - of.remainder) / of.mass + units
    down = (level * of.first + of.remainder) / of.mass + units
    move = np.where((upwards < 0.5) | (down > of.sign * means), up, -down)
    return np.where(of.forbidden, of.sign * move, 0.0)
