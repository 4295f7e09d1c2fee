"""Two-step method of Cost 2023 on a frequency vector: partitioning, then aggregation (own-FIA)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.algorithms.nominal import RANDOM, TWO_OPTIMAL, TWO_STEP, Guidance
from microguard.sdc.errors import InvalidParameter, TooFewRecords
from microguard.sdc.nominal.aggregation.aggregate import choose_representatives
from microguard.sdc.nominal.aggregation.problem import AggregationProblem
from microguard.sdc.nominal.frequency import check_k
from microguard.sdc.nominal.methods import ProtectionTask
from microguard.sdc.nominal.partitioning.partition import EFFORTS, partition_problem
from microguard.sdc.nominal.partitioning.problem import NONE, PartitionProblem
from microguard.sdc.nominal.partitioning.set_partitioning import IntegerPartition
from microguard.sdc.nominal.protected_counts import Certificate, ProtectedCounts, Unproved
from microguard.sdc.nominal.similarity import Similarity


def two_step(task: ProtectionTask, name: str) -> ProtectedCounts:
    """Protect a frequency vector by a two-step method.

    Clusters do not cross regions, and the representatives of all regions are chosen jointly. Each step has a
    separate certificate. There is no bound for the whole method, because the first step ignores the objective
    of the second.

    Parameters
    ----------
    task : ProtectionTask
        The problem; its `parameters` are gamma and lambda of Algorithm 7, by default those of Table 6.5.
    name : str
        One of the twelve names own-eee to own-hhc, "two-step-optimal" (optimal partition by set partitioning,
        then optimal representatives), or "random".

    Raises
    ------
    InvalidParameter, TooFewRecords
    """
    frequencies, tables = task.frequencies, task.tables
    names = (*TWO_STEP, TWO_OPTIMAL, RANDOM)
    if name not in names:
        raise InvalidParameter(f"two-step method: expected one of {', '.join(names)}; found {name!r}")
    check_k(frequencies.records, task.k)
    similarity = task.similarity or Similarity.plain(frequencies)
    regions = [
        _Region.of(task, similarity, name, region)
        for region in np.unique(frequencies.region_of()[frequencies.counts > 0])
    ]
    combination = np.concatenate([region.combination for region in regions])
    labels = _numbered(regions)
    problem = AggregationProblem.from_clustering(combination, labels, tables)
    aggregation = TWO_STEP[name].aggregation if name in TWO_STEP else "exact"
    choices = choose_representatives(problem, aggregation, seed=task.seed, deadline=task.deadline)
    target = problem.representatives(choices.chosen)[labels]
    weight = sum(region.partition.weight for region in regions)
    chi2 = problem.chi2(choices.chosen)
    return ProtectedCounts(
        counts=np.bincount(target, minlength=len(frequencies)).astype(np.int64),
        stopped_by="time" if task.deadline.passed else "work",
        certificates=(
            _of_partitions([region.partition for region in regions], weight, name),
            Certificate.of(
                "aggregation", "chi-square", chi2, choices, heuristic=aggregation in ("greedy", "clique")
            ),
        ),
        work={"partition_weight": weight},
    )


@dataclass(frozen=True)
class _Region:
    """Clusters of one region: key combination and cluster of each record."""

    combination: np.ndarray
    cluster: np.ndarray
    partition: IntegerPartition

    @classmethod
    def of(cls, task: ProtectionTask, similarity: Similarity, name: str, region: int) -> _Region:
        frequencies, k = task.frequencies, task.k
        inside = np.flatnonzero((frequencies.region_of() == region) & (frequencies.counts > 0))
        problem = PartitionProblem(
            similarity.points.at(inside), frequencies.counts[inside], k, similarity.unit
        )
        if problem.records < k:
            raise TooFewRecords(
                f"region: expected at least k = {k} records, found {problem.records}. Merge or suppress the "
                "region"
            )
        algorithm = "set-partitioning" if name == TWO_OPTIMAL else name
        assert task.parameters is None or isinstance(task.parameters, Guidance)
        partition = partition_problem(
            problem,
            algorithm,
            EFFORTS["standard"],
            seed=task.seed,
            deadline=task.deadline,
            guidance=task.parameters,
        )
        cluster, position = np.nonzero(partition.columns != NONE)
        return cls(inside[partition.columns[cluster, position]], cluster, partition)


def _numbered(regions: list[_Region]) -> np.ndarray:
    """Return the cluster of each record, numbered consecutively over all regions."""
    clusters = np.cumsum([0, *(len(region.partition.columns) for region in regions[:-1])])
    return np.concatenate([region.cluster + first for region, first in zip(regions, clusters, strict=True)])


def _of_partitions(partitions: list[IntegerPartition], weight: int, name: str) -> Certificate:
    """Sum the weights and bounds of the regions; without a bound for every region, there is no total
    bound.
    """
    bounds = [partition.lower_bound for partition in partitions]
    proved = [bound for bound in bounds if bound is not None]
    bound = float(sum(proved)) if len(proved) == len(bounds) else None
    optimal = all(partition.optimal for partition in partitions)
    unproved: Unproved | None = None
    if bound is None:
        heuristic = name == RANDOM or (name in TWO_STEP and TWO_STEP[name].fractional == "heuristic")
        timed_out = any(partition.stopped_by == "time" for partition in partitions)
        unproved = "heuristic" if heuristic else "time" if timed_out else "work"
    return Certificate("partition", "weight", float(weight), bound, optimal, unproved)
