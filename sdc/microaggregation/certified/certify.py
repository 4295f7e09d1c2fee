"""Certified solving (effort exact): a near-optimal clustering and a proved bound on its SSE.

1. Local search finds an incumbent.
2. Column generation with exact pricing solves the relaxed set-partitioning program over all clusters;
   rounds of subset-row cuts on three, five and seven records tighten it.
3. The incumbent is improved by integer programs over the generated clusters of least reduced cost: after the
   cuts few others are in an optimal partition. Where a gap is left, then or (in small files) after the lists,
   a thorough search is tried.
4. All clusters whose reduced cost can matter are listed, level by level, and integer programs over them
   raise the bound, up to the optimum where the last one is solved (`levels`).
5. Where that leaves a gap that is small, or any gap of a small file, branching on pairs of records raises
   the bound and may meet a better clustering (`branching`).

The bound holds for every partition of these records into clusters of at least k. It is given less what the
solver's tolerance (each of at most n / k clusters in a mean loss of 1 per record) and rounding can hide.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from microguard.sdc.microaggregation.bounds import less_rounding, nearest_neighbour_bound
from microguard.sdc.microaggregation.certified.branching import Branching, branch
from microguard.sdc.microaggregation.certified.levels import Listing, close
from microguard.sdc.microaggregation.certified.odd_set_cuts import separate_larger
from microguard.sdc.microaggregation.certified.relaxation import CLOSED, Allowance, Relaxation
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
#: Where the gap is larger than this, the thorough search may know better: it takes 3 seconds for 100 records,
#: 8 for 200, and was 0.1 to 1.2 % of the loss better where the gap was 0.7 to 1.6 %. From so many records on
#: one local search starts column generation, and the thorough one follows the cuts; fewer are mostly proved
#: without it.
THOROUGH_GAP, THOROUGH_FROM = 0.001, 400
#: Up to this many records the integer programs may be large enough to prove most optima.
PROVABLE_RECORDS = 200
#: Relative distance of bound and master problem at which a round of cuts ends, and the last round.
ROUND_TOLERANCE, LAST_TOLERANCE = 1e-4, 1e-7
#: A round of cuts that raises the master problem by less, relatively, is the last.
STALLED = 1e-6
#: A round that finds fewer cuts on triples than n over this looks for cuts on larger sets as well.
FEW_CUTS = 20
#: Nodes of branching on pairs: each takes about two seconds for a thousand records and k = 4.
BRANCHES = 129
#: Branching of small files, a node of 0.1 to 0.3 seconds: work by n squared ended it after some 30 nodes.
SMALL_BRANCHING = Branching(401, Allowance(evaluations=4_000_000_000, pivots=400_000_000))
#: Relative gap up to which branching is worth its time: it closes hundredths of a percent of a whole file.
BRANCHED_GAP = 0.002
#: Columns per record of the programs that improve the incumbent, one after the other.
POOLS = (1.5, 2.0, 2.5)


@dataclass(frozen=True)
class Work:
    """Work of certified solving, counted so that the answer does not depend on the machine.

    Attributes
    ----------
    allowance : Allowance
        Of column generation.
    starts : int
        Local searches for the incumbent.
    rounds : int
        Rounds of cuts at most.
    per_root : int
        Clusters listed per root at most.
    largest_program : int
        Columns of an integer program at most.
    nodes : int
        Branch-and-bound nodes of an integer program at most.
    branching : Branching
        Of the last step.
    """

    allowance: Allowance
    starts: int
    rounds: int
    per_root: int
    largest_program: int
    nodes: int
    branching: Branching

    @classmethod
    def of(cls, n: int) -> Work:
        """Work for n records: about ten minutes of a core for a thousand, seconds for two hundred.

        Pricing at 1e8 evaluations a second, the master problem at 2e7 pivots times rows a second, and the
        integer program, limited in columns and nodes, are the greater part. What a bound needs grows with k:
        where sizes k to 2k - 1 are too many to be searched within the allowance, there is no bound but the
        nearest neighbours'.
        """
        small = n <= PROVABLE_RECORDS
        branching = Allowance(evaluations=10_000 * n * n, pivots=1_000 * n * n)
        return cls(
            allowance=Allowance(evaluations=20_000 * n * n, pivots=500 * n * n),
            starts=3,
            rounds=30,
            per_root=20_000 if small else min(2_000, 2_000_000 // n),
            largest_program=100_000 if small else (10 if n < THOROUGH_FROM else 20) * n,
            nodes=1_000 if small else 100,
            branching=SMALL_BRANCHING if small else Branching(BRANCHES, branching, BRANCHED_GAP),
        )


def solve(records: Records, k: int, *, deadline: Deadline, seed: int, work: Work | None = None) -> Clustering:
    """Near-optimal clustering of records without weights, and a bound; `work` defaults to `Work.of`."""
    n = len(records)
    work = work or Work.of(n)
    searched = [
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
    scale = n / start.sse  # the solver's tolerances are absolute: let the mean loss per record be 1
    distances = scale * squared_distances(records.values)
    others = [clustering.labels for clustering in searched]
    certifier = _Certifier(distances, k, start.labels, others, work, deadline)
    certifier.bound()
    thorough = partial(local_search.search, records, k, deadline=deadline, seed=seed, effort="thorough")
    if n >= THOROUGH_FROM and certifier.gap > THOROUGH_GAP:
        certifier.take_in(thorough().labels)
    certifier.close()
    if n < THOROUGH_FROM and certifier.gap > THOROUGH_GAP and certifier.take_in(thorough().labels):
        certifier.close()
    certifier.branch()
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
    """Kind and lower bound where column generation ended before its first."""
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
    """The state of certified solving, in units of the mean loss per record."""

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
        """Cost of the incumbent."""
        return float(self.columns.costs[self.incumbent].sum())

    @property
    def gap(self) -> float:
        """How far the bound is below the incumbent, of it."""
        return 0.0 if self.optimal else 1.0 - self.lower_bound / self.cost

    @property
    def done(self) -> dict[str, int]:
        """Work done by kind."""
        spent = self.relaxation.spent
        return {
            "pricings": spent.pricings,
            "evaluations": spent.evaluations,
            "columns": len(self.columns),
            "cuts": len(self.relaxation.master.cuts),
            "nodes": self.nodes,
        }

    def bound(self) -> None:
        """Bound by cuts, and improve the incumbent."""
        self._cut()
        self.lower_bound = self.relaxation.lower_bound
        self._improve()

    def take_in(self, labels: np.ndarray) -> bool:
        """Take in another partition, improve the incumbent, and say whether it is cheaper now."""
        before = self.cost
        partition = self.columns.positions(as_members(clusters_of(labels), self.columns.k))
        if self.columns.costs[partition].sum() < self.cost:
            self.incumbent = partition
        self._improve()
        return self.cost < before

    def close(self) -> None:
        """Raise the bound level by level over all clusters that can matter, with the gap at hand."""
        if not np.isfinite(self.lower_bound):
            return
        work = self._work
        listing = Listing(work.per_root, work.largest_program, work.nodes)
        closed = close(self.relaxation, self.incumbent, listing, self._deadline)
        self.incumbent = closed.chosen
        self.nodes += closed.nodes
        self.lower_bound = max(self.lower_bound, closed.lower_bound)
        self._compare()

    def branch(self) -> None:
        """Raise the bound by branching, where there is still a gap that it may close."""
        if self.optimal or self.gap > self._work.branching.gap:
            return
        branched = branch(self.relaxation, self.cost, self._work.branching, self._deadline)
        self.nodes += branched.nodes
        if branched.members is not None:
            self.incumbent = self.columns.positions(branched.members)
        self.lower_bound = max(self.lower_bound, branched.lower_bound)
        self._compare()

    def _compare(self) -> None:
        self.optimal = self.cost - self.lower_bound <= CLOSED * self.cost

    def _improve(self) -> None:
        """Integer programs over the columns of least reduced cost, where there is a bound."""
        if np.isfinite(self.lower_bound):
            for per_record in POOLS:
                self._combine(self._promising(int(per_record * self.relaxation.master.n)))

    def _cut(self) -> None:
        """Rounds of column generation and cuts."""
        relaxation, before = self.relaxation, -np.inf
        for _ in range(self._work.rounds):
            if not relaxation.converge(ROUND_TOLERANCE, self.cost) or relaxation.solution is None:
                break
            value = relaxation.solution.objective
            if value - before <= STALLED * value:
                break
            before = value
            at_hand = self.columns.members, relaxation.solution.x, relaxation.master.n, relaxation.master.cuts
            cuts = separate(*at_hand)
            if len(cuts) * FEW_CUTS < relaxation.master.n:
                cuts = np.concatenate([cuts, separate_larger(*at_hand)])
            if len(cuts) == 0:
                break
            relaxation.add_cuts(cuts)
        relaxation.converge(LAST_TOLERANCE, self.cost)

    def _combine(self, pool: np.ndarray) -> None:
        """Improve the incumbent by the program over a pool."""
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
        """Columns at hand with a reduced cost below the gap, so many of the least."""
        reduced = self.relaxation.reduced_costs()
        order = np.argsort(reduced, kind="stable")[:most]
        return order[reduced[order] < self.cost - self.relaxation.lower_bound]


def nearest_clusters(distances: np.ndarray, k: int) -> np.ndarray:
    """Each record with its k - 1 nearest others: columns to begin with."""
    others = distances - np.diag(np.full(len(distances), np.inf))  # each record is its own nearest
    nearest = np.argsort(others, axis=1, kind="stable")
    return as_members(nearest[:, :k], k)


def shares(distances: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Each record's share of its cluster's SSE, by its distances to the others: duals to begin with."""
    result = np.zeros(len(labels))
    for cluster in clusters_of(labels):
        result[cluster] = distances[np.ix_(cluster, cluster)].sum(axis=1) / (2 * len(cluster))
    return result
