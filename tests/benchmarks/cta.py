"""Controlled tabular adjustment on the tables of Cox 2005, section 3, and on larger ones.

Every answer passes the independent check before it is reported. Times are CPU seconds of one process;
gap = objective / lower bound - 1; excess = objective / unavoidable part - 1; medians over the seeds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from sdc.cta import Adjustment, CellTable, adjust
from sdc.cta.program.infeasible import NoSolutionFound
from sdc.cta.program.model import base_model
from sdc.cta.program.problem import Problem
from sdc.cta.rules.sensitivity import Sensitivity, capacities, dominance, inverse_costs, minimum_contributors
from sdc.cta.table.check import check
from sdc.cta.table.relations import TOTAL, Dimension, from_cells, tabulate
from sdc.cta.table.summation import Summation
from sdc.solver import Limits, solve
from tests.benchmarks.table import Table
from tests.reference import REFERENCE_FOLDER

SEEDS = (1, 2, 3, 4, 5)
PERCENT = 20.0
#: Shape, gap to reach in percent (0: proved optimal), wall-clock limit in seconds.
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
#: Children of the nodes of each level of each dimension, and the share of combinations with records.
HIERARCHIES: dict[str, tuple[tuple[tuple[int, ...], ...], float]] = {
    "8.6 x 5.9": (((8, 6), (5, 9)), 0.6),
    "8.10 x 10.10": (((8, 10), (10, 10)), 0.6),
    "8.10 x 15.20": (((8, 10), (15, 20)), 0.6),
    "4.5 x 3.3 x 4.2": (((4, 5), (3, 3), (4, 2)), 0.35),
    "6.6 x 4.4 x 5.3": (((6, 6), (4, 4), (5, 3)), 0.35),
    "3.3 x 3 x 3.3 x 3": (((3, 3), (3,), (3, 3), (3,)), 0.35),
}
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
#: Figures of Cox 2005 and of tools, beside ours.
KNOWN = {
    (25, 25): "learning 9.6 % (Cox 2005, figure 4)",
    (8, 8, 8): "plain MILP in 300 s: 12.5 %",
    (10, 10, 10): "plain MILP in 300 s: 30 %",
    (10, 10, 20): "plain MILP in 300 s: 22.7 %; hybrid 76 minutes (Cox 2005)",
}


def random_table(
    shape: tuple[int, ...],
    seed: int,
    *,
    sensitive: float = 0.3,
    zeros: float = 0.1,
    room: float = PERCENT,
    fixed_margins: bool = False,
    lognormal: bool = False,
    inverse: bool = False,
) -> CellTable:
    """Cox 2005, section 3: uniform on 0 to 1000, 10 % zeros, 30 % sensitive, 20 % up or down."""
    rng = np.random.default_rng(seed)
    internal = rng.lognormal(5.0, 1.5, shape) if lognormal else rng.uniform(0, 1000, shape)
    count = internal.size
    internal.flat[rng.permutation(count)[: round(zeros * count)]] = 0
    full = internal
    for axis in range(internal.ndim):
        full = np.concatenate([full, full.sum(axis=axis, keepdims=True)], axis=axis)
    inside = tuple(slice(0, n) for n in shape)
    flags = np.zeros(full.shape, dtype=bool)
    chosen = np.zeros(count, dtype=bool)
    chosen[rng.permutation(count)[: round(sensitive * count)]] = True
    flags[inside] = chosen.reshape(shape)
    level = PERCENT / 100 * full
    capacity = np.where(flags, level, room / 100 * full)
    if fixed_margins:
        margin = np.ones(full.shape, dtype=bool)
        margin[inside] = False
        capacity = np.where(margin, 0.0, capacity)
    values = full.ravel()
    return CellTable(
        values=values,
        relations=_grid_relations(full.shape),
        sensitive=flags.ravel(),
        lower_protection=level.ravel(),
        upper_protection=level.ravel(),
        lower_capacity=capacity.ravel(),
        upper_capacity=capacity.ravel(),
        costs=inverse_costs(values) if inverse else np.ones(len(values)),
    )


def run(quick: bool = False) -> Iterator[Table]:
    """Gaps by class, methods side by side, other kinds of tables, and tables from reference files."""
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
    """Median gap of each class of random tables within its time limit."""
    rows: list[tuple[object, ...]] = []
    for shape, target, limit in classes:
        runs = [_timed(random_table(shape, seed), mode, "auto", "standard", limit) for seed in seeds]
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
    return Table(
        "Random tables, unit costs, default effort",
        ("table", "gap %", "to reach %", "proved optimal", "excess %", "CPU s", "bound", "known"),
        rows,
        "20 % up or down exactly, 30 % sensitive, 10 % zeros (Cox 2005, section 3).",
    )


def methods_side_by_side(shapes: tuple[tuple[int, ...], ...], seeds: tuple[int, ...]) -> Table:
    """Every named method on the same tables, against the best lower bound any of them proved."""
    rows: list[tuple[object, ...]] = []
    for shape in shapes:
        tables = [random_table(shape, seed) for seed in seeds]
        runs = {m: [_attempt(t, m) for t in tables] for m in METHODS}
        bounds = [max(r[i][0].lower_bound for r in runs.values() if r[i]) for i in range(len(tables))]
        for method in METHODS:
            found = [i for i, run in enumerate(runs[method]) if run]
            beside = [i for i in found if runs["hybrid-swaps"][i]]
            excess = {m: {i: runs[m][i][0].excess for i in beside} for m in (method, "hybrid-swaps")}
            rows.append(
                (
                    _name(shape),
                    method,
                    f"{len(found)} of {len(tables)}",
                    _median(100 * (runs[method][i][0].objective / bounds[i] - 1) for i in found),
                    _median(100 * runs[method][i][0].excess / runs[method][i][0].unavoidable for i in found),
                    _median(
                        excess[method][i] / excess["hybrid-swaps"][i] if excess["hybrid-swaps"][i] else 1.0
                        for i in beside
                    ),
                    _median(runs[method][i][1] for i in found),
                )
            )
    return Table(
        "Methods side by side, effort standard, 60 s",
        ("table", "method", "answers", "gap %", "excess %", "excess / hybrid-swaps", "CPU s"),
        rows,
        "Cox 2005: hybrid with swaps is about 10 % better than hybrid; at 25x25 learning stays within 9.6 %.",
    )


def against_plain_program(shape: tuple[int, ...], seeds: tuple[int, ...], limit: float) -> Table:
    """The integer program of the paper handed to the solver as it stands, and ours in its own time.

    Both gaps are to our lower bound, which is the better one.
    """
    rows: list[tuple[object, ...]] = []
    for seed in seeds:
        table = random_table(shape, seed)
        ours, seconds = _timed(table, "exact", "auto", "standard", 60)
        problem = Problem.of(table, "exact")
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
    return Table(
        f"Against the plain integer program, HiGHS for {limit:.0f} s",
        ("table", "seed", "ours, gap %", "CPU s", "plain, gap %", "its bound to ours, %", "CPU s "),
        rows,
    )


def other_kinds(shape: tuple[int, ...], seeds: tuple[int, ...]) -> Table:
    """Shares of sensitive cells, costs, fixed margins, tight capacities and skewed data."""
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
            _timed(random_table(shape, seed, **options), "exact", "auto", "standard", 60) for seed in seeds
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
    """Hierarchical tables of the reference files, where these are here."""
    rows: list[tuple[object, ...]] = []
    builders: tuple[tuple[str, Callable[[], CellTable]], ...] = (
        ("business_survey.csv", survey_table),
        ("turnover_activity_size.csv", turnover_table),
    )
    for name, build in builders:
        if not (REFERENCE_FOLDER / name).is_file():
            continue
        table = build()
        answer, seconds = _timed(table, "at-least", "auto", "standard", 60)
        rows.append(
            (name, table.cells, int(table.sensitive.sum()), 100 * answer.gap, answer.bound_kind, seconds)
        )
    if not rows:
        return []
    columns = ("table", "cells", "sensitive", "gap %", "bound", "CPU s")
    return [Table("Hierarchical tables of reference files, mode at-least", columns, rows)]


def hierarchical_tables(names: Iterable[str]) -> Table:
    """Generated tables of `HIERARCHIES`: gap, bound and time at the default effort, whatever their shape."""
    rows: list[tuple[object, ...]] = []
    for name in names:
        branchings, occupied = HIERARCHIES[name]
        table = hierarchical_table(branchings, 1, occupied=occupied)
        answer, seconds = _timed(table, "at-least", "auto", "standard", None)
        rows.append(
            (
                name,
                table.cells,
                table.lines,
                int(table.sensitive.sum()),
                100 * answer.gap,
                answer.bound_kind,
                answer.objective,
                answer.lower_bound,
                seconds,
            )
        )
    columns = ("table", "cells", "lines", "sensitive", "gap %", "bound", "objective", "lower bound", "CPU s")
    return Table("Generated hierarchical tables, 5 % sensitive, mode at-least, no time limit", columns, rows)


def hierarchical_table(
    branchings: Iterable[tuple[int, ...]], seed: int, *, occupied: float, sensitive: float = 0.05
) -> CellTable:
    """Lognormal cells in a share of the combinations; sensitive ones, rather the small, must move by 20 %
    and may by 30.

    Parameters
    ----------
    branchings : for each dimension how many children the nodes of each level have
    seed : int
    occupied : share of the combinations that records lie in
    """
    rng = np.random.default_rng(seed)
    trees = [_tree(f"d{number}.", branching) for number, branching in enumerate(branchings)]
    shape = tuple(len(dimension.leaves) for dimension in trees)
    there = np.flatnonzero(rng.random(int(np.prod(shape))) < occupied)
    codes = [
        np.array(dimension.codes)[dimension.leaves[place]]
        for dimension, place in zip(trees, np.unravel_index(there, shape), strict=True)
    ]
    tabulation = tabulate(trees, codes)
    values = tabulation.totals(codes, np.rint(10 * rng.lognormal(5.0, 1.5, len(there))) + 20)
    order = np.argsort(rng.exponential(size=len(values)) * np.sqrt(values))
    flags = np.zeros(len(values), dtype=bool)
    flags[order[: round(sensitive * len(values))]] = True
    level = np.where(flags, np.ceil(PERCENT / 100 * values), 0.0)
    room = np.maximum(np.ceil(0.3 * values), level)
    return CellTable(values, tabulation.relations, flags, level, level, room, room)


def _tree(name: str, branching: tuple[int, ...]) -> Dimension:
    children: dict[str, list[str]] = {}
    level = [TOTAL]
    for count in branching:
        for parent in level:
            children[parent] = [f"{name}{parent}.{number}" for number in range(count)]
        level = [child for parent in level for child in children[parent]]
    return Dimension.of_tree(name, children)


def survey_table() -> CellTable:
    """Turnover by activity (three levels) and region (three levels) of the business survey."""
    import pandas as pd

    survey = pd.read_csv(REFERENCE_FOLDER / "business_survey.csv", dtype={"a88": str})
    survey = survey[survey["turnover"].notna()]
    activity = Dimension.of_levels("activity", survey["a10"], survey["a21"], survey["a88"])
    region = Dimension.of_levels("region", survey["nuts1"], survey["nuts2"])
    codes = [activity.written(2, survey["a88"]), region.written(1, survey["nuts2"])]
    tabulation = tabulate([activity, region], codes)
    totals = tabulation.totals(codes, survey["turnover"])
    contributors = tabulation.totals(codes, np.ones(len(survey)))
    return _protected(totals, tabulation.relations, minimum_contributors(contributors, totals, 3, 10))


def turnover_table() -> CellTable:
    """Turnover by activity (three levels in one column) and size, dominance (1, 85) and three businesses."""
    import pandas as pd

    cells = pd.read_csv(REFERENCE_FOLDER / "turnover_activity_size.csv", dtype={"activity": str, "size": str})
    survey = pd.read_csv(REFERENCE_FOLDER / "business_survey.csv", dtype=str)
    parents = survey[["a10", "a21", "a88"]].drop_duplicates()
    children: dict[str, list[str]] = {TOTAL: sorted(parents["a10"].unique())}
    for upper, lower in (("a10", "a21"), ("a21", "a88")):
        for code, group in parents.groupby(upper):
            children.setdefault(str(code), []).extend(sorted(c for c in group[lower].unique() if c != code))
    activity = Dimension.of_tree("activity", children)
    known = cells["activity"].isin(activity.codes)
    cells = cells[known].reset_index(drop=True)
    size = Dimension.of_levels("size", [s for s in cells["size"].unique() if s != TOTAL])
    tabulation, place = from_cells([activity, size], [cells["activity"], cells["size"]])
    totals, largest, numbers = (np.zeros(tabulation.cells) for _ in range(3))
    totals[place], largest[place], numbers[place] = cells["tot"], cells["max"], cells["n_obs"]
    summation = Summation.of(tabulation.relations)
    assert summation is not None
    totals = summation.resum(totals)
    rule = dominance(largest[:, None], totals, 1, 85) | minimum_contributors(numbers, totals, 3, 10)
    return _protected(totals, tabulation.relations, rule)


def _protected(totals: np.ndarray, relations: sparse.csr_matrix, rule: Sensitivity) -> CellTable:
    return CellTable(
        values=totals,
        relations=relations,
        sensitive=rule.sensitive,
        lower_protection=rule.lower,
        upper_protection=rule.upper,
        lower_capacity=capacities(totals, 30, rule.lower),
        upper_capacity=capacities(totals, 30, rule.upper),
    )


def _timed(
    table: CellTable, mode: str, algorithm: str, effort: str, limit: float | None
) -> tuple[Adjustment, float]:
    start = time.process_time()
    answer = adjust(table, mode=mode, algorithm=algorithm, effort=effort, time_limit=limit)
    seconds = time.process_time() - start
    assert check(table, answer.values, mode).sound, "an answer failed the independent check"
    assert answer.lower_bound <= answer.objective * (1 + 1e-9)
    return answer, seconds


def _attempt(table: CellTable, method: str) -> tuple[Adjustment, float] | tuple[()]:
    """An answer and its seconds; nothing where the method found none in a minute."""
    try:
        return _timed(table, "exact", method, "standard", 60)
    except NoSolutionFound:
        return ()


def _grid_relations(full: tuple[int, ...]) -> sparse.csr_matrix:
    """Lines of a grid whose last slot along each axis holds the margin."""
    position = np.arange(int(np.prod(full))).reshape(full)
    rows, columns, entries = [], [], []
    lines = 0
    for axis, size in enumerate(full):
        along = np.moveaxis(position, axis, -1).reshape(-1, size)
        rows.append(np.repeat(lines + np.arange(len(along)), size))
        columns.append(along.ravel())
        entries.append(np.tile(np.append(np.ones(size - 1), -1.0), len(along)))
        lines += len(along)
    return sparse.csr_matrix(
        (np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns))),
        shape=(lines, position.size),
    )


def _median(numbers: Iterable[float]) -> float | None:
    found = list(numbers)
    return float(np.median(found)) if found else None


def _name(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))
