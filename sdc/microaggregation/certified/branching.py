"""Branching on pairs of records: what is left of the gap once cuts and lists are spent.

A clustering holds two records in one cluster or apart (Ryan and Foster 1981), so the lesser bound of the
two halves holds of all. The node of least bound is split first, on the pair whose halves both rise most over
the columns at hand (strong branching); each half is priced exactly, without further cuts. A cheap pair
settles nothing, so only those are tried that are most undecided and whose records have the largest duals.
Where no pair of a node is undecided, its columns are a clustering: a cheaper one than was known is kept.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from microguard.sdc.microaggregation.certified.relaxation import CLOSED, Allowance, Prices, Relaxation
from microguard.sdc.microaggregation.certified.undecided_pairs import DECIDED, EQUAL, undecided_pairs
from microguard.sdc.microaggregation.column_generation.columns import Columns
from microguard.sdc.solver import FEASIBILITY_TOLERANCE
from microguard.sdc.stop import Deadline

#: Relative distance of bound and master problem at which a node is left.
TOLERANCE = 1e-5
#: Pairs tried at a node.
TRIED = 8


@dataclass(frozen=True)
class Branching:
    """Work of branching.

    Attributes
    ----------
    nodes : int
        At most.
    allowance : Allowance
        Of their pricing and linear programs.
    gap : float
        Largest relative gap that branching is tried at.
    """

    nodes: int
    allowance: Allowance
    gap: float = 1.0


class Branched(NamedTuple):
    """What branching reached.

    Attributes
    ----------
    lower_bound : float
        On the cost of any clustering; the cost of the cheapest one known where that was proved optimal.
    members : (clusters, 2k - 1) int array or None
        Of a clustering cheaper than the one known before.
    nodes : int
        Nodes looked at.
    """

    lower_bound: float
    members: np.ndarray | None
    nodes: int


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


def branch(relaxation: Relaxation, cost: float, work: Branching, deadline: Deadline) -> Branched:
    """Raise the bound of a relaxation by splitting it on pairs.

    Parameters
    ----------
    relaxation : Relaxation
        With a finite `lower_bound`.
    cost : float
        Of a clustering that is known.
    work : Branching
    deadline : Deadline
        Safety net.
    """
    tree = _Tree(relaxation, cost, work, deadline)
    bound = tree.search()
    return Branched(bound, tree.cheaper, tree.nodes)


class _Tree:
    """The search, with a relaxation of its own that is restricted to one node after the other."""

    def __init__(self, whole: Relaxation, cost: float, work: Branching, deadline: Deadline) -> None:
        self.nodes = 0
        self.cheaper: np.ndarray | None = None
        self._cost, self._most_nodes = cost, work.nodes
        near = np.flatnonzero(whole.reduced_costs() < cost - whole.lower_bound)
        columns = Columns(whole.columns.distances, whole.columns.k)
        columns.add(whole.columns.members[near])
        self._relaxation = Relaxation(
            columns, whole.prices.duals, work.allowance, deadline, tolerance=FEASIBILITY_TOLERANCE
        )
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
            if node.bound >= self._closed:
                return self._cost
            if node.pair is None:
                return node.bound
            halves = (
                (np.vstack([node.apart, node.pair]), node.together),
                (node.apart, np.vstack([node.together, node.pair])),
            )
            for apart, together in halves:
                heapq.heappush(open_nodes, self._look(node, apart, together))
        return min([self._cost, *(node.bound for node in open_nodes if node.bound < self._closed)])

    @property
    def _closed(self) -> float:
        """Bound from which on a node is closed: pricing leaves out its tolerance per cluster."""
        clusters = self._relaxation.master.n / self._relaxation.columns.k
        return (1.0 - CLOSED) * self._cost - clusters * FEASIBILITY_TOLERANCE

    def _look(self, parent: Node, apart: np.ndarray, together: np.ndarray) -> Node:
        """A half of a node, or the first, with its bound and the pair to split it on."""
        relaxation = self._relaxation
        self.nodes += 1
        relaxation.restrict(apart, together, parent.prices)
        pair = None
        for tolerance in (TOLERANCE, CLOSED):  # the second closes a node without an undecided pair
            converged = relaxation.converge(tolerance, self._closed)
            bound = max(parent.bound, relaxation.lower_bound)
            if not converged or bound >= self._closed:
                break
            pair = self._pair(apart, together)
            if pair is not None:
                break
            self._take_in()
        return Node(bound, self.nodes, apart, together, relaxation.prices, pair)

    def _take_in(self) -> None:
        """Keep the clustering that the columns of the solution are, where it is cheaper."""
        relaxation = self._relaxation
        if relaxation.solution is None:
            return
        chosen = np.flatnonzero(relaxation.solution.x > 1.0 - DECIDED)
        cost = float(relaxation.columns.costs[chosen].sum())
        held = np.asarray(relaxation.columns.incidence(chosen).sum(axis=1))
        if cost < self._cost and np.all(held == 1):
            self._cost, self.cheaper = cost, relaxation.columns.members[chosen]

    def _pair(self, apart: np.ndarray, together: np.ndarray) -> np.ndarray | None:
        """The pair whose halves both rise most, over the columns at hand."""
        relaxation = self._relaxation
        best, most = None, -1.0
        if relaxation.solution is None:
            return None
        at_hand = relaxation.solution.objective
        incidence = relaxation.columns.incidence(np.arange(len(relaxation.columns)))
        for pair in undecided_pairs(incidence, relaxation.solution.x, relaxation.prices.duals, TRIED):
            rises = [
                min(relaxation.at_hand(*half), self._cost) - at_hand
                for half in (
                    (np.vstack([apart, pair]), together),
                    (apart, np.vstack([together, pair])),
                )
            ]
            rise = max(rises[0], EQUAL) * max(rises[1], EQUAL)
            if rise > most * (1.0 + EQUAL):
                best, most = pair, rise
        return best
