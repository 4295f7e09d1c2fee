"""Certified solving (effort exact): a near-optimal clustering and a proved lower bound on its SSE.

1. Local search finds an incumbent.
2. Column generation with exact pricing solves the relaxed set-partitioning program over all clusters. Rounds
   of subset-row cuts on three, five and seven records tighten it.
3. Integer programs over the generated clusters with the smallest reduced costs improve the incumbent. After
   the cuts, few other clusters are in an optimal partition. If a gap remains, a thorough local search is
   tried. In small files it follows step 4.
4. All clusters whose reduced cost permits an improvement are enumerated, level by level. Integer programs
   over them raise the bound, up to the optimum if the last one is solved (`levels`).

The bound is valid for every partition of these records into clusters of at least k. It is lowered to allow
for the solver's tolerance (for at most n / k clusters, in units of the mean loss per record) and for rounding
errors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from microguard.sdc.microaggregation.bounds import less_rounding, nearest_neighbour_bound
from microguard.sdc.microaggregation.certified.levels import ONE_LEVEL, Listing, close
from microguard.sdc.microaggregation.certified.odd_set_cuts import separate_larger
from microguard.sdc.microaggregation.certified.relaxation import (
    CLOSED,
    FEW,
    ROUND_TOLERANCE,
    Allowance,
    Relaxation,
)
from microguard.sdc.microaggregation.certified.repartition import repartition
from microguard.sdc.microaggregation.certified.smaller_clusters import SMALLER, smaller_clusters_bound
from microguard.sdc.microaggregation.certified.subset_row_cuts import separate
from microguard.sdc.microaggregation.clustering import Clustering
from microguard.sdc.microaggregation.column_generation.columns import (
    Columns,
    as_members,
    clusters_of,
    labels_of,
    squared_distances,
)
from microguard.sdc.microaggregation.local_search import by_effort as local_search
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.solver import FEASIBILITY_TOLERANCE
from microguard.sdc.stop import Deadline

NAME = "column-generation"
#: Minimum gap for a thorough local search. The search takes 3 seconds for 100 records and 8 for 200, and
#: reduced the loss by 0.1 to 1.2 % at gaps of 0.7 to 1.6 %. For at least THOROUGH_FROM records it runs after
#: the cuts; smaller files are mostly proved without it.
THOROUGH_GAP, THOROUGH_FROM = 0.001, 400
#: Numbers of columns per record in the successive programs that improve the incumbent.
POOLS = (1.5, 2.0, 2.5)


@dataclass(frozen=True)
class Work:
    """Work limits of certified solving. They count work, so that the result does not depend on the machine.

    Attributes
    ----------
    allowance : Allowance
        Limits of column generation.
    starts : int
        Number of local searches for the incumbent.
    rounds : int
        Maximum number of rounds of cuts.
    per_root : int
        Maximum number of enumerated clusters per root.
    largest_program : int
        Maximum number of columns of an integer program.
    nodes : int
        Maximum number of branch-and-bound nodes of an integer program.
    thorough_gap : float
        A thorough local search is tried if the gap is larger than this.
    """

    allowance: Allowance
    starts: int
    rounds: int
    per_root: int
    largest_program: int
    nodes: int
    thorough_gap: float = THOROUGH_GAP

    @classmethod
    def quick(cls, n: int) -> Work:
        """Return the limits of effort standard for n records: a few tenths of a second for 100 records.

        With these limits, another clustering is given as the start.
        """
        return replace(
            cls.for_records(n),
            starts=0,
            largest_program=10_000,
            nodes=200,
            thorough_gap=1.0,
        )

    @classmethod
    def for_records(cls, n: int) -> Work:
        """Return the limits for n records: about ten minutes of one core for 1,000 records, seconds for 200.

        Most of the time is spent on pricing (1e8 evaluations per second), the master problem (2e7 pivots
        times rows per second) and the integer programs. The required work grows with k. If the allowance does
        not suffice for clusters of k to 2k - 1 records, the only bounds are those from smaller clusters or
        from nearest neighbours.
        """
        small = n <= ONE_LEVEL
        return cls(
            allowance=Allowance(evaluations=20_000 * n * n, pivots=500 * n * n),
            starts=3,
            rounds=30,
            per_root=20_000 if small else min(2_000, 2_000_000 // n),
            largest_program=100_000 if small else (10 if n < THOROUGH_FROM else 20) * n,
            nodes=1_000 if small else 100,
        )


def solve(
    records: Records,
    k: int,
    *,
    deadline: Deadline,
    seed: int,
    work: Work | None = None,
    start: Clustering | None = None,
) -> Clustering:
    """Cluster records of equal weight near-optimally, and prove a lower bound on the SSE.

    The work limits are those of `Work.for_records` by default. `start` is a further initial clustering.
    """
    n = len(records)
    work = work or Work.for_records(n)
    searched = [] if start is None else [start]
    searched += [
        local_search.search(records, k, deadline=deadline, seed=seed + shift, effort="start")
        for shift in range(work.starts)
    ]
    start = min(searched, key=lambda clustering: clustering.sse)
    if start.optimal or start.sse <= 0.0:
        return Clustering.of(
            records,
            start.labels,
            NAME,
            lower_bound=start.sse,
            bound_kind=start.bound_kind or "no loss",
            stopped_by="proof",
            work=start.work,
        )
    scale = n / start.sse  # scale the mean loss per record to 1, because the solver's tolerances are absolute
    distances = scale * squared_distances(records.values)
    others = [clustering.labels for clustering in searched]
    certifier = _Certifier(distances, k, start.labels, others, work, deadline)
    certifier.bound()
    thorough = partial(local_search.search, records, k, deadline=deadline, seed=seed, effort="thorough")
    if n >= THOROUGH_FROM and certifier.gap > work.thorough_gap:
        certifier.take_in(thorough().labels)
    certifier.close()
    if n < THOROUGH_FROM and certifier.gap > work.thorough_gap and certifier.take_in(thorough().labels):
        certifier.close()
    labels = labels_of(certifier.columns.members[certifier.incumbent], n)
    kind = "set partitioning solved" if certifier.optimal else "column generation with subset-row cuts"
    lower_bound = certifier.lower_bound / scale
    if not np.isfinite(lower_bound):
        kind, lower_bound = _weaker_bound(records, k, distances, scale, work, deadline, seed)
    sse = Clustering.of(records, labels, NAME).sse
    if certifier.optimal:
        lower_bound = sse
    lower_bound = less_rounding(min(sse, lower_bound) * (1.0 - FEASIBILITY_TOLERANCE / k), records.values)
    return Clustering.of(
        records,
        labels,
        NAME,
        lower_bound=lower_bound,
        bound_kind=kind,
        stopped_by="proof" if certifier.optimal else ("time" if deadline.passed else "work"),
        work=certifier.done,
    )


def _weaker_bound(
    records: Records,
    k: int,
    distances: np.ndarray,
    scale: float,
    work: Work,
    deadline: Deadline,
    seed: int,
) -> tuple[str, float]:
    """Return kind and value of a weaker lower bound, if column generation found none."""
    nearest = nearest_neighbour_bound(records.values, k)
    t = min(SMALLER, k - 1)
    if t < 2 or deadline.passed:
        return "nearest neighbours", nearest
    labels = local_search.search(records, t, deadline=deadline, seed=seed, effort="start").labels
    columns = Columns(distances, t)
    columns.add(as_members(clusters_of(labels), t))
    columns.add(nearest_clusters(distances, t))
    relaxation = Relaxation(columns, shares(distances, labels), work.allowance, deadline, shared=True)
    smaller = smaller_clusters_bound(relaxation, k) / scale
    return ("smaller clusters", smaller) if smaller > nearest else ("nearest neighbours", nearest)


class _Certifier:
    """State of certified solving; the unit of costs is the mean loss per record."""

    def __init__(
        self,
        distances: np.ndarray,
        k: int,
        labels: np.ndarray,
        others: list[np.ndarray],
        work: Work,
        deadline: Deadline,
    ) -> None:
        self.columns = Columns(distances, k)
        self.incumbent = self.columns.positions(as_members(clusters_of(labels), k))
        for other in others:
            self.columns.add(as_members(clusters_of(other), k))
        self.columns.add(nearest_clusters(distances, k))
        self.relaxation = Relaxation(self.columns, shares(distances, labels), work.allowance, deadline)
        self.lower_bound = -np.inf
        self.optimal = False
        self.nodes = 0
        self._work = work
        self._deadline = deadline

    @property
    def cost(self) -> float:
        """Return the cost of the incumbent (the best known clustering)."""
        return float(self.columns.costs[self.incumbent].sum())

    @property
    def gap(self) -> float:
        """Return the relative gap between incumbent and lower bound."""
        return 0.0 if self.optimal else 1.0 - self.lower_bound / self.cost

    @property
    def done(self) -> dict[str, int]:
        """Return the amount of work by kind."""
        spent = self.relaxation.spent
        return {
            "pricings": spent.pricings,
            "evaluations": spent.evaluations,
            "columns": len(self.columns),
            "cuts": len(self.relaxation.master.cuts),
            "nodes": self.nodes,
        }

    def bound(self) -> None:
        """Compute the lower bound by column generation and cuts, and improve the incumbent."""
        self._cut()
        self.lower_bound = self.relaxation.lower_bound
        self._improve()

    def take_in(self, labels: np.ndarray) -> bool:
        """Add another partition as columns, improve the incumbent, and return whether its cost decreased."""
        before = self.cost
        partition = self.columns.positions(as_members(clusters_of(labels), self.columns.k))
        if self.columns.costs[partition].sum() < self.cost:
            self.incumbent = partition
        self._improve()
        return self.cost < before

    def close(self) -> None:
        """Raise the bound by enumerating, level by level, all clusters that could improve the incumbent."""
        if not np.isfinite(self.lower_bound):
            return
        work = self._work
        listing = Listing(work.per_root, work.largest_program, work.nodes)
        closed = close(self.relaxation, self.incumbent, listing, self._deadline)
        self.incumbent = closed.chosen
        self.nodes += closed.nodes
        self.lower_bound = max(self.lower_bound, closed.lower_bound)
        self.optimal = self.cost - self.lower_bound <= CLOSED * self.cost

    def _improve(self) -> None:
        """Improve the incumbent by integer programs over the columns with the smallest reduced costs."""
        if np.isfinite(self.lower_bound):
            for per_record in POOLS:
                self._combine(self._promising(int(per_record * self.relaxation.master.n)))

    def _cut(self) -> None:
        """Run rounds of column generation and cuts."""
        relaxation, before = self.relaxation, -np.inf
        for _ in range(self._work.rounds):
            if not relaxation.converge(ROUND_TOLERANCE, self.cost) or relaxation.solution is None:
                break
            value = relaxation.solution.objective
            if value <= before:
                break
            before = value
            current = self.columns.members, relaxation.solution.x, relaxation.master.n, relaxation.master.cuts
            cuts = separate(*current)
            if len(cuts) * FEW < relaxation.master.n:
                cuts = np.concatenate([cuts, separate_larger(*current)])
            if len(cuts) == 0:
                break
            relaxation.add_cuts(cuts)
        relaxation.converge(CLOSED, self.cost)

    def _combine(self, pool: np.ndarray) -> None:
        """Improve the incumbent by the integer program over a pool of columns."""
        solved = repartition(
            self.columns,
            pool,
            self.incumbent,
            self.relaxation.binding,
            nodes=self._work.nodes,
            deadline=self._deadline,
        )
        self.nodes += solved.nodes
        self.incumbent = solved.chosen

    def _promising(self, most: int) -> np.ndarray:
        """Return at most `most` columns: those with the smallest reduced costs, all below the gap."""
        reduced = self.relaxation.reduced_costs()
        order = np.argsort(reduced, kind="stable")[:most]
        return order[reduced[order] < self.cost - self.relaxation.lower_bound]


def nearest_clusters(distances: np.ndarray, k: int) -> np.ndarray:
    """Return the clusters of each record with its k - 1 nearest other records, as initial columns."""
    others = distances - np.diag(
        np.full(len(distances), np.inf)
    )  # each record is the first of its own neighbours
    nearest = np.argsort(others, axis=1, kind="stable")
    return as_members(nearest[:, :k], k)


def shares(distances: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return each record's share of its cluster's SSE, (n,), as initial duals."""
    result = np.zeros(len(labels))
    for cluster in clusters_of(labels):
        result[cluster] = distances[np.ix_(cluster, cluster)].sum(axis=1) / (2 * len(cluster))
    return result
