"""Branching on pairs within a complete list of clusters: the cheapest partition that the list allows.

Where every cluster that can matter is listed, nothing is left to be priced: a node is a part of the list, and
its bound the linear program over that part with subset-row cuts, to which each node may add. Clusters whose
reduced cost fills what is left of the gap leave the part, so that the programs shrink as the bound rises. The
node of least bound is split first, on the pair of records whose halves (apart, or in one cluster: Ryan and
Foster 1981) both rise most; both are solved, and one that is closed is not looked at.

The general integer program takes ten times as long over ten thousand clusters of a hundred records, most of
it before its first node.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from microguard.sdc.errors import SolverFailed
from microguard.sdc.microaggregation.certified.odd_set_cuts import separate_larger
from microguard.sdc.microaggregation.certified.relaxation import CLOSED
from microguard.sdc.microaggregation.certified.subset_row_cuts import separate
from microguard.sdc.microaggregation.certified.undecided_pairs import EQUAL, undecided_pairs
from microguard.sdc.microaggregation.column_generation.columns import Columns
from microguard.sdc.microaggregation.column_generation.master import NO_PARTITION, cut_entries, cut_limits
from microguard.sdc.microaggregation.column_generation.set_partitioning import set_partitioning
from microguard.sdc.solver import FEASIBILITY_TOLERANCE, INFINITY, Basis, Master, Solution, Status
from microguard.sdc.stop import Deadline
from scipy import sparse

#: Pairs tried at a node: more make fewer nodes, and take longer together.
TRIED = 3
#: Rounds of cuts at a node, and cuts in one; a round that closes less of the gap than this share is the last.
ROUNDS, IN_ONE, STALLED = 3, 30, 0.03
#: A round that finds fewer cuts on triples looks for cuts on larger sets as well.
FEW_CUTS = 5
#: A column is in a partition where it is chosen to more than this; no pair is undecided then.
CHOSEN = 0.5


class InList(NamedTuple):
    """What branching within a list reached.

    Attributes
    ----------
    lower_bound : float
        On the cost of any partition made of listed clusters, at most what was enough.
    chosen : (clusters,) int array
        Columns of the cheapest partition known.
    nodes : int
        Nodes looked at.
    """

    lower_bound: float
    chosen: np.ndarray
    nodes: int


class _Node(NamedTuple):
    """Partitions made of a part of the list.

    Attributes
    ----------
    bound : float
        On the cost of any.
    number : int
        In the order of the search; it decides between equal bounds.
    kept : (columns,) int array
        Places in the list.
    cuts : (cuts, width) int array
        Of its program.
    basis : Basis or None
        To begin at.
    """

    bound: float
    number: int
    kept: np.ndarray
    cuts: np.ndarray
    basis: Basis | None


def branch_in_list(
    columns: Columns,
    listed: np.ndarray,
    cuts: np.ndarray,
    incumbent: np.ndarray,
    *,
    enough: float,
    nodes: int,
    looks: int,
    deadline: Deadline,
) -> InList:
    """The cheapest partition made of listed clusters, or a bound on its cost.

    Parameters
    ----------
    columns : Columns
        Of costs in units of the mean loss per record.
    listed : (m,) int array
        Positions of columns, those of the incumbent among them.
    cuts : (cuts, width) int array
        Subset-row cuts to begin with.
    incumbent : (clusters,) int array
        Positions of columns that partition the records.
    enough : float
        A bound as high ends the search.
    nodes, looks : int
        Nodes at most, and columns of theirs in all.
    deadline : Deadline
        Safety net.
    """
    tree = _Tree(columns, listed, incumbent, enough, deadline)
    bound = tree.search(cuts, nodes, looks)
    return InList(bound, tree.chosen, tree.nodes)


class _Tree:
    """The search: the list, and the cheapest partition known."""

    def __init__(
        self,
        columns: Columns,
        listed: np.ndarray,
        incumbent: np.ndarray,
        enough: float,
        deadline: Deadline,
    ) -> None:
        self.nodes = 0
        self.chosen = incumbent
        self.deadline = deadline
        self.costs = columns.costs[listed]
        self.members = columns.members[listed]
        self.incidence = columns.incidence(listed)
        self.most_clusters = len(columns.distances) // columns.k
        self._listed = listed
        self._least = min(enough, float(columns.costs[incumbent].sum()))
        self._made = 0

    @property
    def closed(self) -> float:
        """Bound from which on a node is closed: the solver leaves out its tolerance per cluster."""
        return (1.0 - CLOSED) * self._least - self.most_clusters * FEASIBILITY_TOLERANCE

    def search(self, cuts: np.ndarray, most_nodes: int, most_looks: int) -> float:
        """Split the node of least bound until the work is done or none is left; the bound of the list."""
        looks = 0
        open_nodes = [_Node(0.0, 0, np.arange(len(self._listed)), cuts, None)]
        while open_nodes and self.nodes < most_nodes and looks < most_looks:
            node = heapq.heappop(open_nodes)
            if node.bound >= self.closed:
                return self._least
            self.nodes += 1
            looks += len(node.kept)
            halves = self._halves(node)
            if halves is None:
                return node.bound
            for half in halves:
                heapq.heappush(open_nodes, half)
        return min([self._least, *(node.bound for node in open_nodes if node.bound < self.closed)])

    def _halves(self, node: _Node) -> list[_Node] | None:
        """The halves of a node that are not closed; None where the clock ended it, or its own partition does
        not close it."""
        part = _Part(self, node)
        solution = part.solve_with_cuts()
        if solution is None:
            return None
        reduced, bound = part.reduced_costs(solution)
        if bound >= self.closed:
            return []
        pairs = undecided_pairs(part.incidence, part.values(solution), part.duals(solution), TRIED)
        if len(pairs) == 0:
            self._take_in(node.kept[part.values(solution) > CHOSEN])
            return [] if bound >= self.closed else None
        fixed = bound + reduced >= self.closed
        basis = part.master.basis
        best: list[tuple[float, np.ndarray, Basis]] = []
        most = 0.0
        for pair in pairs:
            halves, promise = [], 1.0
            first, second = (part.holding(record) for record in pair)
            for out in (fixed | (first & second), fixed | (first ^ second)):
                part.master.begin_at(basis)
                solution = part.solve(out)
                if solution is None:
                    return None
                rise = max(bound, part.reduced_costs(solution)[1])
                promise *= max(min(rise, self.closed) - bound, EQUAL)
                if rise < self.closed:
                    halves.append((rise, ~out, part.master.basis))
            if promise > most * (1.0 + EQUAL):
                best, most = halves, promise
            if not halves:
                break
        return [self._node(part, node, *half) for half in best]

    def _node(self, part: _Part, parent: _Node, bound: float, inside: np.ndarray, basis: Basis) -> _Node:
        """A half: the columns inside of a node's."""
        self._made += 1
        begin = basis.of_columns(np.append(inside, True))
        return _Node(bound, self._made, parent.kept[inside], part.cuts, begin)

    def _take_in(self, kept: np.ndarray) -> None:
        """Keep a partition where it is cheaper."""
        cost = float(self.costs[kept].sum())
        held = np.asarray(self.incidence[:, kept].sum(axis=1))
        if cost < self._least and np.all(held == 1.0):
            self._least, self.chosen = cost, self._listed[kept]


class _Part:
    """The linear program of a node, with one more column: no partition, where halves leave no other."""

    def __init__(self, tree: _Tree, node: _Node) -> None:
        self._tree, self._kept = tree, node.kept
        self.cuts = node.cuts
        self.incidence = tree.incidence[:, node.kept]
        self._costs = tree.costs[node.kept]
        self._of_record = self.incidence.tocsr()
        self._n = self.incidence.shape[0]
        self._entries = cut_entries(node.cuts, self.incidence)
        self.master = Master(
            set_partitioning(
                np.append(self._costs, NO_PARTITION * self._n),
                sparse.hstack([self.incidence, np.ones((self._n, 1))]).tocsc(),
                _with_no_partition(self._entries),
                cut_limits(node.cuts),
                upper=INFINITY,
            )
        )
        if node.basis is not None:
            self.master.begin_at(node.basis)
        self._out = np.zeros(len(node.kept), dtype=bool)

    def solve_with_cuts(self) -> Solution | None:
        """Solve after rounds of cuts, as long as they raise the bound; None where the clock ended it."""
        tree = self._tree
        solution = self.solve(self._out)
        for _ in range(ROUNDS):
            if solution is None or solution.bound >= tree.closed:
                break
            at_hand = tree.members[self._kept], self.values(solution), self._n, self.cuts
            cuts = separate(*at_hand, in_all=IN_ONE)
            if len(cuts) < FEW_CUTS:
                cuts = np.concatenate([cuts, separate_larger(*at_hand, in_all=IN_ONE)])
            if len(cuts) == 0:
                break
            before = solution.bound
            self._add(cuts)
            solution = self.solve(self._out)
            if solution is None or solution.bound - before < STALLED * (tree.closed - before):
                break
        return solution

    def solve(self, out: np.ndarray) -> Solution | None:
        """Solve without some columns; None where the wall clock ended it."""
        changed = np.flatnonzero(out != self._out)
        upper = np.where(out[changed], 0.0, INFINITY)
        self.master.change_bounds(changed, np.zeros(len(changed)), upper)
        self._out = out
        solution = self.master.solve(self._tree.deadline.remaining)
        if solution.timed_out:
            return None
        if solution.status is not Status.OPTIMAL:
            raise SolverFailed(f"the program of a node ended {solution.status.value}, expected optimal")
        return solution

    def reduced_costs(self, solution: Solution) -> tuple[np.ndarray, float]:
        """(columns,) reduced costs, and the bound that the duals prove: that of Lagrange."""
        duals = self.duals(solution)
        penalties = np.maximum(0.0, -np.asarray(solution.row_duals)[self._n :])
        reduced = self._costs - self.incidence.T @ duals + self._entries.T @ penalties
        paid = float(penalties @ cut_limits(self.cuts))
        least = float(reduced[~self._out].min(initial=0.0))
        return reduced, float(duals.sum()) - paid + self._tree.most_clusters * least

    def values(self, solution: Solution) -> np.ndarray:
        """(columns,) shares to which columns are chosen."""
        return np.asarray(solution.values)[:-1]

    def duals(self, solution: Solution) -> np.ndarray:
        """(n,) duals of the records."""
        return np.asarray(solution.row_duals)[: self._n]

    def holding(self, record: int) -> np.ndarray:
        """(columns,) whether a column holds a record."""
        held = np.zeros(len(self._kept), dtype=bool)
        held[self._of_record[record].indices] = True
        return held

    def _add(self, cuts: np.ndarray) -> None:
        entries = cut_entries(cuts, self.incidence)
        self.master.add_rows(np.full(len(cuts), -INFINITY), cut_limits(cuts), _with_no_partition(entries))
        self._entries = sparse.vstack([self._entries, entries]).tocsc()
        self.cuts = np.concatenate([self.cuts, cuts]) if len(self.cuts) else cuts


def _with_no_partition(entries: sparse.spmatrix) -> sparse.csc_matrix:
    """Rows of cuts with one more column, which holds no pair."""
    return sparse.hstack([entries, sparse.csc_matrix((entries.shape[0], 1))]).tocsc()
