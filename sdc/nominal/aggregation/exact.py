"""Optimal representatives (Cost 2023, (5.2.1)-(5.2.3)) by an integer program over convex hulls of the errors.

Clusters of the same size with the same distinct members are interchangeable. One integer variable per choice
counts the clusters that take the choice, which removes the symmetry.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.nominal.aggregation.problem import SETTLED, AggregationProblem
from microguard.sdc.nominal.error_hull import ErrorRows, hull_program, merge_cells
from microguard.sdc.nominal.protected_counts import OBJECTIVE_TOLERANCE
from microguard.sdc.solver import Limits, Program, Status, solve
from microguard.sdc.stop import Deadline, StoppedBy
from scipy import sparse


@dataclass(frozen=True)
class OptimalChoices:
    """Chosen representative of each open cluster, and the proved bound on chi-square.

    Attributes
    ----------
    chosen : (c,) int64 array
        Choice of each open cluster.
    lower_bound : float or None
        Valid bound on the chi-square of all choices.
    optimal : bool
        Whether the choices are proved optimal.
    stopped_by : "proof", "work" or "time"
    """

    chosen: np.ndarray
    lower_bound: float | None
    optimal: bool
    stopped_by: StoppedBy


def aggregate_exactly(
    problem: AggregationProblem, start: np.ndarray, *, nodes: int, deadline: Deadline
) -> OptimalChoices:
    """Solve a problem with open clusters exactly; the start solution limits the hulls and the search."""
    kinds = _Kinds.from_problem(problem)
    rows = merge_cells(kinds.incidence(problem), problem.base, problem.tables.original)
    settled = problem.chi2(start) - float(rows.values(rows.incidence @ kinds.tally(start)).sum())
    known = problem.chi2(start) - settled
    hull = hull_program(rows, _attainable(rows, kinds), known)
    variables = kinds.variables
    pieces = len(hull.costs)
    one_each = sparse.csr_matrix(  # (5.2.2)
        (np.ones(variables), (kinds.kind_of_variable, np.arange(variables))),
        shape=(len(kinds.count), variables + pieces),
    )
    tallies = kinds.tally(start)
    answer = solve(
        Program(
            costs=np.concatenate([np.zeros(variables), hull.costs]),
            matrix=sparse.vstack([one_each, sparse.hstack([rows.incidence, hull.pieces])]),
            row_lower=np.concatenate([kinds.count, hull.first]),
            row_upper=np.concatenate([kinds.count, hull.first]),
            lower=np.zeros(variables + pieces),
            upper=np.concatenate([kinds.count[kinds.kind_of_variable], hull.lengths]),
            integer=np.arange(variables + pieces) < variables,
            offset=hull.offset + settled,
        ),
        Limits(nodes=nodes, seconds=deadline.remaining, absolute_gap=OBJECTIVE_TOLERANCE),
        np.concatenate([tallies, hull.fill(rows.incidence @ tallies)]),
    )
    chosen = start
    if answer.values is not None:
        choices = kinds.choices(np.round(answer.values[:variables]).astype(np.int64))
        chosen = choices if problem.chi2(choices) < problem.chi2(start) else start
    optimal = answer.status is Status.OPTIMAL
    bound = min(answer.bound, problem.chi2(chosen))
    return OptimalChoices(
        chosen,
        bound if np.isfinite(bound) else None,
        optimal,
        "proof" if optimal else ("time" if answer.timed_out else "work"),
    )


@dataclass(frozen=True)
class _Kinds:
    """Kinds of open clusters: clusters of the same kind have the same size and the same choices.

    Attributes
    ----------
    clusters : list of lists
        Open clusters of each kind.
    count : (kinds,) array
        Number of clusters of each kind.
    sizes : (kinds,) array
        Number of records of a cluster of each kind.
    kind_of_variable, choice_of_variable : (variables,) arrays
        Kind and choice of each variable. The choices are those of the kind's first cluster.
    start : (c + 1,) array
        See `AggregationProblem`.
    """

    clusters: list[list[int]]
    count: np.ndarray
    sizes: np.ndarray
    kind_of_variable: np.ndarray
    choice_of_variable: np.ndarray
    start: np.ndarray

    @classmethod
    def from_problem(cls, problem: AggregationProblem) -> _Kinds:
        kinds: dict[tuple[int, ...], list[int]] = {}
        for cluster in range(len(problem.sizes)):
            members = problem.choice[problem.start[cluster] : problem.start[cluster + 1]]
            kinds.setdefault((int(problem.sizes[cluster]), *members.tolist()), []).append(cluster)
        groups = list(kinds.values())
        first = [group[0] for group in groups]
        spans = [np.arange(problem.start[cluster], problem.start[cluster + 1]) for cluster in first]
        return cls(
            clusters=groups,
            count=np.array([len(group) for group in groups], dtype=float),
            sizes=problem.sizes[first],
            kind_of_variable=np.repeat(np.arange(len(groups)), [len(span) for span in spans]),
            choice_of_variable=np.concatenate(spans),
            start=problem.start,
        )

    @property
    def variables(self) -> int:
        return len(self.kind_of_variable)

    def incidence(self, problem: AggregationProblem) -> sparse.csr_matrix:
        """Return the number of records that each variable adds to each cell, (cells, variables): f_ti."""
        cells = problem.cells[self.choice_of_variable]
        variable, table = np.nonzero(cells != SETTLED)
        return sparse.csr_matrix(
            (self.sizes[self.kind_of_variable[variable]].astype(float), (cells[variable, table], variable)),
            shape=(len(problem.base), self.variables),
        )

    def tally(self, chosen: np.ndarray) -> np.ndarray:
        """Count for each variable the clusters of its kind that make its choice, (variables,)."""
        tally = np.zeros(self.variables)
        begin = np.searchsorted(self.kind_of_variable, np.arange(len(self.count)))
        for kind, clusters in enumerate(self.clusters):
            for cluster in clusters:
                tally[begin[kind] + chosen[cluster] - self.start[cluster]] += 1
        return tally

    def choices(self, tally: np.ndarray) -> np.ndarray:
        """Assign the counted choices to the clusters of each kind, in order, (c,)."""
        chosen = np.empty(sum(len(clusters) for clusters in self.clusters), dtype=np.int64)
        for kind, clusters in enumerate(self.clusters):
            of_kind = np.flatnonzero(self.kind_of_variable == kind)
            offsets = np.repeat(np.arange(len(of_kind)), tally[of_kind])
            for cluster, offset in zip(clusters, offsets, strict=True):
                chosen[cluster] = self.start[cluster] + offset
        return chosen


def _attainable(rows: ErrorRows, kinds: _Kinds) -> list[np.ndarray]:
    """Return for each row the attainable counts, which are sums of sizes of whole clusters."""
    points = []
    for row in range(rows.incidence.shape[0]):
        span = slice(rows.incidence.indptr[row], rows.incidence.indptr[row + 1])
        reachable = 1  # bit g is set if the count g is attainable
        for kind in np.unique(kinds.kind_of_variable[rows.incidence.indices[span]]):
            for _ in range(int(kinds.count[kind])):
                reachable |= reachable << int(kinds.sizes[kind])
        bits = bin(reachable)[:1:-1]
        points.append(np.flatnonzero(np.frombuffer(bits.encode(), dtype=np.uint8) == ord("1")))
    return points
