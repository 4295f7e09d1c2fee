"""Lattice of generalisations: a node specifies one hierarchy level per variable and defines equivalence
classes.

Losses are shares from 0 (values unchanged) to 1 (nothing is published). Granularity is the LM of Iyengar
(2002): the share of the other categories that a published value does not exclude. Precision is that of
Sweeney (2002): the level divided by the height of the hierarchy. Discernibility is that of Bayardo and
Agrawal (2005): the number of records in the record's class, or of all records if the record is suppressed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

_LARGEST_LABEL = 1 << 62


@dataclass(frozen=True)
class Ladder:
    """Hierarchy levels of one variable, finest first; at the last level every value is suppressed.

    Attributes
    ----------
    groups : (levels, values) int64 array
        Number of the category of each finest value at each level; -1 for a missing value.
    """

    groups: np.ndarray

    @cached_property
    def granularity(self) -> np.ndarray:
        """Return for each published category the share of the other finest values that it includes, (levels,
        values).
        """
        loss = np.zeros(self.groups.shape)
        present = self.groups[0] >= 0
        others = max(int(present.sum()) - 1, 1)
        for level, groups in enumerate(self.groups):
            sizes = np.bincount(groups[present] + 1, minlength=int(groups.max(initial=-1)) + 2)
            loss[level, present] = (sizes[groups[present] + 1] - 1) / others
        # the last level loses all information, even for a variable with a single value
        loss[-1, present] = 1.0
        return loss

    @cached_property
    def precision(self) -> np.ndarray:
        """Return the level divided by the number of levels above the finest, (levels, values); 0 for a
        missing value.
        """
        height = max(len(self.groups) - 1, 1)
        levels = np.arange(len(self.groups))[:, None] / height
        return np.asarray(levels * (self.groups[0] >= 0))


@dataclass(frozen=True)
class Node:
    """Loss and suppressed records of a node of the lattice.

    Attributes
    ----------
    outliers : int
        Number of records in classes of fewer than k.
    suppressed : (n,) boolean array
        Combinations whose records are suppressed: the outliers, and in each region as many further records as
        needed for at least k suppressed records.
    records : int
        Number of suppressed records.
    loss : float
    least : float
        Lower bound on the loss of all nodes above this node.
    """

    outliers: int
    suppressed: np.ndarray
    records: int
    loss: float
    least: float


@dataclass(frozen=True)
class Lattice:
    """Counts of the finest combinations, and the hierarchy levels of their variables.

    Attributes
    ----------
    codes : (n, m) int64 array
        Number of the finest value of each variable.
    counts : (n,) int64 array
    regions : (n,) int64 array
        Region of each combination. A class does not contain records of several regions.
    ladders : tuple of m Ladder
    weights : (m,) float array
    k : int
    measure : str
        ``granularity``, ``precision`` or ``discernibility``.
    """

    codes: np.ndarray
    counts: np.ndarray
    regions: np.ndarray
    ladders: tuple[Ladder, ...]
    weights: np.ndarray
    k: int
    measure: str

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the number of levels of each variable."""
        return tuple(len(ladder.groups) for ladder in self.ladders)

    @cached_property
    def records(self) -> int:
        """Return the number of records."""
        return int(self.counts.sum())

    @cached_property
    def losses(self) -> tuple[np.ndarray, ...]:
        """Return for each variable the loss that each level contributes over all records, (levels,)."""
        return tuple(
            self.weights[j] / self.weights.sum() * (self._value_losses(j) @ self._share(j))
            for j in range(len(self.ladders))
        )

    @cached_property
    def separable(self) -> np.ndarray:
        """Return the loss of each node before suppression; the array has one axis per variable.

        Precision replaces discernibility here.
        """
        total = np.zeros(self.shape)
        for j, loss in enumerate(self.losses):
            total += loss.reshape([-1 if i == j else 1 for i in range(len(self.shape))])
        return total

    def _value_losses(self, j: int) -> np.ndarray:
        ladder = self.ladders[j]
        return ladder.granularity if self.measure == "granularity" else ladder.precision

    def _share(self, j: int) -> np.ndarray:
        values = self.ladders[j].groups.shape[1]
        return np.asarray(np.bincount(self.codes[:, j], self.counts, values) / self.records)

    def classes(self, node: dict[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """Return the class of each combination and the number of records of each class, for some of the
        variables only.

        Parameters
        ----------
        node : mapping of variable to level
        """
        label, size = self.regions.astype(np.int64), int(self.regions.max(initial=0)) + 1
        for j, level in node.items():
            groups = self.ladders[j].groups[level]
            values = int(groups.max(initial=-1)) + 2
            if values == 1:
                continue
            if size * values >= _LARGEST_LABEL:
                label = np.unique(label, return_inverse=True)[1].ravel()
                size = len(label)
            label = label * values + groups[self.codes[:, j]] + 1
            size *= values
        _, place = np.unique(label, return_inverse=True)
        place = place.ravel()
        return place, np.bincount(place, self.counts).astype(np.int64)

    def outliers(self, node: dict[int, int]) -> int:
        """Count the records in classes of fewer than k, for some of the variables only."""
        _, sizes = self.classes(node)
        return int(sizes[sizes < self.k].sum())

    def evaluate(self, node: tuple[int, ...]) -> Node:
        """Count the equivalence classes of a node and compute its loss."""
        place, sizes = self.classes(dict(enumerate(node)))
        small = sizes < self.k
        outliers = int(sizes[small].sum())
        suppressed = self._repaired(node, place, sizes, small) if outliers else small
        gone = suppressed[place]
        records = int(sizes[suppressed].sum())
        squares = float((sizes.astype(float) ** 2).sum()) / self.records**2
        if self.measure == "discernibility":
            kept = float((sizes[~suppressed].astype(float) ** 2).sum()) / self.records**2
            return Node(outliers, gone, records, kept + records / self.records, squares)
        loss = float(sum(each[level] for each, level in zip(self.losses, node, strict=True)))
        least = loss
        for j, level in enumerate(node) if records else ():
            value = self._value_losses(j)[level][self.codes[gone, j]]
            more = (1.0 - value) * (self.ladders[j].groups[0][self.codes[gone, j]] >= 0)
            loss += self.weights[j] / self.weights.sum() * float(more @ self.counts[gone]) / self.records
        return Node(outliers, gone, records, loss, least)

    def _repaired(
        self, node: tuple[int, ...], place: np.ndarray, sizes: np.ndarray, small: np.ndarray
    ) -> np.ndarray:
        """Suppress the smallest classes of a region, too, if the region would otherwise have fewer than k
        suppressed records.
        """
        suppressed = small.copy()
        first = np.unique(place, return_index=True)[1]
        region = self.regions[first]
        values = [self.ladders[j].groups[level][self.codes[first, j]] for j, level in enumerate(node)]
        # all values of these classes are already missing
        empty = (np.column_stack(values) < 0).all(axis=1)
        for each in np.unique(region[small]):
            here = region == each
            records = int(sizes[here & (suppressed | empty)].sum())
            further = np.flatnonzero(here & ~suppressed & ~empty)
            for one in further[np.argsort(sizes[further], kind="stable")]:
                if records >= self.k:
                    break
                suppressed[one] = True
                records += int(sizes[one])
        return suppressed
