"""Nominal methods on the scenarios of Cost 2023: partitioning, aggregation, Chi-ex, and a comparison.

Times are CPU seconds of one core. Every figure is recomputed by independent code before it is printed, and
targets are asserted. After a kill, the next call with the same code continues.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pandas as pd
from microguard.sdc.nominal.aggregation.aggregate import aggregate
from microguard.sdc.nominal.chi_exact import ChiExact, chi_exact
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import FrequencyVector, from_frame
from microguard.sdc.nominal.frequency_search.search import protect_frequencies
from microguard.sdc.nominal.partitioning.partition import Partition, partition
from microguard.sdc.nominal.two_step import two_step
from microguard.sdc.safe.protection import safe_frequencies
from microguard.sdc.stop import Deadline

from tests.benchmarks.combinations import (
    certificates,
    in_parts,
    regions,
    regression,
    scale,
    value_suppression,
)
from tests.benchmarks.combinations.scenarios import SCENARIOS, instance
from tests.benchmarks.parts import Parts
from tests.benchmarks.table import Table
from tests.sdc.nominal.brute_force import chi2, partition_weight

K = 3
DIMENSION = 3
#: Further methods, in addition to our search, partition and Chi-ex.
TWO_STEP = ("own-eee", "own-hee", "own-hhe", "own-hhg", "own-hhc", "random")
SAFE = ("safe", "safe-exact", "modified-safe-exact")
#: Scenarios of the thesis without target figures.
LARGER = ("adult500m5", "adult200m8")
#: Wall-clock limit of Chi-ex in seconds, as a safeguard; its work is bounded by nodes.
CHI_EXACT_SECONDS = {"adult200m5": 120.0, "200m5_100percent": 60.0}
CHI_EXACT_OTHERWISE = 30.0
#: Time limit of the other methods in seconds; the exact aggregation of a random partition does not finish.
COMPARED_SECONDS = 15.0

#: Tables 6.6 and 6.7: weight over the relaxation's value, seconds of both phases (all exact).
THESIS_PARTITION = {
    "adult200m5": (79.5 / 68.7, 165.11 + 69.58),
    "200m5_2percent": (20.6 / 10.6, 16.16 + 29.04),
    "200m5_20percent": (76.9 / 60.2, 64.48 + 54.66),
    "200m5_100percent": (201.2 / 172.4, 368.02 + 117.06),
}
#: Table 6.8, Own-*e*: seconds of the exact aggregation.
THESIS_AGGREGATION = {
    "adult200m5": "0.54",
    "200m5_2percent": "0.29",
    "200m5_20percent": "0.45",
    "200m5_100percent": "493 (17 of 20 solved)",
}
#: Table 6.10 and its text: seconds of Chi-ex.
THESIS_CHI_EXACT = {
    "adult200m5": "1330 s (9 of 10 solved)",
    "200m5_2percent": "1.07 s",
    "200m5_20percent": "6.8 s",
    "200m5_100percent": "gap 0.51 after 5000 s",
}


@dataclass
class Instance:
    """One instance, and the results of the steps on it."""

    scenario: str
    number: int
    frame: pd.DataFrame
    frequencies: FrequencyVector
    tables: ControlTables
    partition: Partition
    partition_seconds: float
    chi2: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    counts: dict[str, np.ndarray] = field(default_factory=dict)
    chi_exact: ChiExact | None = None

    @property
    def name(self) -> str:
        return f"{self.scenario} {self.number}"


def run(quick: bool = False) -> Iterator[Table]:
    """Return all tables; quick: one instance per scenario, and a tenth of the time for Chi-ex."""
    parts = Parts("nominal-quick" if quick else "nominal", "combinations")
    instances = [
        _partitioned(parts, scenario, number)
        for scenario in (SCENARIOS if quick else (*SCENARIOS, *LARGER))
        for number in range(1 if quick else 10)
    ]
    yield partitioning(instances)
    yield aggregation(parts, instances)
    yield chi_exactly(parts, instances, 0.1 if quick else 1.0)
    yield comparison(parts, instances)
    if not quick:
        _assert_targets(instances)
    yield regression.table(parts, quick)
    for part in (scale, in_parts, regions, certificates, value_suppression):
        for name, make in part.tables(quick).items():
            yield parts.table(name, make)
    parts.forget()


def partitioning(instances: list[Instance]) -> Table:
    """Compare weight over LP value for our method and for Algorithm 7 with the parameters of Table 6.5."""
    rows: list[tuple[object, ...]] = []
    for scenario, group in _by_scenario(instances):
        relaxation = np.array([one.partition.lp_bound for one in group], dtype=float)
        ours = np.array([one.partition.weight for one in group]) / relaxation
        guided = [
            np.mean([partition(one.frame, K, algorithm=name).weight for one in group] / relaxation)
            for name in ("own-eee", "own-hee", "own-hhe")
        ]
        seconds = [one.partition_seconds for one in group]
        proved = sum(one.partition.optimal for one in group)
        rows.append(
            (
                scenario,
                float(relaxation.mean()),
                float(ours.mean()),
                float(ours.max()),
                f"{proved} of {len(group)}",
                float(np.mean(seconds)),
                max(seconds),
                *map(float, guided),
                *THESIS_PARTITION.get(scenario, (None, None)),
            )
        )
    return Table(
        "Partitioning, k = 3: weight over the value of the linear relaxation",
        (
            "scenario",
            "relaxation",
            "ours, mean",
            "ours, max",
            "proved optimal",
            "s, mean",
            "s, max",
            "own-ee",
            "own-he",
            "own-hh",
            "thesis own-ee",
            "thesis s",
        ),
        rows,
        "own-..: Algorithm 7 here, with the pairs of Table 6.5; thesis: Tables 6.6 and 6.7.",
    )


def aggregation(parts: Parts, instances: list[Instance]) -> Table:
    """Return the chi-square of each aggregation relative to the exact one, on our partitions."""
    rows: list[tuple[object, ...]] = []
    for scenario, group in _by_scenario(instances):
        ratios: dict[str, list[float]] = {"greedy": [], "clique": [], "local-search": []}
        seconds, proved = [], 0
        for one in group:
            solve = partial(aggregate, one.frame, one.partition.labels, DIMENSION, algorithm="exact")
            exact, spent = parts.answer(f"aggregation {one.name}", solve)
            seconds.append(spent)
            proved += exact.optimal
            assert np.isclose(exact.chi2, chi2(one.frame, exact.protected, DIMENSION))
            one.chi2["two optimal steps"] = exact.chi2
            one.seconds["aggregation"] = spent
            one.counts["two optimal steps"] = _counts(one, exact.protected)
            for name, values in ratios.items():
                aggregated = aggregate(one.frame, one.partition.labels, DIMENSION, algorithm=name)
                values.append(aggregated.chi2 / exact.chi2)
        rows.append(
            (
                scenario,
                f"{proved} of {len(group)}",
                float(np.mean(seconds)),
                max(seconds),
                *(float(np.mean(values)) for values in ratios.values()),
                THESIS_AGGREGATION.get(scenario),
            )
        )
    return Table(
        "Aggregation on these partitions, control tables to dimension 3: chi-square over the optimum",
        ("scenario", "proved", "s, mean", "s, max", "greedy", "clique", "local search", "thesis exact, s"),
        rows,
    )


def chi_exactly(parts: Parts, instances: list[Instance], share: float) -> Table:
    """Run Chi-ex from the solution of the local search at effort standard."""
    rows: list[tuple[object, ...]] = []
    for scenario, group in _by_scenario(instances):
        for one in group:
            solve = partial(protect_frequencies, one.frequencies, K, one.tables)
            searched, one.seconds["local search"] = parts.answer(f"local search {one.name}", solve)
            limit = share * CHI_EXACT_SECONDS.get(scenario, CHI_EXACT_OTHERWISE)
            prove = partial(_chi_exactly, one, searched.counts, limit)
            one.chi_exact, one.seconds["Chi-ex"] = parts.answer(f"Chi-ex {one.name}", prove)
            one.chi2["local search"], one.chi2["Chi-ex"] = searched.chi2, one.chi_exact.chi2
            one.counts["local search"], one.counts["Chi-ex"] = searched.counts, one.chi_exact.counts
            assert np.isclose(one.chi_exact.chi2, chi2(one.frame, _records(one, "Chi-ex"), DIMENSION))
        seconds = [one.seconds["Chi-ex"] for one in group]
        rows.append(
            (
                scenario,
                float(np.mean([one.chi2["Chi-ex"] for one in group])),
                f"{sum(_chi_exact(one).optimal for one in group)} of {len(group)}",
                float(np.mean([_gap(one) for one in group])),
                max(_gap(one) for one in group),
                float(np.mean(seconds)),
                max(seconds),
                THESIS_CHI_EXACT.get(scenario),
            )
        )
    return Table(
        "Chi-ex, control tables to dimension 3",
        ("scenario", "chi-square", "proved", "gap, mean", "gap, max", "s, mean", "s, max", "thesis"),
        rows,
        "At most 120 s of the clock for adult200m5, 60 for 100 %, 30 for others; seconds without the local "
        "search that gives the start.",
    )


def comparison(parts: Parts, instances: list[Instance]) -> Table:
    """Compare every method with the best solution of Chi-ex, on control tables and on all tables."""
    rows: list[tuple[object, ...]] = []
    names = (*TWO_STEP, *SAFE)
    for scenario, group in _by_scenario(instances):
        for one in group:
            for name in names:
                solve = partial(_run, name, one)
                one.counts[name], one.seconds[name] = parts.answer(f"{name} {one.name}", solve)
            one.seconds["two optimal steps"] = one.partition_seconds + one.seconds["aggregation"]
        everything = [ControlTables.of(one.frequencies, one.frequencies.variables) for one in group]
        best = np.array([one.tables.chi2(one.counts["Chi-ex"]) for one in group])
        best_all = np.array(
            [tables.chi2(one.counts["Chi-ex"]) for one, tables in zip(group, everything, strict=True)]
        )
        for name in ("Chi-ex", "local search", "two optimal steps", *names):
            ratio = np.array([one.tables.chi2(one.counts[name]) for one in group]) / best
            ratio_all = [
                tables.chi2(one.counts[name]) for one, tables in zip(group, everything, strict=True)
            ] / best_all
            errors = [one.tables.max_absolute_error(one.counts[name]) for one in group]
            rows.append(
                (
                    scenario,
                    name,
                    float(ratio.mean()),
                    float(ratio.max()),
                    float(ratio_all.mean()),
                    " / ".join(f"{np.mean([error[d] for error in errors]):.1f}" for d in (1, 2, 3)),
                    float(np.mean([one.seconds[name] for one in group])),
                )
            )
    return Table(
        "All methods: chi-square over that of Chi-ex",
        (
            "scenario",
            "method",
            "control tables, mean",
            "max",
            "all tables, mean",
            "largest error by dimension",
            "s, mean",
        ),
        rows,
        "local search: standard effort; two optimal steps: our partition and the exact aggregation. SAFE may "
        f"change the number of records. At most {COMPARED_SECONDS:.0f} s each. In the thesis, too, own-hee "
        "and own-hhe stay above Chi-ex.",
    )


def _chi_exactly(one: Instance, start: np.ndarray, seconds: float) -> ChiExact:
    deadline = Deadline.after(seconds)
    return chi_exact(one.frequencies, K, one.tables, start=start, deadline=deadline)


def _run(name: str, one: Instance) -> np.ndarray:
    limit = Deadline.after(COMPARED_SECONDS)
    if name in SAFE:
        return safe_frequencies(one.frequencies, K, one.tables, algorithm=name, deadline=limit).counts
    return two_step(one.frequencies, K, one.tables, name=name, deadline=limit).counts


def _assert_targets(instances: list[Instance]) -> None:
    """Return the target figures."""
    for scenario, group in _by_scenario([one for one in instances if one.scenario in SCENARIOS]):
        ratios = [one.partition.weight / (one.partition.lp_bound or np.nan) for one in group]
        gaps = [_gap(one) for one in group]
        if scenario == "200m5_100percent":
            assert np.mean(ratios) <= 1.04
            assert max(gaps) <= 0.10
        else:
            assert all(one.partition.optimal for one in group)
            assert sum(_chi_exact(one).optimal for one in group) >= (9 if scenario == "adult200m5" else 10)
        if scenario == "adult200m5":
            assert np.mean([one.chi2["local search"] / one.chi2["Chi-ex"] for one in group]) <= 1.005


def _partitioned(parts: Parts, scenario: str, number: int) -> Instance:
    frame = instance(scenario, number, k=K)
    clustering, seconds = parts.answer(f"partition {scenario} {number}", partial(partition, frame, K))
    assert clustering.weight == partition_weight(frame, clustering.labels)
    assert np.bincount(clustering.labels).min() >= K
    frequencies = from_frame(frame).frequencies
    return Instance(
        scenario, number, frame, frequencies, ControlTables.of(frequencies, DIMENSION), clustering, seconds
    )


def _by_scenario(instances: list[Instance]) -> list[tuple[str, list[Instance]]]:
    names = dict.fromkeys(one.scenario for one in instances)
    return [(name, [one for one in instances if one.scenario == name]) for name in names]


def _chi_exact(one: Instance) -> ChiExact:
    assert one.chi_exact is not None
    return one.chi_exact


def _gap(one: Instance) -> float:
    gap = _chi_exact(one).gap
    return 1.0 if gap is None else gap


def _records(one: Instance, name: str) -> pd.DataFrame:
    """Return the protected records in the order of combinations."""
    coded = from_frame(one.frame)
    return coded.decode_combinations(np.repeat(np.arange(len(one.frequencies)), one.counts[name]))


def _counts(one: Instance, protected: pd.DataFrame) -> np.ndarray:
    """Return the frequency of each original combination in the protected records."""
    original = from_frame(one.frame)
    both = from_frame(pd.concat([one.frame, protected], ignore_index=True))
    position = np.empty(len(both.frequencies), dtype=np.int64)
    position[both.combination[: len(one.frame)]] = original.combination
    return np.bincount(position[both.combination[len(one.frame) :]], minlength=len(original.frequencies))
