"""Solve one instance of Cost 2023 by every method of the thesis, and keep the time of each step."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TypeVar

import numpy as np
import pandas as pd
from microguard.sdc.algorithms.nominal import TWO_STEP, Guidance
from microguard.sdc.nominal.aggregation.aggregate import choose_representatives
from microguard.sdc.nominal.aggregation.problem import AggregationProblem
from microguard.sdc.nominal.chi_exact import chi_exact
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import FrequencyVector, from_frame
from microguard.sdc.nominal.frequency_search.search import protect_frequencies
from microguard.sdc.nominal.methods import ProtectionTask
from microguard.sdc.nominal.partitioning.construction import construct_integer, default_guidance
from microguard.sdc.nominal.partitioning.master import (
    ExactPricing,
    price_by_enumeration,
    price_greedily,
    solve_fractional,
)
from microguard.sdc.nominal.partitioning.partition import EFFORTS, partition_problem
from microguard.sdc.nominal.partitioning.problem import NONE, PartitionProblem
from microguard.sdc.nominal.partitioning.random_partition import random_partition
from microguard.sdc.nominal.similarity import Similarity
from microguard.sdc.safe.protection import safe_frequencies
from microguard.sdc.stop import Deadline

T = TypeVar("T")
K = 3
DIMENSION = 3
#: Section 6.2.3: the parameters gamma and lambda that the thesis examines.
GAMMAS = (0.0, 0.25, 0.5, 0.75, 1.0)
LAMBDAS = (0.001, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
SOLUTIONS = ("exact", "heuristic")
AGGREGATIONS = {"e": "exact", "g": "greedy", "c": "clique"}
#: The exact aggregation stops after these seconds; for a random partition it does not finish.
AGGREGATION_SECONDS = 1.0
#: Wall-clock limit of Chi-ex in seconds, as a safeguard; its work is bounded by nodes.
CHI_EXACT_SECONDS = {"200m5_100percent": 5.0}
CHI_EXACT_OTHERWISE = 15.0
#: Scenarios whose parameters and aggregations the thesis shows as plots.
SHOWN = ("200m5_20percent", "adult200m5")
SAFE = {"SAFE": "safe", "SAFE-ex": "safe-exact", "mSAFE-ex": "modified-safe-exact"}


@dataclass(frozen=True)
class Instance:
    """A file, its frequencies, its control tables, and the tables of all dimensions."""

    frame: pd.DataFrame

    @cached_property
    def frequencies(self) -> FrequencyVector:
        return from_frame(self.frame).frequencies

    @cached_property
    def controlled(self) -> ControlTables:
        return ControlTables.of(self.frequencies, DIMENSION)

    @cached_property
    def everything(self) -> ControlTables:
        return ControlTables.of(self.frequencies, self.frequencies.variables)

    def problem(self, k: int = K) -> PartitionProblem:
        similarity = Similarity.plain(self.frequencies)
        return PartitionProblem(similarity.points, self.frequencies.counts, k, similarity.unit)


@dataclass(frozen=True)
class Partitions:
    """Partitions of one instance by the methods of chapter 4.

    Attributes
    ----------
    values : objective of the fractional solution, by "exact" or "heuristic"
    columns : clusters by the letters of both steps: "ee", "eh", "he", "hh", and "random" and "optimal"
    weights : weight of each of them
    swept : weight for each gamma and lambda, (5, 9), by the fractional solution; integer programs exact
    seconds : CPU seconds of each step ("exact" and "heuristic": fractional) and of "optimal"
    proved : whether "optimal" is proved
    """

    values: dict[str, float] = field(default_factory=dict)
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    swept: dict[str, np.ndarray] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    proved: bool = False


@dataclass(frozen=True)
class Protected:
    """Frequencies by method, CPU seconds of the step that computed them, and remaining gaps (0: proved)."""

    counts: dict[str, np.ndarray] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    gaps: dict[str, float] = field(default_factory=dict)


def timed(solve: Callable[[], T]) -> tuple[T, float]:
    begin = time.process_time()
    solved = solve()
    return solved, time.process_time() - begin


def partitions(frame: pd.DataFrame, sweep: bool) -> Partitions:
    """Run the four combinations of both steps, a random partition and the optimal one.

    Parameters
    ----------
    sweep : bool
        Whether to try all `GAMMAS` and `LAMBDAS`, too.
    """
    problem = Instance(frame).problem()
    begin = time.process_time()
    optimal = partition_problem(
        problem, "set-partitioning", EFFORTS["standard"], seed=0, deadline=Deadline.after(None)
    )
    done = Partitions(proved=optimal.optimal)
    done.seconds["optimal"] = time.process_time() - begin
    done.columns.update(optimal=optimal.columns, random=random_partition(problem, seed=0))
    for fractional in SOLUTIONS:
        pricings = (price_greedily, price_by_enumeration)
        solve = partial(
            solve_fractional, problem, (*pricings, ExactPricing()) if fractional == "exact" else pricings
        )
        solved, done.seconds[fractional] = timed(solve)
        done.values[fractional] = solved.value
        guidance = default_guidance(problem, fractional)
        for integer in SOLUTIONS:
            name = fractional[0] + integer[0]
            construct = partial(construct_integer, problem, solved.duals, guidance, integer)
            done.columns[name], done.seconds[name] = timed(construct)
        if sweep:
            done.swept[fractional] = np.array(
                [
                    [
                        problem.column_weights(
                            construct_integer(problem, solved.duals, Guidance(gamma, reward), "exact")
                        ).sum()
                        for reward in LAMBDAS
                    ]
                    for gamma in GAMMAS
                ]
            )
    done.weights.update({name: float(problem.column_weights(c).sum()) for name, c in done.columns.items()})
    return done


def aggregate(frame: pd.DataFrame, found: Partitions, dimension: int = DIMENSION) -> Protected:
    """Choose representatives for each partition by each of the three methods (own-eee, rand-e, ...)."""
    tables, done = ControlTables.of(Instance(frame).frequencies, dimension), Protected()
    for name, columns in found.columns.items():
        for letter, algorithm in AGGREGATIONS.items():
            if name == "optimal" and letter != "e":
                continue
            solve = partial(_representatives, columns, tables, algorithm)
            label = {"random": f"rand-{letter}", "optimal": "two optimal steps"}.get(
                name, f"own-{name}{letter}"
            )
            (done.counts[label], done.gaps[label]), done.seconds[label] = timed(solve)
    return done


def _representatives(columns: np.ndarray, tables: ControlTables, algorithm: str) -> tuple[np.ndarray, float]:
    cluster, position = np.nonzero(columns != NONE)
    problem = AggregationProblem.from_clustering(columns[cluster, position], cluster, tables)
    choices = choose_representatives(problem, algorithm, seed=0, deadline=Deadline.after(AGGREGATION_SECONDS))
    value = problem.chi2(choices.chosen)
    gap = 0.0 if choices.optimal or value == 0 else 1 - (choices.lower_bound or 0.0) / value
    target = problem.representatives(choices.chosen)[cluster]
    return np.bincount(target, minlength=len(tables.cells)).astype(np.int64), gap


def compare(frame: pd.DataFrame, seconds: float) -> Protected:
    """Protect by Chi-ex (starting from our local search, which is a separate row) and by SAFE with its
    variants.

    Parameters
    ----------
    seconds : float
        Wall-clock limit of Chi-ex.
    """
    one, done = Instance(frame), Protected()
    searched, done.seconds["local search"] = timed(
        partial(protect_frequencies, ProtectionTask(one.frequencies, K, one.controlled))
    )
    begin = time.process_time()
    solved = chi_exact(
        ProtectionTask(one.frequencies, K, one.controlled, deadline=Deadline.after(seconds)),
        start=searched.counts,
    )
    done.seconds["Chi-ex"] = time.process_time() - begin + done.seconds["local search"]
    done.counts.update({"local search": searched.counts, "Chi-ex": solved.counts})
    done.gaps["Chi-ex"] = 0.0 if solved.optimal else 1.0 if solved.gap is None else solved.gap
    for name, algorithm in SAFE.items():
        protect = partial(
            safe_frequencies,
            one.frequencies,
            K,
            one.controlled,
            algorithm=algorithm,
            deadline=Deadline.after(AGGREGATION_SECONDS),
        )
        result, done.seconds[name] = timed(protect)
        done.counts[name] = result.counts
    return done


def assert_protected(frame: pd.DataFrame, protected: Protected) -> None:
    """Check by counting that every frequency is 0 or at least k; only SAFE may change the number of "
    "records."""
    for name, counts in protected.counts.items():
        assert ((counts == 0) | (counts >= K)).all(), f"{name} returned a frequency between 1 and k - 1"
        assert name == "SAFE" or counts.sum() == len(frame), f"{name} changed the number of records"


def gaps(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the gap (6.1.1) of each method: its excess over the least value of these methods, by instance.

    A gap is NaN where the least value is 0: nothing had to change.
    """
    least = np.min(list(values.values()), axis=0)
    return {
        name: np.divide(each - least, least, out=np.full(len(least), np.nan), where=least > 0)
        for name, each in values.items()
    }


assert {f"own-{f}{i}{a}" for f in "eh" for i in "eh" for a in AGGREGATIONS} == set(TWO_STEP)
