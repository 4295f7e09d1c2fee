"""Branching on pairs of records: what is left of the gap once cuts and lists are spent.

A clustering holds two records in one cluster or apart (Ryan and Foster 1981), so the lesser bound of the
two halves holds of all. The node of least bound is split first, on the pair whose halves both rise most over
the columns at hand (strong branching); each half is priced exactly, without further cuts. A cheap pair
settles nothing, so only those are tried that are most undecided and whose records have the largest duals.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from sdc.microaggregation.certified.relaxation import Allowance, Prices, Relaxation
from sdc.microaggregation.column_generation.columns import Columns
from sdc.stop import Deadline

#: Relative distance of bound and master problem at which a node is left.
TOLERANCE = 1e-5
#: Pairs tried at a node.
TRIED = 8
#: A pair is decided where the clusters that hold it add up to this little, or to one less this.
DECIDED = 1e-3
#: Gains as near as this are equal.
_EQUAL = 1e-6


@dataclass(frozen=True)
class Branching:
    """Work of branching: nodes, and what their pricing and linear programs take, at most."""

    nodes: int
    allowance: Allowance


class Node(NamedTuple):
    """Clusterings that hold some pairs apart and others together.

    Attributes
    ----------
    bound : float
        On the cost of any.
    number : int
        In the order of the search; it decides between equal bounds.
    apart, together : (pairs, 2) int arrays
    prices : Prices
        Of the bound.
    pair : (2,) int array or None
        To split on, where the work was enough to choose one and some pair is undecided.
    """

    bound: float
    number: int
    apart: np.ndarray
    together: np.ndarray
    prices: Prices
    pair: np.ndarray | None


def branch(relaxation: Relaxation, cost: float, work: Branching, deadline: Deadline) -> tuple[float, int]:
    """Lower bound on the cost of any clustering, at most `cost`, and the nodes looked at.

    Parameters
    ----------
    relaxation : Relaxation
        With a finite `lower_bound`.
    cost : float
        Of a clustering.
    work : Branching
    deadline : Deadline
        Safety net.
    """
    tree = _Tree(relaxation, cost, work, deadline)
    return tree.search(), tree.nodes


class _Tree:
    """The search, with a relaxation of its own that is restricted to one node after the other."""

    def __init__(self, whole: Relaxation, cost: float, work: Branching, deadline: Deadline) -> None:
        self.nodes = 0
        self._cost, self._most_nodes = cost, work.nodes
        near = np.flatnonzero(whole.reduced_costs() < cost - whole.lower_bound)
        columns = Columns(whole.columns.distances, whole.columns.k)
        columns.add(whole.columns.members[near])
        self._relaxation = Relaxation(columns, whole.prices.duals, work.allowance, deadline)
        if len(whole.binding):
            self._relaxation.add_cuts(whole.binding)
        penalties = whole.prices.penalties
        none = np.empty((0, 2), dtype=np.int64)
        prices = Prices(whole.prices.duals, penalties[penalties > 0], np.empty(0))
        self._root = Node(whole.lower_bound, 0, none, none, prices, None)

    def search(self) -> float:
        """Split the node of least bound until the work is done, that node cannot be split or none is left."""
        if self._most_nodes == 0:
            return self._root.bound
        open_nodes = [self._look(self._root, self._root.apart, self._root.together)]
        while open_nodes and self.nodes + 2 <= self._most_nodes:
            node = heapq.heappop(open_nodes)
            if node.pair is None or node.bound >= self._cost:
                return min(node.bound, self._cost)
            halves = (
                (np.vstack([node.apart, node.pair]), node.together),
                (node.apart, np.vstack([node.together, node.pair])),
            )
            for apart, together in halves:
                heapq.heappush(open_nodes, self._look(node, apart, together))
        return min([self._cost, *(node.bound for node in open_nodes)])

    def _look(self, parent: Node, apart: np.ndarray, together: np.ndarray) -> Node:
        """A half of a node, or the first, with its bound and the pair to split it on."""
        relaxation = self._relaxation
        self.nodes += 1
        relaxation.restrict(apart, together, parent.prices)
        converged = relaxation.converge(TOLERANCE, self._cost)
        bound = max(parent.bound, relaxation.lower_bound)
        pair = None
        if converged and bound < self._cost:
            pair = self._pair(apart, together)
        return Node(bound, self.nodes, apart, together, relaxation.prices, pair)

    def _pair(self, apart: np.ndarray, together: np.ndarray) -> np.ndarray | None:
        """The pair whose halves both rise most, over the columns at hand."""
        relaxation = self._relaxation
        best, most = None, -1.0
        if relaxation.solution is None:
            return None
        at_hand = relaxation.solution.objective
        for pair in self._undecided(relaxation.solution.x):
            rises = [
                min(relaxation.at_hand(*half), self._cost) - at_hand
                for half in (
                    (np.vstack([apart, pair]), together),
                    (apart, np.vstack([together, pair])),
                )
            ]
            rise = max(rises[0], _EQUAL) * max(rises[1], _EQUAL)
            if rise > most * (1.0 + _EQUAL):
                best, most = pair, rise
        return best

    def _undecided(self, x: np.ndarray) -> np.ndarray:
        """(pairs, 2) those to be tried, the most promising first."""
        chosen = np.flatnonzero(x > DECIDED)
        incidence = self._relaxation.columns.incidence(chosen)
        shared = sparse.triu(incidence @ sparse.diags(x[chosen]) @ incidence.T, k=1).tocoo()
        duals = self._relaxation.prices.duals
        undecided = np.minimum(shared.data, 1.0 - shared.data)
        promise = np.round(undecided * (duals[shared.row] + duals[shared.col]), 6)
        order = np.lexsort((shared.col, shared.row, -promise))
        order = order[undecided[order] > DECIDED][:TRIED]
        return np.column_stack([shared.row[order], shared.col[order]]).astype(np.int64)
