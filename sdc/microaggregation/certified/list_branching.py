"""Branch and bound on pairs of records within an enumerated list of clusters: the cheapest partition into
listed clusters.

If every relevant cluster is listed, no pricing is needed. A node is a subset of the list. Its bound is the
linear program over this subset with subset-row cuts, and each node adds one round of cuts. Clusters whose
reduced cost reaches the remaining gap are removed, so the programs shrink as the bound rises. The node with
the least bound is split first, on the most fractional pair of records with large duals (separated, or in one
cluster: Ryan and Foster 1981).

For 10,000 clusters of 100 records, a general integer program takes ten times as long as this branching,
mostly before its first node.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from microguard.sdc.errors import SolverFailed
from microguard.sdc.microaggregation.certified.odd_set_cuts import separate_larger
from microguard.sdc.microaggregation.certified.relaxation import CLOSED
from microguard.sdc.microaggregation.certified.subset_row_cuts import separate
from microguard.sdc.microaggregation.column_generation.columns import Columns
from microguard.sdc.microaggregation.column_generation.master import NO_PARTITION, cut_entries, cut_limits
from microguard.sdc.microaggregation.column_generation.set_partitioning import PRESENT, set_partitioning
from microguard.sdc.solver import FEASIBILITY_TOLERANCE, INFINITY, Basis, Master, Solution, Status
from microguard.sdc.stop import Deadline
from scipy import sparse


class InList(NamedTuple):
    """Result of branching within a list of clusters.

    Attributes
    ----------
    lower_bound : float
        Bound on the cost of every partition into listed clusters, at most `enough`.
    chosen : (clusters,) int array
        Columns of the best partition.
    nodes : int
        Number of nodes solved.
    """

    lower_bound: float
    chosen: np.ndarray
    nodes: int


class _Node(NamedTuple):
    """Node of the search tree: partitions into a subset of the listed clusters.

    Attributes
    ----------
    bound : float
        Bound on the cost of these partitions.
    number : int
        Number of the node, which breaks ties of bounds.
    kept : (columns,) int array
        Positions of the subset in the list.
    cuts : (cuts, width) int array
        Cuts of its program.
    basis : Basis or None
        Initial basis.
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
    """Find the cheapest partition into listed clusters, or a lower bound on its cost.

    Parameters
    ----------
    columns : Columns
        Columns with costs in units of the mean loss per record.
    listed : (m,) int array
        Positions of the listed columns, including those of the incumbent.
    cuts : (cuts, width) int array
        Initial subset-row cuts.
    incumbent : (clusters,) int array
        Positions of columns that partition the records.
    enough : float
        The search ends if the bound reaches this value.
    nodes, looks : int
        Limits on the number of nodes, and on their total number of columns.
    deadline : Deadline
        Wall-clock limit, as a safety net.
    """
    tree = _Tree(columns, listed, incumbent, enough, deadline)
    bound = tree.search(cuts, nodes, looks)
    return InList(bound, tree.chosen, tree.nodes)


class _Tree:
    """Search tree over the list of clusters, with the best partition so far."""

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
        """Return the bound at which a node is pruned: the incumbent's cost minus the solver's tolerance per
        cluster.
        """
        return (1.0 - CLOSED) * self._least - self.most_clusters * FEASIBILITY_TOLERANCE

    def search(self, cuts: np.ndarray, most_nodes: int, most_looks: int) -> float:
        """Branch on the node with the least bound until a limit is reached or no node remains; return the
        lower bound.
        """
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
        """Solve a node and return the children that are not pruned; None if a limit was reached.

        A node cannot be completed at the time limit, or if it has no fractional pair but is not pruned by its
        own partition.
        """
        part = _Part(self, node)
        solution = part.solve_with_cuts()
        if solution is None:
            return None
        reduced, bound = part.reduced_costs(solution)
        if bound >= self.closed:
            return []
        pair = _undecided_pair(part.incidence, part.values(solution), part.duals(solution))
        if pair is None:
            self._take_in(node.kept[part.values(solution) > 0.5])
            return [] if bound >= self.closed else None
        fixed = bound + reduced >= self.closed
        basis, halves = part.master.basis, []
        first, second = (part.holding(record) for record in pair)
        for out in (fixed | (first & second), fixed | (first ^ second)):
            part.master.set_basis(basis)
            solution = part.solve(out)
            if solution is None:
                return None
            rise = max(bound, part.reduced_costs(solution)[1])
            if rise < self.closed:
                halves.append(self._node(part, node, rise, ~out, part.master.basis))
        return halves

    def _node(self, part: _Part, parent: _Node, bound: float, inside: np.ndarray, basis: Basis) -> _Node:
        """Build a child node with the columns `inside` of its parent."""
        self._made += 1
        begin = basis.of_columns(np.append(inside, True))
        return _Node(bound, self._made, parent.kept[inside], part.cuts, begin)

    def _take_in(self, kept: np.ndarray) -> None:
        """Replace the incumbent if this partition has a lower cost."""
        cost = float(self.costs[kept].sum())
        held = np.asarray(self.incidence[:, kept].sum(axis=1))
        if cost < self._least and np.all(held == 1.0):
            self._least, self.chosen = cost, self._listed[kept]


class _Part:
    """Linear program of a node, with an artificial column that makes every child feasible."""

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
            self.master.set_basis(node.basis)
        self._out = np.zeros(len(node.kept), dtype=bool)

    def solve_with_cuts(self) -> Solution | None:
        """Solve the linear program, and once more with violated cuts; return None at the time limit."""
        solution = self.solve(self._out)
        if solution is None or solution.bound >= self._tree.closed:
            return solution
        current = self._tree.members[self._kept], self.values(solution), self._n, self.cuts
        cuts = np.concatenate([separate(*current), separate_larger(*current)])
        if len(cuts) == 0:
            return solution
        self._add(cuts)
        return self.solve(self._out)

    def solve(self, out: np.ndarray) -> Solution | None:
        """Solve the linear program without the columns `out`; return None at the time limit."""
        changed = np.flatnonzero(out != self._out)
        upper = np.where(out[changed], 0.0, INFINITY)
        self.master.change_bounds(changed, np.zeros(len(changed)), upper)
        self._out = out
        solution = self.master.solve(self._tree.deadline.remaining)
        if solution.timed_out:
            return None
        if solution.status is not Status.OPTIMAL:
            raise SolverFailed(
                "linear program of a node: expected an optimal solution, found status "
                f"{solution.status.value}. Choose a lower effort"
            )
        return solution

    def reduced_costs(self, solution: Solution) -> tuple[np.ndarray, float]:
        """Return the reduced costs, (columns,), and the Lagrangian bound of the duals."""
        duals = self.duals(solution)
        penalties = np.maximum(0.0, -np.asarray(solution.row_duals)[self._n :])
        reduced = self._costs - self.incidence.T @ duals + self._entries.T @ penalties
        paid = float(penalties @ cut_limits(self.cuts))
        least = float(reduced[~self._out].min(initial=0.0))
        return reduced, float(duals.sum()) - paid + self._tree.most_clusters * least

    def values(self, solution: Solution) -> np.ndarray:
        """Return the values of the columns, (columns,), without the artificial column."""
        return np.asarray(solution.values)[:-1]

    def duals(self, solution: Solution) -> np.ndarray:
        """Return the duals of the records, (n,)."""
        return np.asarray(solution.row_duals)[: self._n]

    def holding(self, record: int) -> np.ndarray:
        """Return for each column whether it contains a record, (columns,) bool."""
        held = np.zeros(len(self._kept), dtype=bool)
        held[self._of_record[record].indices] = True
        return held

    def _add(self, cuts: np.ndarray) -> None:
        entries = cut_entries(cuts, self.incidence)
        self.master.add_rows(np.full(len(cuts), -INFINITY), cut_limits(cuts), _with_no_partition(entries))
        self._entries = sparse.vstack([self._entries, entries]).tocsc()
        self.cuts = np.concatenate([self.cuts, cuts]) if len(self.cuts) else cuts


def _with_no_partition(entries: sparse.spmatrix) -> sparse.csc_matrix:
    """Append a zero column for the artificial column to the rows of the cuts."""
    return sparse.hstack([entries, sparse.csc_matrix((entries.shape[0], 1))]).tocsc()


def _undecided_pair(incidence: sparse.csc_matrix, x: np.ndarray, duals: np.ndarray) -> tuple[int, int] | None:
    """Return the most fractional pair of records, among ties the pair with the largest duals; None if every
    pair is decided.

    Parameters
    ----------
    incidence : sparse (n, columns)
        Incidence matrix of records and columns.
    x : (columns,) array
        Values of the columns.
    duals : (n,) array
        Duals of the records.
    """
    chosen = np.flatnonzero(x > PRESENT)
    held = incidence[:, chosen]
    shared = sparse.triu(held @ sparse.diags(x[chosen]) @ held.T, k=1).tocoo()
    undecided = np.minimum(shared.data, 1.0 - shared.data)
    promise = np.round(undecided * (duals[shared.row] + duals[shared.col]), 6)
    for place in np.lexsort((shared.col, shared.row, -promise)):
        if undecided[place] > PRESENT:
            return int(shared.row[place]), int(shared.col[place])
    return None
