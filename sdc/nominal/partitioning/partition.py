"""Partitioning step: clusters of at least k similar nominal records (Cost 2023, chapter 4)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from microguard.sdc.algorithms.nominal import TWO_STEP, Guidance, TwoSteps
from microguard.sdc.arguments import check_name, checked_seed
from microguard.sdc.errors import UnsupportedCombination
from microguard.sdc.nominal.distances import Distance
from microguard.sdc.nominal.frequency import CodedFrame, check_k, from_frame
from microguard.sdc.nominal.partitioning.construction import construct_integer, default_guidance
from microguard.sdc.nominal.partitioning.local_search import local_search
from microguard.sdc.nominal.partitioning.master import (
    ExactPricing,
    price_by_enumeration,
    price_greedily,
    solve_fractional,
)
from microguard.sdc.nominal.partitioning.problem import NONE, PartitionProblem
from microguard.sdc.nominal.partitioning.random_partition import random_partition
from microguard.sdc.nominal.partitioning.set_partitioning import (
    IntegerPartition,
    Work,
    next_integer,
    partition_optimally,
)
from microguard.sdc.nominal.similarity import Similarity, similarity_of
from microguard.sdc.stop import Deadline, StoppedBy


@dataclass(frozen=True)
class Effort:
    """Work limits of one effort.

    Attributes
    ----------
    moves_per_record, fewest_moves : int
        Local search moves per record at risk, and their minimum.
    provable_combinations : int
        Largest number of key combinations for which the linear relaxation and the integer program are tried.
    columns, nodes : int
        Maximum number of columns of one integer program, and of nodes of all exact pricings.
    """

    moves_per_record: int
    fewest_moves: int
    provable_combinations: int
    columns: int
    nodes: int


#: Work limits by effort.
EFFORTS: dict[str, Effort] = {
    "fast": Effort(moves_per_record=20, fewest_moves=2_000, provable_combinations=0, columns=0, nodes=0),
    "standard": Effort(
        moves_per_record=100, fewest_moves=10_000, provable_combinations=300, columns=5_000, nodes=2_000_000
    ),
    "thorough": Effort(
        moves_per_record=500,
        fewest_moves=50_000,
        provable_combinations=1_000,
        columns=40_000,
        nodes=20_000_000,
    ),
    "exact": Effort(
        moves_per_record=500,
        fewest_moves=50_000,
        provable_combinations=20_000,
        columns=1_000_000,
        nodes=2_000_000_000,
    ),
}
#: Names of algorithms beyond the twelve names of the thesis.
ALGORITHMS = ("auto", "set-partitioning", "local-search", "random")
#: Maximum number of combinations of a block. Larger files are searched in blocks, because computing the
#: neighbours in the whole file is slow.
_BLOCK = 10_000


@dataclass(frozen=True)
class Partition:
    """Clusters of at least k records.

    Attributes
    ----------
    labels : (n,) int64 array
        Cluster of each record, 0 to clusters - 1.
    weight : int
        Sum over the clusters of all pairwise distances.
    lp_bound : float or None
        Optimum of the linear relaxation; None if it was not solved to optimality.
    lower_bound : float or None
        Valid bound on the weight of every partition into clusters of at least k.
    optimal : bool
        Whether the weight is proved minimal.
    algorithm : str
        Algorithm that ran.
    stopped_by : "proof", "work" or "time"
    """

    labels: np.ndarray
    weight: int
    lp_bound: float | None
    lower_bound: float | None
    optimal: bool
    algorithm: str
    stopped_by: StoppedBy

    @property
    def gap(self) -> float | None:
        """Return (weight - lower_bound) / weight; None without a bound."""
        if self.lower_bound is None:
            return None
        return 0.0 if self.weight == 0 else (self.weight - self.lower_bound) / self.weight


def partition(
    frame: pd.DataFrame,
    k: int,
    *,
    effort: str = "standard",
    algorithm: str = "auto",
    seed: int = 0,
    time_limit: float | None = None,
    guidance: Guidance | None = None,
    distances: Mapping[Hashable, Distance] | None = None,
) -> Partition:
    """Cluster a frame of nominal variables into clusters of at least k records with small weight.

    The weight is the sum over the clusters of the distances of all pairs of records. By default this is the
    Hamming distance, the number of variables in which two records differ.

    Parameters
    ----------
    frame : DataFrame (n, a)
        Nominal variables of any dtype. A missing value is a separate category.
    k : int
        Minimum cluster size, 2 <= k <= n.
    effort : {"fast", "standard", "thorough", "exact"}
        Determines the local search moves per record at risk (20, 100, 500, 500) and the work limits of a
        proof. The twelve methods of the thesis and "random" ignore it. "set-partitioning" has at least the
        limits of "standard". "exact" requires set-partitioning, so "auto" refuses it for more than 20,000
        combinations.
    algorithm : str
        "set-partitioning" (column generation, then an integer program over all columns within the gap),
        "local-search", "random" (section 6.2.5), or a name of the thesis such as "own-ehg", whose first two
        letters select the algorithm. "auto" is set-partitioning up to the effort's number of combinations,
        and local-search beyond.
    seed : int
        Seed of the local search or the random partition, at least 0.
    time_limit : float, optional
        Seconds, as a safety net. A construction is never interrupted.
    guidance : Guidance, optional
        gamma and lambda of Algorithm 7, for the names of the thesis; by default those of the nearest scenario
        of Table 6.5.
    distances : mapping of name to Nominal, Ordinal, Hierarchical or Costs, optional
        Distances of variables; the others are nominal with weight 1.

    Returns
    -------
    Partition
        Labels in the order of the records of the frame.

    Raises
    ------
    TooFewRecords
        If there are fewer than k records.
    InvalidParameter
        If k, the effort, the algorithm or the time limit is invalid; if the frame has no variables, or values
        that cannot be compared.
    UnknownVariable
        If two variables have the same name, or a distance names an unknown variable.
    UnsupportedCombination
        If guidance is given for a method without duals, or effort "exact" for a method without proof.
    SolverFailed
        If the solver ends a linear program without a conclusive status.

    References
    ----------
    Cost 2023, chapter 4. The local search follows Schrimpf et al. 2000.
    """
    coded = from_frame(frame)
    check_k(len(frame), k)
    spend = _effort(effort)
    check_name("partitioning algorithm", algorithm, (*ALGORITHMS, *TWO_STEP))
    seed = checked_seed(seed)
    similar = similarity_of(coded, distances) if distances else Similarity.plain(coded.frequencies)
    problem = PartitionProblem(similar.points, coded.frequencies.counts, int(k), similar.unit)
    if algorithm == "auto":
        provable = len(coded.frequencies) <= spend.provable_combinations
        algorithm = "set-partitioning" if provable else "local-search"
    if effort == "exact" and algorithm != "set-partitioning":
        raise UnsupportedCombination(
            f'effort "exact": expected set-partitioning and at most {spend.provable_combinations:,} key '
            f"combinations, found {algorithm} and {len(coded.frequencies):,}. Choose effort thorough"
        )
    if guidance is not None and algorithm not in TWO_STEP:
        raise UnsupportedCombination(
            f"guidance: expected a two-step method of the thesis, found {algorithm}. Leave guidance out"
        )
    solution = partition_problem(
        problem, algorithm, spend, seed=seed, deadline=Deadline.after(time_limit), guidance=guidance
    )
    return Partition(
        labels=_labels(coded, solution.columns),
        weight=solution.weight,
        lp_bound=solution.lp_bound,
        lower_bound=solution.lower_bound,
        optimal=solution.optimal,
        algorithm=algorithm,
        stopped_by=solution.stopped_by,
    )


def partition_problem(
    problem: PartitionProblem,
    algorithm: str,
    effort: Effort,
    *,
    seed: int,
    deadline: Deadline,
    guidance: Guidance | None = None,
) -> IntegerPartition:
    """Partition key combinations by a named algorithm; the caller has checked the name."""
    if algorithm in TWO_STEP:
        return _thesis(problem, TWO_STEP[algorithm], deadline, guidance)
    if algorithm == "random":
        return _unproved(problem, random_partition(problem, seed=seed))
    moves = _moves(problem, effort)
    if algorithm == "local-search":
        searched = _unproved(problem, _search_by_blocks(problem, effort, seed, deadline))
        return replace(searched, stopped_by="time") if deadline.passed and searched.weight else searched
    least = EFFORTS["standard"]
    work = Work(moves, max(effort.columns, least.columns), max(effort.nodes, least.nodes))
    return partition_optimally(problem, work=work, seed=seed, deadline=deadline)


def _thesis(
    problem: PartitionProblem, steps: TwoSteps, deadline: Deadline, guidance: Guidance | None
) -> IntegerPartition:
    """Run the method of chapter 4 of the thesis: solve the relaxation, then construct clusters from its
    duals.
    """
    heuristics = (price_greedily, price_by_enumeration)
    pricings = (*heuristics, ExactPricing()) if steps.fractional == "exact" else heuristics
    fractional = solve_fractional(problem, pricings, deadline=deadline)
    guidance = guidance or default_guidance(problem, steps.fractional)
    columns = construct_integer(problem, fractional.duals, guidance, steps.integer)
    guided = _unproved(problem, columns)
    lower = next_integer(fractional.lower_bound)
    optimal = lower is not None and guided.weight <= lower
    stopped_by: StoppedBy = "time" if fractional.stopped_by == "time" else "work"
    return replace(
        guided,
        lp_bound=fractional.value if fractional.optimal else None,
        lower_bound=None if lower is None else float(lower),
        optimal=optimal,
        stopped_by="proof" if optimal else stopped_by,
    )


def _search_by_blocks(problem: PartitionProblem, effort: Effort, seed: int, deadline: Deadline) -> np.ndarray:
    """Run the local search, in blocks of consecutive combinations if there are many."""
    count = len(problem.multiplicity)
    blocks = np.array_split(np.arange(count), -(-count // _BLOCK))
    columns = []
    for block in blocks:
        part = replace(problem, points=problem.points.at(block), multiplicity=problem.multiplicity[block])
        clusters = local_search(part, moves=_moves(part, effort), seed=seed, deadline=deadline)
        columns.append(np.where(clusters == NONE, NONE, clusters + block[0]))
    return np.concatenate(columns)


def _moves(problem: PartitionProblem, effort: Effort) -> int:
    at_risk = int(problem.multiplicity[problem.multiplicity < problem.k].sum())
    return max(effort.fewest_moves, effort.moves_per_record * at_risk) if at_risk else 0


def _unproved(problem: PartitionProblem, columns: np.ndarray) -> IntegerPartition:
    weight = int(problem.column_weights(columns).sum())
    return IntegerPartition(columns, weight, None, None, weight == 0, "proof" if weight == 0 else "work")


def _effort(name: str) -> Effort:
    check_name("effort", name, EFFORTS)
    return EFFORTS[name]


def _labels(coded: CodedFrame, columns: np.ndarray) -> np.ndarray:
    """Return the cluster of each record, (n,): the records of a combination are assigned in order to the
    clusters that contain it.
    """
    columns = columns[np.lexsort(columns.T[::-1])]
    cluster, position = np.nonzero(columns != NONE)
    by_combination = np.argsort(columns[cluster, position], kind="stable")
    labels = np.empty(len(coded.combination), dtype=np.int64)
    labels[np.argsort(coded.combination, kind="stable")] = cluster[by_combination]
    return labels
