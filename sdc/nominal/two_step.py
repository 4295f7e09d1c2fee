"""The two-step method of Cost 2023 on a frequency vector: partition, then aggregate (own-FIA)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sdc.errors import InvalidParameter, TooFewRecords
from sdc.nominal.aggregation.aggregate import choose_representatives
from sdc.nominal.aggregation.problem import AggregationProblem
from sdc.nominal.control_tables import ControlTables
from sdc.nominal.frequency import FrequencyVector, check_k
from sdc.nominal.partitioning.partition import EFFORTS, partition_problem
from sdc.nominal.partitioning.problem import NONE, PartitionProblem
from sdc.nominal.two_step_names import OWN
from sdc.stop import Deadline, StoppedBy

#: rand-exact of section 6.2.5: a random partition, then the exact aggregation.
RANDOM = "random"


@dataclass(frozen=True)
class OwnResult:
    """A protected frequency vector; of the whole nothing is proved, the two steps ignore each other.

    Attributes
    ----------
    counts : (m,) int64 array, 0 or at least k, with the total of each region kept
    chi2 : chi-square over the cells of the control tables
    weight : weight of the partition, summed over regions
    stopped_by : "work" or "time"
    """

    counts: np.ndarray
    chi2: float
    weight: int
    stopped_by: StoppedBy


def own(
    frequencies: FrequencyVector,
    k: int,
    tables: ControlTables,
    *,
    name: str,
    seed: int = 0,
    deadline: Deadline | None = None,
) -> OwnResult:
    """Protect a frequency vector by a two-step method.

    Parameters
    ----------
    frequencies : FrequencyVector; clusters never cross its regions, representatives are chosen jointly
    k : minimum cluster size
    tables : ControlTables of these frequencies
    name : one of the twelve names own-eee ... own-hhc, or "random"
    seed : of the random partition and the search for representatives
    deadline : a safety net

    Raises
    ------
    InvalidParameter, TooFewRecords
    """
    if name not in OWN and name != RANDOM:
        raise InvalidParameter(f"no two-step method {name!r}; expected one of {', '.join((*OWN, RANDOM))}")
    check_k(frequencies.records, k)
    deadline = deadline or Deadline.after(None)
    combination, labels, weight = _partition_regions(frequencies, k, name, seed, deadline)
    problem = AggregationProblem.of(combination, labels, tables)
    aggregation = OWN[name].aggregation if name in OWN else "exact"
    found = choose_representatives(problem, aggregation, seed=seed, deadline=deadline)
    target = problem.representatives(found.chosen)[labels]
    return OwnResult(
        counts=np.bincount(target, minlength=len(frequencies)).astype(np.int64),
        chi2=problem.chi2(found.chosen),
        weight=weight,
        stopped_by="time" if deadline.passed else "work",
    )


def _partition_regions(
    frequencies: FrequencyVector, k: int, name: str, seed: int, deadline: Deadline
) -> tuple[np.ndarray, np.ndarray, int]:
    """Combination and cluster of each record, region by region, and the weight of all clusters."""
    combinations, labels = [], []
    weight = clusters = 0
    region_of = frequencies.region_of()
    for region in np.unique(region_of[frequencies.counts > 0]):
        inside = np.flatnonzero((region_of == region) & (frequencies.counts > 0))
        problem = PartitionProblem(frequencies.codes[inside], frequencies.counts[inside], k)
        if problem.records < k:
            raise TooFewRecords(f"a region has {problem.records} records; k = {k} needs at least {k}")
        found = partition_problem(problem, name, EFFORTS["standard"], seed=seed, deadline=deadline)
        cluster, position = np.nonzero(found.columns != NONE)
        combinations.append(inside[found.columns[cluster, position]])
        labels.append(cluster + clusters)
        weight += found.weight
        clusters += len(found.columns)
    return np.concatenate(combinations), np.concatenate(labels), weight
