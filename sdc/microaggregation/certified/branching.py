"""Branching on pairs of records (Ryan and Foster 1981), which closes the gap that cuts and enumeration leave.

In every clustering two records are in one cluster or in two, so the smaller bound of the two children is
valid for the node. The node with the least bound is split first. Strong branching over the current columns
chooses the pair whose children both have the largest bound increase. Children are priced exactly, without
further cuts. Only the most fractional pairs with the largest duals are tried, because other pairs change
little. If a node has no fractional pair, its columns form a clustering, which replaces the incumbent if it is
cheaper.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from microguard.sdc.microaggregation.certified.relaxation import CLOSED, Allowance, DualValues, Relaxation
from microguard.sdc.microaggregation.certified.undecided_pairs import DECIDED, EQUAL, undecided_pairs
from microguard.sdc.microaggregation.column_generation.columns import Columns
from microguard.sdc.solver import FEASIBILITY_TOLERANCE
from microguard.sdc.stop import Deadline

#: Relative difference of bound and master problem at which a node has converged.
TOLERANCE = 1e-5
#: Number of pairs that strong branching tries at a node.
TRIED = 8


@dataclass(frozen=True)
class Branching:
    """Work limits of branching.

    Attributes
    ----------
    nodes : int
        Maximum number of nodes.
    allowance : Allowance
        Limits on pricing and linear programs.
    gap : float
        Branching is tried up to this relative gap.
    """

    nodes: int
    allowance: Allowance
    gap: float = 1.0


class Branched(NamedTuple):
    """Result of branching.

    Attributes
    ----------
    lower_bound : float
        Bound on the cost of every clustering. It equals the cost of the best clustering if that is proved
        optimal.
    members : (clusters, 2k - 1) int array or None
        Clusters of an improved clustering; None if there is none.
    nodes : int
        Number of nodes solved.
    """

    lower_bound: float
    members: np.ndarray | None
    nodes: int


class Node(NamedTuple):
    """Node of the search: clusterings that separate some pairs and join others.

    Attributes
    ----------
    bound : float
        Bound on the cost of these clusterings.
    number : int
        Number of the node, which breaks ties of bounds.
    apart, together : (pairs, 2) int arrays
        Pairs of records in different clusters, and pairs in one cluster.
    dual_values : DualValues
        Duals of the bound.
    pair : (2,) int array or None
        Pair to split on; None if no pair is fractional or the work limit was reached.
    """

    bound: float
    number: int
    apart: np.ndarray
    together: np.ndarray
    dual_values: DualValues
    pair: np.ndarray | None


def branch(relaxation: Relaxation, cost: float, work: Branching, deadline: Deadline) -> Branched:
    """Raise the lower bound of a relaxation by branching on pairs.

    Parameters
    ----------
    relaxation : Relaxation
        Relaxation with a finite `lower_bound`.
    cost : float
        Cost of the incumbent.
    work : Branching
    deadline : Deadline
        Wall-clock limit, as a safety net.
    """
    tree = _Tree(relaxation, cost, work, deadline)
    bound = tree.search()
    return Branched(bound, tree.cheaper, tree.nodes)


class _Tree:
    """Search tree with a relaxation of its own, which is restricted to one node after the other."""

    def __init__(self, whole: Relaxation, cost: float, work: Branching, deadline: Deadline) -> None:
        self.nodes = 0
        self.cheaper: np.ndarray | None = None
        self._cost, self._most_nodes = cost, work.nodes
        near = np.flatnonzero(whole.reduced_costs() < cost - whole.lower_bound)
        columns = Columns(whole.columns.distances, whole.columns.k)
        columns.add(whole.columns.members[near])
        self._relaxation = Relaxation(
            columns, whole.dual_values.duals, work.allowance, deadline, tolerance=FEASIBILITY_TOLERANCE
        )
        if len(whole.binding):
            self._relaxation.add_cuts(whole.binding)
        penalties = whole.dual_values.penalties
        none = np.empty((0, 2), dtype=np.int64)
        dual_values = DualValues(whole.dual_values.duals, penalties[penalties > 0], np.empty(0))
        self._root = Node(whole.lower_bound, 0, none, none, dual_values, None)

    def search(self) -> float:
        """Split the node with the least bound until a limit is reached; return the bound."""
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
        """Bound from which on a node is pruned, reduced by the tolerance of pricing per cluster."""
        clusters = self._relaxation.master.n / self._relaxation.columns.k
        return (1.0 - CLOSED) * self._cost - clusters * FEASIBILITY_TOLERANCE

    def _look(self, parent: Node, apart: np.ndarray, together: np.ndarray) -> Node:
        """Solve a child of a node, or the root node; return it with its bound and the pair to split on."""
        relaxation = self._relaxation
        self.nodes += 1
        relaxation.restrict(apart, together, parent.dual_values)
        pair = None
        for tolerance in (TOLERANCE, CLOSED):  # the second tolerance closes a node without a fractional pair
            converged = relaxation.converge(tolerance, self._closed)
            bound = max(parent.bound, relaxation.lower_bound)
            if not converged or bound >= self._closed:
                break
            pair = self._pair(apart, together)
            if pair is not None:
                break
            self._take_in()
        return Node(bound, self.nodes, apart, together, relaxation.dual_values, pair)

    def _take_in(self) -> None:
        """Replace the incumbent if the columns of the solution form a cheaper clustering."""
        relaxation = self._relaxation
        if relaxation.solution is None:
            return
        chosen = np.flatnonzero(relaxation.solution.x > 1.0 - DECIDED)
        cost = float(relaxation.columns.costs[chosen].sum())
        held = np.asarray(relaxation.columns.incidence(chosen).sum(axis=1))
        if cost < self._cost and np.all(held == 1):
            self._cost, self.cheaper = cost, relaxation.columns.members[chosen]

    def _pair(self, apart: np.ndarray, together: np.ndarray) -> np.ndarray | None:
        """Choose the pair whose children have the largest bound increases over the current columns."""
        relaxation = self._relaxation
        best, most = None, -1.0
        if relaxation.solution is None:
            return None
        current = relaxation.solution.objective
        incidence = relaxation.columns.incidence(np.arange(len(relaxation.columns)))
        for pair in undecided_pairs(incidence, relaxation.solution.x, relaxation.dual_values.duals, TRIED):
            rises = [
                min(relaxation.restricted_value(*half), self._cost) - current
                for half in (
                    (np.vstack([apart, pair]), together),
                    (apart, np.vstack([together, pair])),
                )
            ]
            rise = max(rises[0], EQUAL) * max(rises[1], EQUAL)
            if rise > most * (1.0 + EQUAL):
                best, most = pair, rise
        return best
