"""Controlled tabular adjustment of the tables of Cox 2005, section 3, and of larger tables.

Every solution passes the independent check before it is reported. Times are CPU seconds of one process; gap =
objective / lower bound - 1; excess = objective / unavoidable part - 1. Figures are medians over the seeds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
from microguard.sdc.cta import Adjustment, CellTable
from microguard.sdc.cta.program.model import base_model
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.solver import Limits, solve

from tests.benchmarks.table import Table
from tests.benchmarks.tabular.grids import random_table
from tests.benchmarks.tabular.hierarchies import HIERARCHIES, hierarchical_table
from tests.benchmarks.tabular.reference_tables import SURVEY_TABLES, survey_table, turnover_table
from tests.benchmarks.tabular.timed import attempt, done, timed
from tests.reference import REFERENCE_FOLDER

SEEDS = (1, 2, 3, 4, 5)
#: Shape, maximum gap in percent (0: proved optimal), wall-clock limit in seconds.
CLASSES: tuple[tuple[tuple[int, ...], float, float], ...] = (
    ((4, 4), 0.0, 60),
    ((10, 10), 0.0, 60),
    ((15, 15), 0.0, 60),
    ((5, 5, 5), 0.0, 60),
    ((20, 20), 2.0, 60),
    ((25, 25), 2.0, 60),
    ((8, 8, 8), 12.5, 60),
    ((10, 10, 10), 12.5, 60),
    ((10, 10, 20), 8.0, 60),
    ((20, 20, 20), 7.5, 60),
    ((36, 36, 36), 4.0, 60),
    ((220, 220), 0.1, 60),
    ((1000, 1000), 0.05, 120),
    ((100, 100, 100), 3.0, 120),
)
METHODS = (
    "alternate",
    "random",
    "hybrid",
    "hybrid-swaps",
    "scatter-search",
    "learning",
    "local-search",
    "exact",
)
#: Figures of Cox 2005 and of other tools, for comparison.
KNOWN = {
    (25, 25): "learning 9.6 % (Cox 2005, figure 4)",
    (8, 8, 8): "plain MILP in 300 s: 12.5 %",
    (10, 10, 10): "plain MILP in 300 s: 30 %",
    (10, 10, 20): "plain MILP in 300 s: 22.7 %; hybrid 76 minutes (Cox 2005)",
}


def run(quick: bool = False) -> Iterator[Table]:
    """Return the tables: gaps by class, reference files, other kinds, all methods."""
    yield gaps_by_class(CLASSES[:5] if quick else CLASSES, SEEDS[:1] if quick else SEEDS)
    yield from reference_tables()
    yield hierarchical_tables(list(HIERARCHIES)[: 1 if quick else None])
    yield other_kinds((10, 10) if quick else (20, 20), SEEDS[:1] if quick else SEEDS[:3])
    if not quick:
        yield against_plain_program((10, 10, 20), SEEDS[:3], 300.0)
    for shape in ((10, 10),) if quick else ((15, 15), (25, 25), (8, 8, 8), (10, 10, 20)):
        yield methods_side_by_side((shape,), SEEDS[:1] if quick else SEEDS)


def gaps_by_class(
    classes: tuple[tuple[tuple[int, ...], float, float], ...], seeds: tuple[int, ...], mode: str = "exact"
) -> Table:
    """Return the median gap of each class of random tables within its time limit."""
    rows: list[tuple[object, ...]] = []
    for shape, target, limit in classes:
        runs = [timed(random_table(shape, seed), mode, "auto", "standard", limit) for seed in seeds]
        answers = [answer for answer, _ in runs]
        rows.append(
            (
                _name(shape),
                _median(100 * a.gap for a in answers),
                target if target else "optimal",
                f"{sum(a.optimal for a in answers)} of {len(answers)}",
                _median(100 * a.excess / a.unavoidable for a in answers),
                _median(seconds for _, seconds in runs),
                answers[0].bound_kind,
                KNOWN.get(shape),
            )
        )
        done(_name(shape), sum(seconds for _, seconds in runs))
    return Table(
        "Random tables, unit costs, default effort",
        ("table", "gap %", "to reach %", "proved optimal", "excess %", "CPU s", "bound", "known"),
        rows,
        "20 % up or down exactly, 30 % sensitive, 10 % zeros (Cox 2005, section 3).",
    )


def methods_side_by_side(shapes: tuple[tuple[int, ...], ...], seeds: tuple[int, ...]) -> Table:
    """Compare every named method on the same tables with the best lower bound that any of them proved."""
    rows: list[tuple[object, ...]] = []
    for shape in shapes:
        tables = [random_table(shape, seed) for seed in seeds]
        runs = {}
        for method in METHODS:
            runs[method] = [attempt(table, method) for table in tables]
            done(f"{_name(shape)}, {method}", sum(run[1] for run in runs[method] if run))
        bounds = [max(r[i][0].lower_bound for r in runs.values() if r[i]) for i in range(len(tables))]
        for method in METHODS:
            solved = [i for i, run in enumerate(runs[method]) if run]
            beside = [i for i in solved if runs["hybrid-swaps"][i]]
            excess = {m: {i: runs[m][i][0].excess for i in beside} for m in (method, "hybrid-swaps")}
            rows.append(
                (
                    _name(shape),
                    method,
                    f"{len(solved)} of {len(tables)}",
                    _median(100 * (runs[method][i][0].objective / bounds[i] - 1) for i in solved),
                    _median(100 * runs[method][i][0].excess / runs[method][i][0].unavoidable for i in solved),
                    _median(
                        excess[method][i] / excess["hybrid-swaps"][i] if excess["hybrid-swaps"][i] else 1.0
                        for i in beside
                    ),
                    _median(runs[method][i][1] for i in solved),
                )
            )
    return Table(
        "Methods side by side, effort standard, 60 s",
        ("table", "method", "answers", "gap %", "excess %", "excess / hybrid-swaps", "CPU s"),
        rows,
        "Cox 2005: hybrid with swaps is about 10 % better than hybrid; at 25x25 learning stays within 9.6 %.",
    )


def against_plain_program(shape: tuple[int, ...], seeds: tuple[int, ...], limit: float) -> Table:
    """Compare the integer program of the paper, solved without changes, with our search in the same time.

    Both gaps are relative to our lower bound, which is the tighter one.
    """
    rows: list[tuple[object, ...]] = []
    for seed in seeds:
        table = random_table(shape, seed)
        ours, seconds = timed(table, "exact", "auto", "standard", 60)
        problem = Problem.from_table(table, "exact")
        start = time.process_time()
        plain = solve(base_model(problem).program, Limits(seconds=limit))
        spent = time.process_time() - start
        cost = None if plain.objective is None else plain.objective * problem.objective_unit
        rows.append(
            (
                _name(shape),
                seed,
                100 * ours.gap,
                seconds,
                None if cost is None else 100 * (cost / ours.lower_bound - 1),
                100 * (plain.bound * problem.objective_unit / ours.lower_bound - 1),
                spent,
            )
        )
        done(f"plain program, {_name(shape)}, seed {seed}", seconds + spent)
    return Table(
        f"Against the plain integer program, HiGHS for {limit:.0f} s",
        ("table", "seed", "ours, gap %", "CPU s", "plain, gap %", "its bound to ours, %", "CPU s "),
        rows,
    )


def other_kinds(shape: tuple[int, ...], seeds: tuple[int, ...]) -> Table:
    """Vary the share of sensitive cells, costs, fixed margins, capacities and skewness."""
    kinds: dict[str, dict[str, Any]] = {
        "10 % sensitive": {"sensitive": 0.1},
        "50 % sensitive": {"sensitive": 0.5},
        "costs 1/x": {"inverse": True},
        "fixed margins": {"fixed_margins": True},
        "capacities of 10 %": {"room": 10.0},
        "lognormal": {"lognormal": True},
    }
    rows: list[tuple[object, ...]] = []
    for kind, options in kinds.items():
        runs = [
            timed(random_table(shape, seed, **options), "exact", "auto", "standard", 60) for seed in seeds
        ]
        rows.append(
            (
                f"{_name(shape)}, {kind}",
                _median(100 * a.gap for a, _ in runs),
                _median(100 * a.excess / a.unavoidable for a, _ in runs),
                _median(seconds for _, seconds in runs),
            )
        )
    return Table("Other kinds of tables, effort standard", ("table", "gap %", "excess %", "CPU s"), rows)


def reference_tables() -> list[Table]:
    """Adjust hierarchical tables of the reference files, if these are available."""
    rows: list[tuple[object, ...]] = []
    survey = "business_survey.csv"
    builders: list[tuple[str, str, Callable[[], CellTable]]] = [
        (survey, f"survey: {name}", partial(survey_table, name)) for name in SURVEY_TABLES
    ]
    builders.append(("turnover_activity_size.csv", "turnover: activity x size", turnover_table))
    for file, name, build in builders:
        if not (REFERENCE_FOLDER / file).is_file():
            continue
        table = build()
        answer, seconds = timed(table, "at-least", "auto", "standard", 60)
        rows.append((*_size_and_gap(name, table, answer), seconds))
        done(name, seconds)
    if not rows:
        return []
    columns = ("table", "cells", "lines", "sensitive", "gap %", "bound", "CPU s")
    return [Table("Hierarchical tables of reference files, mode at-least", columns, rows)]


def _size_and_gap(name: str, table: CellTable, answer: Adjustment) -> tuple[object, ...]:
    """Return the description of a table, and the gap of its solution."""
    sensitive = int(table.sensitive.sum())
    return name, table.cells, table.constraints, sensitive, 100 * answer.gap, answer.bound_kind


def hierarchical_tables(names: Iterable[str]) -> Table:
    """Return gap, bound and time of the generated tables of `HIERARCHIES` at the default effort."""
    rows: list[tuple[object, ...]] = []
    for name in names:
        branchings, occupied = HIERARCHIES[name]
        table = hierarchical_table(branchings, 1, occupied=occupied)
        answer, seconds = timed(table, "at-least", "auto", "standard", None)
        rows.append((*_size_and_gap(name, table, answer), answer.objective, answer.lower_bound, seconds))
        done(name, seconds)
    columns = ("table", "cells", "lines", "sensitive", "gap %", "bound", "objective", "lower bound", "CPU s")
    return Table("Generated hierarchical tables, 5 % sensitive, mode at-least, no time limit", columns, rows)


def _median(numbers: Iterable[float]) -> float | None:
    values = list(numbers)
    return float(np.median(values)) if values else None


def _name(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))
