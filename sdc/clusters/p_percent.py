"""The p % rule for the mean of a cluster: its second largest contributor must not compute the largest.

A published mean and the published weights give the total of a cluster. Its second largest contributor
subtracts the own value, and has the largest contribution and a rest. Where the rest is less than p % of the
largest contribution the rule forbids the total (Hundepool et al. 2012, Statistical Disclosure Control,
section 4.2.2). The mean of such a cluster is moved until this estimate is off by one to three times
p %, up or down: direction and level are drawn. A cluster whose values lie within p % of each other is left
alone: each of its members knows as much from the own value, and a move would cost many times the loss of the
cluster.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Share of the largest contributor within which the second largest must not know it.
P = 0.1
#: Levels are drawn between `P` and this many times it, so that the direction alone does not give the value.
LARGEST_LEVEL = 3.0
#: A cluster of fewer contributors fails the rule whatever their values are: k promises no more.
FEWEST = 3


@dataclass(frozen=True)
class Contributions:
    """The contributions to each cluster's total, (m,) arrays.

    Attributes
    ----------
    first, rest : float
        Sizes of the largest contribution, and of all but the two largest ones together.
    second, remainder : float
        The second largest contribution and the sum of the others, above 0 where they have the sign of the
        largest one.
    sign : float
        Of the largest one, 1 or -1.
    mass : float
        Sum of the weights.
    contributors : int
    alike : bool
        Whether the values lie within `P` of the largest one of each other.
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
        """Whether the rule forbids the total of each cluster."""
        return (self.contributors >= FEWEST) & (self.rest < P * self.first) & ~self.alike

    def known(self, means: np.ndarray) -> np.ndarray:
        """Whether a published mean tells the second largest contributor the largest within `P`."""
        estimate = self.sign * means * self.mass - self.second
        near = np.abs(estimate - self.first) < P * self.first * (1.0 - 1e-9)
        return np.asarray(self.forbidden & near)


def contributions(
    values: np.ndarray, labels: np.ndarray, weights: np.ndarray, owners: np.ndarray | None = None
) -> Contributions:
    """Return the contributions to each cluster's weighted total.

    Parameters
    ----------
    values, weights : (n,) float arrays
    labels : (n,) int array
        Cluster of each record, 0 to m - 1.
    owners : (n,) int array, optional
        Whose values are one contribution; by default every record's is its own.
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
    """Return what to add to each mean, (m,); 0 where the rule allows the total.

    Parameters
    ----------
    means : (m,) float array
        Zero is not crossed: a mean too near to it is moved away from it.
    units : (m,) float array
        What a mean can lose again when it is rounded: each move is that much longer.
    seed : int
        Draws direction and level of every cluster. Whoever knows it can undo the moves.
    """
    random = np.random.default_rng(seed)
    upwards, level = random.random((2, len(means)))
    level = P * (1.0 + (LARGEST_LEVEL - 1.0) * level)
    up = (level * of.first - of.remainder) / of.mass + units
    down = (level * of.first + of.remainder) / of.mass + units
    move = np.where((upwards < 0.5) | (down > of.sign * means), up, -down)
    return np.where(of.forbidden, of.sign * move, 0.0)
