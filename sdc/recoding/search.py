"""Search for the node of the lattice with the least loss by predictive tagging on paths, as in OLA and Flash.

El Emam et al. 2009 (OLA); Kohlmayer et al. 2012 (Flash). Coarser levels merge classes, so a node with too
many outliers rules out all nodes below it. If two variables alone have too many outliers at some levels, all
nodes with these levels are ruled out (LeFevre, DeWitt and Ramakrishnan 2005). A node is not counted if its
lower bound is not below the best loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np
from microguard.sdc.errors import InvalidParameter
from microguard.sdc.recoding.lattice import Lattice, Node

#: Maximum number of nodes of a lattice that is searched completely. In a larger lattice, the search descends
#: from the top node.
MOST_NODES = 4_000_000
#: Maximum number of nodes that are evaluated. The lower bound states how much better the remaining nodes may
#: be.
MOST_COUNTED = 20_000
#: Maximum difference of losses that count as equal.
_EQUAL = 1e-12


@dataclass(frozen=True)
class Recoding:
    """Result of recoding: the hierarchy levels with the least loss.

    Attributes
    ----------
    levels : tuple of int
        Level of each variable; 0 is the finest.
    suppressed : (n,) boolean array
        Combinations whose records have all values suppressed.
    records : int
        Number of suppressed records.
    loss, lower_bound : float
    optimal : bool
    nodes, counted : int
        Nodes of the lattice, and how many of them were counted.
    classes : int
        Number of classes at these levels. The suppressed records of a region count as one class.
    """

    levels: tuple[int, ...]
    suppressed: np.ndarray
    records: int
    loss: float
    lower_bound: float
    optimal: bool
    nodes: int
    counted: int
    classes: int


def recode(lattice: Lattice, max_suppressed: int = 0, *, most_nodes: int = MOST_NODES) -> Recoding:
    """Return the k-anonymous node with the least loss that suppresses at most `max_suppressed` records.

    Parameters
    ----------
    lattice : Lattice
    max_suppressed : int
        Maximum number of records whose values are all suppressed.
    most_nodes : int
        Maximum size of a lattice that is searched completely. A larger lattice is searched by a descent from
        the top node, without a bound.

    Raises
    ------
    InvalidParameter
        If a region has fewer than k records.
    """
    _, sizes = lattice.classes({})
    if len(sizes) == 0 or sizes.min() < lattice.k:
        raise InvalidParameter(
            f"regions: expected at least k = {lattice.k} records in each, found fewer in a region",
            variable="regions",
        )
    nodes = prod(lattice.shape)
    search = _Search(lattice, max_suppressed)
    if nodes > most_nodes:
        search.descend()
        bound, optimal = search.bound_of_bottom(), False
    else:
        bound, optimal = search.complete()
    loss, levels, node = search.best
    place, _ = lattice.classes(dict(enumerate(levels)))
    kept, gone = np.unique(place[~node.suppressed]), np.unique(lattice.regions[node.suppressed])
    return Recoding(
        levels=levels,
        suppressed=node.suppressed,
        records=node.records,
        loss=loss,
        lower_bound=min(bound, loss),
        optimal=optimal,
        nodes=nodes,
        counted=search.counted,
        classes=len(kept) + len(gone),
    )


class _Search:
    """State of the search: the best node so far, and the number of evaluated nodes."""

    def __init__(self, lattice: Lattice, max_suppressed: int) -> None:
        self.lattice, self.most = lattice, max_suppressed
        self.counted = 0
        self.top = tuple(levels - 1 for levels in lattice.shape)
        self.best = (np.inf, self.top, lattice.evaluate(self.top))
        self.count(self.top)

    def count(self, node: tuple[int, ...]) -> Node:
        """Count the outliers of a node, and store the node if it is the best so far."""
        self.counted += 1
        found = self.lattice.evaluate(node)
        allowed = found.outliers == 0 or found.records <= self.most
        if allowed and (found.loss, node) < (self.best[0] - _EQUAL, node):
            self.best = (found.loss, node, found)
        return found

    def bound_of_bottom(self) -> float:
        """Return a lower bound that is valid for every node: the loss of the finest levels."""
        return self.count((0,) * len(self.top)).least

    def descend(self) -> None:
        """Descend from the top node: repeatedly refine the level that reduces the loss most, while the node
        is admissible.
        """
        node = self.top
        while True:
            below = [(*node[:j], level - 1, *node[j + 1 :]) for j, level in enumerate(node) if level > 0]
            before = self.best[0]
            found = [(self.count(each), each) for each in below]
            allowed = [
                (one.loss, each) for one, each in found if one.records <= self.most or not one.outliers
            ]
            if not allowed or (min(allowed)[0] >= before and self.best[1] == node):
                return
            node = min(allowed)[1]

    def complete(self) -> tuple[float, bool]:
        """Evaluate nodes until no open node can have a smaller loss; return the lower bound and whether the
        search was complete.
        """
        lattice = self.lattice
        guide = lattice.separable
        lower = np.zeros(lattice.shape) if lattice.measure == "discernibility" else guide.copy()
        still_open = np.ones(lattice.shape, bool)
        still_open[self.top] = False
        self._rule_out_pairs(still_open)
        known = np.inf
        while self.counted < MOST_COUNTED:
            if self.best[0] < known:
                known = self.best[0]
                still_open &= lower < known - _EQUAL
            chosen = np.where(still_open, guide, np.inf).argmin()
            node = tuple(int(i) for i in np.unravel_index(chosen, lattice.shape))
            if not still_open[node]:
                return known, True
            self._bisect(self._path(node, still_open, guide), still_open, lower)
        left = lower[still_open]
        return float(min(known, left.min(initial=np.inf))), len(left) == 0

    def _rule_out_pairs(self, still_open: np.ndarray) -> None:
        """Exclude the nodes in which two variables alone already have too many outliers."""
        for i, j in combinations(range(len(self.top)), 2):
            for low, high in np.ndindex(self.lattice.shape[i], self.lattice.shape[j]):
                part: list[int | slice] = [slice(None)] * len(self.top)
                part[i], part[j] = low, high
                if still_open[tuple(part)].any() and self.lattice.outliers({i: low, j: high}) > self.most:
                    part[i], part[j] = slice(low + 1), slice(high + 1)
                    still_open[tuple(part)] = False

    def _path(
        self, node: tuple[int, ...], still_open: np.ndarray, guide: np.ndarray
    ) -> list[tuple[int, ...]]:
        """Return an ascending path of open nodes; each next node is the one with the least loss."""
        path = [node]
        while True:
            above = [
                (*node[:j], level + 1, *node[j + 1 :])
                for j, level in enumerate(node)
                if level < self.top[j] and still_open[(*node[:j], level + 1, *node[j + 1 :])]
            ]
            if not above:
                return path
            node = min(above, key=lambda each: (guide[each], each))
            path.append(node)

    def _bisect(self, path: list[tuple[int, ...]], still_open: np.ndarray, lower: np.ndarray) -> None:
        """Find the lowest admissible node of a path by bisection, and exclude the nodes that the counts rule
        out.
        """
        first, last = 0, len(path) - 1
        while first <= last:
            middle = (first + last) // 2
            node = path[middle]
            found = self.count(node)
            still_open[node] = False
            if found.outliers > self.most:
                still_open[tuple(slice(level + 1) for level in node)] = False
                first = middle + 1
            else:
                if self.lattice.measure == "discernibility":
                    above = tuple(slice(level, None) for level in node)
                    lower[above] = np.maximum(lower[above], found.least)
                    if found.least >= self.best[0] - _EQUAL:
                        still_open[above] = False
                last = middle - 1
