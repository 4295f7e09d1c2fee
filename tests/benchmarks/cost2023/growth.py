"""Figures 6.21 to 6.24 of Cost 2023: seconds of own-hhg by records, k, and dimension of the control "
"tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from microguard.sdc.nominal.aggregation.aggregate import choose_representatives
from microguard.sdc.nominal.aggregation.problem import AggregationProblem
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.partitioning.construction import construct_integer, default_guidance
from microguard.sdc.nominal.partitioning.master import price_by_enumeration, price_greedily, solve_fractional
from microguard.sdc.nominal.partitioning.problem import NONE
from microguard.sdc.stop import Deadline

from tests.benchmarks.combinations.scenarios import synthetic
from tests.benchmarks.cost2023.solutions import Instance, timed
from tests.benchmarks.paper_pages import Measured, Section, curves
from tests.benchmarks.parts import Parts
from tests.benchmarks.table import Table

SHARE = 0.2
RECORDS = (100, 200, 400, 800, 1_600)
KS = (2, 3, 4, 5, 6)
INSTANCES = 10
#: Numbers of values of the three attributes of 200m8_20percent that Table 6.4 lacks; the thesis does not
#: state them.
FURTHER = (7, 7, 7)


def tables(parts: Parts, quick: bool) -> list[Section]:
    """Return three tables; quick: two instances and the smaller sizes."""
    count = 2 if quick else INSTANCES
    return [
        Section("Figures 6.21 and 6.22", partial(_by_records, parts, RECORDS[: 3 if quick else None], count)),
        Section("Figure 6.23", partial(_by_k, parts, count)),
        Section("Figure 6.24", partial(_by_dimension, parts, count)),
    ]


def _by_records(parts: Parts, records: tuple[int, ...], count: int) -> Measured:
    found = {n: _seconds(parts, f"{n} records", count, partial(own_hhg, n, 3, 3, ())) for n in records}
    n, total = np.array(records, dtype=float), np.array([found[n].sum(axis=1).mean() for n in records])
    steepness = float(np.polyfit(np.log(n), np.log(total), 1)[0])
    says = (
        "Thesis: at least quadratic in all, partitioning alike, aggregation linear. Here the seconds of both "
        f"grow as records to the power {steepness:.2f}: equal records share a row."
    )
    title = "Figures 6.21 and 6.22: seconds of own-hhg by records, k = 3"
    return _table(title, "records", found, says, log=True)


def _by_k(parts: Parts, count: int) -> Measured:
    found = {k: _seconds(parts, f"k = {k}", count, partial(own_hhg, 200, k, 3, ())) for k in KS}
    says = "Thesis: partitioning rises with k, aggregation falls."
    return _table("Figure 6.23: seconds of own-hhg by k, 200 records, 20 % at risk", "k", found, says)


def _by_dimension(parts: Parts, count: int) -> Measured:
    found = {
        d: _seconds(parts, f"dimension {d}", count, partial(own_hhg, 200, 3, d, FURTHER)) for d in range(1, 9)
    }
    says = "Thesis: aggregation rises most to dimension 4; 7 and 8 differ by one table."
    title = "Figure 6.24: seconds of own-hhg by dimension of the control tables"
    return _table(title, "dimension", found, says)


def own_hhg(n: int, k: int, dimension: int, further: tuple[int, ...], number: int) -> tuple[float, float]:
    """Return the seconds of partitioning and of aggregation of one instance."""
    frame = synthetic(n, SHARE, k, np.random.default_rng([number, n, k]), further)
    return _phases(frame, k, dimension)


def _phases(frame: pd.DataFrame, k: int, dimension: int) -> tuple[float, float]:
    one = Instance(frame)
    tables = ControlTables.of(one.frequencies, dimension)

    def cluster() -> np.ndarray:
        problem = one.problem(k)
        fractional = solve_fractional(problem, (price_greedily, price_by_enumeration))
        return construct_integer(
            problem, fractional.duals, default_guidance(problem, "heuristic"), "heuristic"
        )

    def represent() -> np.ndarray:
        cluster, position = np.nonzero(columns != NONE)
        problem = AggregationProblem.from_clustering(columns[cluster, position], cluster, tables)
        chosen = choose_representatives(problem, "greedy", seed=0, deadline=Deadline.after(None)).chosen
        return np.bincount(problem.representatives(chosen)[cluster], minlength=len(one.frequencies))

    columns, partitioning = timed(cluster)
    counts, aggregation = timed(represent)
    assert ((counts == 0) | (counts >= k)).all()
    assert counts.sum() == len(frame)
    return partitioning, aggregation


def _seconds(parts: Parts, name: str, count: int, solve: Callable[[int], tuple[float, float]]) -> np.ndarray:
    """Return the seconds of both phases of each instance, (instances, 2)."""
    return np.array([parts.answer(f"growth {name} {i}", partial(solve, i))[0] for i in range(count)])


def _table(
    title: str, heading: str, seconds: dict[int, np.ndarray], says: str, log: bool = False
) -> Measured:
    rows: list[tuple[object, ...]] = [
        (value, *map(float, each.mean(axis=0)), float(each.sum(axis=1).mean()), float(each.sum(axis=1).max()))
        for value, each in seconds.items()
    ]
    x = np.array(list(seconds), dtype=float)
    panels = {
        phase: {phase: (x, np.array([each.mean(axis=0)[place] for each in seconds.values()]))}
        for place, phase in enumerate(("partitioning", "aggregation"))
    }
    columns = (heading, "partitioning", "aggregation", "both", "both, most")
    return Measured(Table(title, columns, rows, says), curves(panels, heading, "CPU seconds", log))
