"""`MicroaggregationHeuristicMP` of Gentile, Spagnolo-Arrizabalaga and Castro (2020), section 5.

Column generation with initial columns from MDAV and V-MDAV. Each iteration rounds the fractional solution of
the master problem to clusterings, and prices new columns for each cluster size, first heuristically. When
there is no column with negative reduced cost, the value of the master problem is a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from microguard.sdc.algorithms.microaggregation import ColumnGenerationParameters
from microguard.sdc.errors import UnsupportedCombination
from microguard.sdc.microaggregation.bounds import less_rounding
from microguard.sdc.microaggregation.clustering import OPTIMALITY_TOLERANCE, Clustering
from microguard.sdc.microaggregation.column_generation.columns import (
    Columns,
    as_members,
    clusters_of,
    labels_of,
    squared_distances,
)
from microguard.sdc.microaggregation.column_generation.complete_enumeration import enumerate_completely
from microguard.sdc.microaggregation.column_generation.edge_model import solve_edge_model
from microguard.sdc.microaggregation.column_generation.heuristic_pricing import price_heuristically
from microguard.sdc.microaggregation.column_generation.master import MasterProblem, MasterSolution
from microguard.sdc.microaggregation.column_generation.rounding import (
    simple_rounding,
    spanning_tree_roundings,
)
from microguard.sdc.microaggregation.column_generation.set_partitioning import PRESENT
from microguard.sdc.microaggregation.exact_pricing.pricing import Cuts, price
from microguard.sdc.microaggregation.heuristics import mdav, vmdav
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.microaggregation.sse import sum_of_squares
from microguard.sdc.solver import FEASIBILITY_TOLERANCE
from microguard.sdc.stop import Deadline

NAME = "column-generation"
#: Maximum cluster size for which Table 2 of the paper uses enumeration.
ENUMERATED_SIZE = 5
#: Maximum number of records for the edge model, which takes 0.3 s for 12 records, 1 s for 20 and 6 s for 30
#: (k = 3).
EDGE_MODEL_RECORDS = 40

#: Type of a pricing function: it returns the cluster of one size with the least reduced cost, if that is
#: below a threshold.
ExactPricing = Callable[[np.ndarray, np.ndarray, int, float], np.ndarray]


@dataclass(frozen=True)
class HeuristicResult:
    """Result of the heuristic: clustering, bound and work.

    Attributes
    ----------
    labels : (n,) int64 array
        Best clustering.
    sse : dict of str to float
        SSE of each heuristic: mdav, vmdav, simple, spanning-tree, in the units of the records. simple and
        spanning-tree have the best of all iterations, or infinity.
    lower_bound : float or None
        Value of the master problem minus the tolerance of the final pricing; None if columns with negative
        reduced cost remained.
    integer : bool
        Whether the last solution of the master problem was integer ("Ex" of Tables 3 and 4).
    rounds, columns : int
        Number of iterations and of columns.
    """

    labels: np.ndarray
    sse: dict[str, float]
    lower_bound: float | None
    integer: bool
    rounds: int
    columns: int

    def gap(self, heuristic: str) -> float | None:
        """Return the gap (SSE_H - SSE_MP) / SSE_H of equation (15); None without a clustering or a bound."""
        sse = self.sse[heuristic]
        if self.lower_bound is None or not np.isfinite(sse):
            return None
        return max(0.0, 1.0 - self.lower_bound / sse) if sse > 0.0 else 0.0


def solve(
    records: Records,
    k: int,
    *,
    deadline: Deadline,
    seed: int,
    parameters: ColumnGenerationParameters = ColumnGenerationParameters(),  # noqa: B008 (frozen)
) -> Clustering:
    """Run algorithm "column-generation" for all efforts below exact, which is the paper's heuristic.

    Raises
    ------
    UnsupportedCombination
        If the pricing by the edge model would take hours.
    """
    _check_size(parameters.pricing, len(records), k)
    outcome = microaggregation_heuristic_mp(
        records,
        k,
        deadline=deadline,
        rounding=parameters.rounding,
        exact_pricing=_PRICINGS[parameters.pricing],
    )
    sse = Clustering.of(records, outcome.labels, NAME).sse
    bound = None if outcome.lower_bound is None else less_rounding(outcome.lower_bound, records.values)
    proved = bound is not None and sse - bound <= OPTIMALITY_TOLERANCE * sse
    return Clustering.of(
        records,
        outcome.labels,
        NAME,
        lower_bound=None if bound is None else min(bound, sse),
        bound_kind=None if bound is None else "column generation",
        stopped_by="proof" if proved else ("work" if bound is not None else "time"),
        work={"rounds": outcome.rounds, "columns": outcome.columns},
        sse_by_heuristic={name: sse for name, sse in outcome.sse.items() if np.isfinite(sse)},
    )


def microaggregation_heuristic_mp(
    records: Records,
    k: int,
    *,
    deadline: Deadline,
    rounding: str = "both",
    exact_pricing: Callable[[int, int], ExactPricing] | None = None,
) -> HeuristicResult:
    """Run `MicroaggregationHeuristicMP`.

    Parameters
    ----------
    records : Records
        Records without weights.
    k : int
        Minimum cluster size.
    deadline : Deadline
        Safety net. If it ends the heuristic, there is no lower bound.
    rounding : {"both", "simple", "spanning-tree"}
        Rounding heuristics in every iteration.
    exact_pricing : callable, optional
        Function that chooses the exact pricing for n and a cluster size. `table_2` is the paper's choice. The
        default `branch_and_bound` finds the same clusters faster.
    """
    choose = exact_pricing or branch_and_bound
    n = len(records)
    values = records.values
    first = mdav.solve(records, k, deadline=deadline, seed=0)
    second = vmdav.solve(records, k, deadline=deadline, seed=0)
    incumbent = min(first, second, key=lambda clustering: clustering.sse)
    sse = {"mdav": first.sse, "vmdav": second.sse, "simple": np.inf, "spanning-tree": np.inf}
    best = incumbent.labels
    if incumbent.sse <= 0.0:
        return HeuristicResult(best, dict.fromkeys(sse, incumbent.sse), 0.0, True, 0, 0)

    def offer(name: str, labels: np.ndarray) -> None:
        nonlocal best
        cost = sum_of_squares(values, np.ones(n), labels)
        if cost < min(sse.values()):
            best = labels
        sse[name] = min(sse[name], cost)

    scale = n / incumbent.sse
    columns = Columns(scale * squared_distances(values), k)
    for start in (first, second):
        columns.add(as_members(_within_bounds(start.labels, values, k), k))
    master = MasterProblem(columns)
    rounds = 0
    while not deadline.passed:
        solution = master.solve(deadline.remaining)
        if solution is None:
            break
        rounds += 1
        integer = _is_integer(solution)
        if integer:
            labels = labels_of(columns.members[solution.x > 0.5], n)
            for name in ("simple", "spanning-tree"):
                if rounding in ("both", name):
                    offer(name, labels)
        else:
            if rounding in ("both", "simple"):
                offer("simple", simple_rounding(values, columns.members, solution.x, k))
            if rounding in ("both", "spanning-tree"):
                for labels in spanning_tree_roundings(columns.members, solution.x, n, k):
                    offer("spanning-tree", _compact(labels))
        priced = pricing_problem(columns.distances, solution.duals, k, choose)
        if len(priced) == 0 or master.add_columns(priced) == 0:
            bound = _lagrangian_bound(columns, solution, k) / scale
            return HeuristicResult(best, sse, bound, integer, rounds, len(columns))
    return HeuristicResult(best, sse, None, False, rounds, len(columns))


def pricing_problem(
    distances: np.ndarray, duals: np.ndarray, k: int, choose: Callable[[int, int], ExactPricing]
) -> np.ndarray:
    """Run `PricingProblem`: return the clusters with negative reduced cost of the first size that has any."""
    n = len(duals)
    for size in range(k, min(2 * k - 1, n) + 1):
        clusters = price_heuristically(distances, duals, size, -FEASIBILITY_TOLERANCE)
        if len(clusters) == 0:
            clusters = choose(n, size)(distances, duals, size, -FEASIBILITY_TOLERANCE)
        if len(clusters):
            return as_members(list(clusters), k)
    return np.empty((0, 2 * k - 1), dtype=np.int32)


def table_2(n: int, size: int) -> ExactPricing:
    """Return the exact pricing method that the paper's Table 2 assigns to a cluster size."""
    complete = size <= ENUMERATED_SIZE or (size == 6 and n < 200)
    return enumerate_completely if complete else solve_edge_model


def branch_and_bound(n: int, size: int) -> ExactPricing:
    """Return `pricing.price`, which replaces the exact pricing methods of the paper."""
    return _price_one_size


def _price_one_size(distances: np.ndarray, duals: np.ndarray, size: int, threshold: float) -> np.ndarray:
    priced = price(distances, size, duals, Cuts.none(), threshold=threshold, keep=1, largest=size)
    return priced.members[:1, :size]


#: Exact pricing methods by their names in the parameters.
_PRICINGS: dict[str, Callable[[int, int], ExactPricing]] = {
    "branch-and-bound": branch_and_bound,
    "table-2": table_2,
    "enumeration": lambda n, size: enumerate_completely,
    "edge-model": lambda n, size: solve_edge_model,
    "edge-model-with-triangles": lambda n, size: partial(solve_edge_model, triangles=True),
}


def _check_size(pricing: str, n: int, k: int) -> None:
    """Refuse the edge model for many records; Table 2 uses it for clusters of more than five records."""
    edges = pricing.startswith("edge-model") or (pricing == "table-2" and 2 * k - 1 > ENUMERATED_SIZE)
    if edges and n > EDGE_MODEL_RECORDS:
        raise UnsupportedCombination(
            f"pricing {pricing}: expected at most {EDGE_MODEL_RECORDS} records, found {n}. Choose "
            "branch-and-bound, which computes the same bound, or lower blocking.max_records"
        )


def _lagrangian_bound(columns: Columns, solution: MasterSolution, k: int) -> float:
    """Return the Lagrangian bound: the dual objective plus the least sum of negative reduced costs."""
    priced = price(columns.distances, k, solution.duals, Cuts.none(), threshold=0.0, keep=1)
    return float(solution.duals.sum()) + priced.least_sum(len(solution.duals) // k)


def _is_integer(solution: MasterSolution) -> bool:
    return bool(np.all(np.minimum(solution.x, np.abs(1.0 - solution.x)) < PRESENT))


def _within_bounds(labels: np.ndarray, values: np.ndarray, k: int) -> list[np.ndarray]:
    """Return the clusters of a clustering. Clusters of 2k or more records, which V-MDAV may build,
    are split.
    """
    clusters = []
    for cluster in clusters_of(labels):
        while len(cluster) >= 2 * k:
            away = ((values[cluster] - values[cluster].mean(axis=0)) ** 2).sum(axis=1)
            far = values[cluster[np.argmax(away)]]
            order = np.argsort(((values[cluster] - far) ** 2).sum(axis=1), kind="stable")
            clusters.append(cluster[order[:k]])
            cluster = cluster[order[k:]]
        clusters.append(cluster)
    return clusters


def _compact(labels: np.ndarray) -> np.ndarray:
    return np.unique(labels, return_inverse=True)[1].astype(np.int64).ravel()
