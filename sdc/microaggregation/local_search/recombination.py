"""Recombination: best partition into clusters that several searches found, by set partitioning.

The program over the pool of clusters minimises the SSE such that each record is in exactly one cluster.
First, every cluster is fixed at zero whose reduced cost in the linear relaxation exceeds the gap to the
incumbent, because no better partition contains this cluster. If too many clusters remain, only those with the
smallest reduced costs and those of the incumbent are used. Branch and bound solves the rest.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.microaggregation.column_generation.set_partitioning import incidence_of, set_partitioning
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.microaggregation.sse import squares_by_cluster
from microguard.sdc.solver import Limits, Options, Status, solve
from microguard.sdc.stop import Deadline

#: Minimum number of solver steps that the work limit must allow; it limits the size of the program. Larger
#: programs spend their work on cuts and heuristics at the root and find no improvement.
FEWEST_STEPS = 5
#: Solver of the relaxation: the interior-point method with crossover, which is ten times as fast as simplex
#: if many clusters have equal costs.
_RELAXED: Options = {"solver": "ipm", "run_crossover": "on"}
_ROOT: Options = {"mip_lp_solver": "ipm"}


class Recombination:
    """Pool of distinct clusters with their costs, and the best partition so far.

    Parameters
    ----------
    records : Records
    largest : int
        Largest cluster size.
    step_entries : int
        Limit on the steps of a program times its matrix entries.
    """

    def __init__(self, records: Records, largest: int, step_entries: int) -> None:
        self._records = records
        self._step_entries = step_entries
        self._width = largest
        self._members = np.empty((0, self._width), dtype=np.int64)
        self._costs = np.empty(0)
        self._sse = np.inf
        self.incumbent = np.empty(0, dtype=np.int64)

    @property
    def columns(self) -> int:
        """Return the number of distinct clusters in the pool."""
        return len(self._costs)

    def add(self, labels: np.ndarray) -> None:
        """Add the clusters of a partition of the records to the pool."""
        compact = np.unique(labels, return_inverse=True)[1].astype(np.int64).ravel()
        costs = squares_by_cluster(self._records.values, self._records.weights, compact)
        sse = float(costs.sum())
        if sse < self._sse:
            self._sse, self.incumbent = sse, compact
        members = np.vstack([self._members, _member_rows(compact, self._width)])
        costs = np.concatenate([self._costs, costs])
        self._members, first = np.unique(members, axis=0, return_index=True)
        self._costs = costs[first]

    def combine(self, deadline: Deadline) -> tuple[np.ndarray, int]:
        """Solve the program; return the labels of the best partition and the number of nodes."""
        incidence = incidence_of(self._members, len(self._records))
        limits = Limits(seconds=deadline.remaining, options=_RELAXED)
        relaxed = solve(set_partitioning(self._costs, incidence), limits)
        if relaxed.status is not Status.OPTIMAL or relaxed.reduced_costs is None:
            return self.incumbent, 0
        start = self._start()
        promising = self._promising(relaxed.reduced_costs, self._sse - relaxed.bound, start)
        program = set_partitioning(self._costs[promising], incidence[:, promising], integer=True)
        steps = self._step_entries // program.matrix.nnz
        limits = Limits(steps=steps, seconds=deadline.remaining, options=_ROOT)
        solution = solve(program, limits, start=start[promising].astype(float))
        if solution.values is None or solution.objective is None or solution.objective >= self._sse:
            return self.incumbent, solution.nodes
        labels = np.full(len(self._records), -1, dtype=np.int64)
        for label, column in enumerate(promising[solution.values > 0.5]):
            members = self._members[column]
            labels[members[members >= 0]] = label
        return labels, solution.nodes

    def _start(self) -> np.ndarray:
        """Return for each cluster of the pool whether it is in the incumbent."""
        chosen = {row.tobytes() for row in _member_rows(self.incumbent, self._width)}
        return np.array([row.tobytes() in chosen for row in self._members])

    def _promising(self, reduced_costs: np.ndarray, slack: float, start: np.ndarray) -> np.ndarray:
        """Return the incumbent's clusters and those with the smallest reduced costs, up to the gap and the
        work limit.
        """
        order = np.lexsort((reduced_costs, ~start))
        slack = slack * (1 + 1e-9) + 1e-9 * self._sse
        entries = np.cumsum((self._members[order] >= 0).sum(axis=1))
        within = (reduced_costs[order] <= slack) & (entries <= self._step_entries // FEWEST_STEPS)
        return np.sort(order[within | start[order]])


def _member_rows(labels: np.ndarray, width: int) -> np.ndarray:
    """Return the members of each cluster in ascending order, (clusters, width), padded with -1."""
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    rows = np.full((len(sizes), width), -1, dtype=np.int64)
    rows[labels[order], np.arange(len(labels)) - starts[labels[order]]] = order
    return rows
