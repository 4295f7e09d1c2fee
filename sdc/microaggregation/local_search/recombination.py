"""Clusters met by several searches, and the best partition that can be put together from them.

The set-partitioning program over the pool (minimise the SSE of the chosen clusters, each record in
exactly one) is solved by branch and bound after its linear relaxation has fixed at zero every cluster
whose reduced cost exceeds the gap to the incumbent: none of those is in a better partition of the pool.
"""

from __future__ import annotations

import numpy as np

from sdc.microaggregation.column_generation.set_partitioning import incidence_of, set_partitioning
from sdc.microaggregation.records import Records
from sdc.microaggregation.sse import squares_by_cluster
from sdc.solver import Limits, Status, solve
from sdc.stop import Deadline

#: Steps of the program at least: it is nearly always done within thirty. Where many clusters cost the same it
#: goes on for minutes in cuts and heuristics at the root.
FEWEST_STEPS = 10
#: Clusters left after reduced-cost fixing: more than this overruns any limit on nodes.
LARGEST_PROGRAM = 20_000


class Recombination:
    """Distinct clusters met, with their costs, and the partition of least SSE.

    Parameters
    ----------
    records : Records
    largest : int
        Largest cluster size.
    step_entries : int
        Steps of the program times its entries, at most.
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
        """Number of distinct clusters met."""
        return len(self._costs)

    def add(self, labels: np.ndarray) -> None:
        """Take in the clusters of a partition of the records."""
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
        """Labels of the best partition that the clusters met allow, and the nodes it took."""
        incidence = incidence_of(self._members, len(self._records))
        relaxed = solve(set_partitioning(self._costs, incidence), Limits(seconds=deadline.remaining))
        if relaxed.status is not Status.OPTIMAL or relaxed.reduced_costs is None:
            return self.incumbent, 0
        room = self._sse - relaxed.bound
        order = np.argsort(relaxed.reduced_costs, kind="stable")
        promising = order[relaxed.reduced_costs[order] <= room * (1 + 1e-9) + 1e-9 * self._sse]
        promising = np.sort(promising[:LARGEST_PROGRAM])
        program = set_partitioning(self._costs[promising], incidence[:, promising], integer=True)
        limits = Limits(
            steps=max(FEWEST_STEPS, self._step_entries // program.matrix.nnz), seconds=deadline.remaining
        )
        solution = solve(program, limits, start=self._start(promising))
        if solution.values is None or solution.objective is None or solution.objective >= self._sse:
            return self.incumbent, solution.nodes
        labels = np.full(len(self._records), -1, dtype=np.int64)
        for label, column in enumerate(promising[solution.values > 0.5]):
            members = self._members[column]
            labels[members[members >= 0]] = label
        return labels, solution.nodes

    def _start(self, clusters: np.ndarray) -> np.ndarray:
        """The incumbent as values of some of the clusters, whose reduced costs leave it among them."""
        chosen = {row.tobytes() for row in _member_rows(self.incumbent, self._width)}
        return np.array([self._members[cluster].tobytes() in chosen for cluster in clusters], dtype=float)


def _member_rows(labels: np.ndarray, width: int) -> np.ndarray:
    """Members of each cluster in ascending order, padded with -1, (clusters, width)."""
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    rows = np.full((len(sizes), width), -1, dtype=np.int64)
    rows[labels[order], np.arange(len(labels)) - starts[labels[order]]] = order
    return rows
