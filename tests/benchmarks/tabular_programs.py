"""Compare random tables with an integer program written from the paper, solved with scipy.

The tables have two or three dimensions, hierarchies or links, counts or magnitudes, values over 1, 6 and 12
orders of magnitude, or preserve mean and slope. The checks are: an objective that is called optimal is the
optimum, bounds are valid, constraints and levels are satisfied exactly in units, and only infeasible tables
are called infeasible.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from microguard.sdc.cta import CellTable, adjust
from microguard.sdc.cta.program.infeasible import NoSolutionFound
from microguard.sdc.cta.table.check import check
from microguard.sdc.cta.table.quality import Quality, kept_mean, kept_slope
from microguard.sdc.cta.table.relations import TOTAL, Dimension, tabulate
from microguard.sdc.errors import ImpossibleProtection
from scipy.optimize import Bounds, LinearConstraint, milp

from tests.benchmarks.table import Table
from tests.benchmarks.tabular.grids import grid_relations

#: Maximum relative difference of two optima, because both solvers stop at their tolerance.
SAME = 1e-5
_LEAVES = ("x1", "x2", "y1", "y2")
_GROUPED = Dimension.from_tree("grouped", {TOTAL: ["x", "y"], "x": ["x1", "x2"], "y": ["y1", "y2"]})
_PLAIN = Dimension.from_tree("plain", {TOTAL: list("123")})
KINDS = ("2-D", "3-D", "linked", "counts", "6 orders", "12 orders", "hierarchical", "kept")


def run(quick: bool = False) -> Iterator[Table]:
    """Compare a thousand tables (quick: 24)."""
    yield against_another_program(24 if quick else 1000)


def against_another_program(count: int, first_seed: int = 0) -> Table:
    """Compare solutions for each kind of table.

    Raises
    ------
    AssertionError
        If a result is wrong.
    """
    tally = {kind: [0, 0, 0, 0] for kind in KINDS}
    for seed in range(first_seed, first_seed + count):
        kind = KINDS[seed % len(KINDS)]
        compared = compare(small_table(kind, seed), seed)
        for position, happened in enumerate(compared):
            tally[kind][position] += happened
    rows: list[tuple[object, ...]] = [(kind, *numbers) for kind, numbers in tally.items()]
    columns = ("tables", "compared", "optimal and equal", "infeasible in both", "no answer, honestly")
    return Table(f"{count} random tables against another integer program", columns, rows)


def compare(table: CellTable, seed: int) -> tuple[int, int, int, int]:
    """Solve one table with both programs, compare the optima, and count."""
    mode = ("exact", "at-least")[seed % 2]
    expected = least_objective(table, mode)
    try:
        answer = adjust(table, mode=mode, algorithm="exact", effort="fast", seed=seed)
    except ImpossibleProtection:
        assert expected is None, f"seed {seed}: reported infeasible, but a solution exists"
        return 1, 0, 1, 0
    except NoSolutionFound:
        return 1, 0, 0, 1
    assert check(table, answer.values, mode).sound
    assert answer.whole
    assert not np.any(table.relations @ answer.values), f"seed {seed}: a constraint is violated"
    moved = np.abs(answer.deviations)[table.sensitive]
    assert np.all(moved >= np.minimum(table.lower_protection, table.upper_protection)[table.sensitive])
    if expected is None:  # scipy's solver has an absolute tolerance; our solution was checked exactly
        return 1, 0, 0, 0
    assert answer.lower_bound <= expected * (1 + SAME), f"seed {seed}: the bound is too high"
    if answer.optimal:
        assert answer.objective <= expected * (1 + SAME) + 1, (
            f"seed {seed}: reported optimal, but a better solution exists"
        )
    return 1, int(answer.optimal), 0, 0


def small_table(kind: str, seed: int) -> CellTable:
    """Draw a table of one kind with integer values and tight or wide capacities."""
    rng = np.random.default_rng(seed)
    if kind == "hierarchical":
        codes = [np.repeat(_LEAVES, 3), np.tile(list("123"), 4)]
        tabulation = tabulate([_GROUPED, _PLAIN], codes)
        amounts = np.rint(80 * 10.0 ** rng.random(12))
        inner = np.isin(tabulation.codes(0), _LEAVES) & (tabulation.codes(1) != TOTAL)
        return _protected(rng, tabulation.totals(codes, amounts), tabulation.relations, inner)
    shape = (3, 3, 2) if kind == "3-D" else (4, 4)
    orders = {"6 orders": 6, "12 orders": 10.5}.get(kind, 1)
    internal = np.rint(80 * 10.0 ** (orders * rng.random(shape)))
    if kind == "counts":
        internal = rng.poisson(4.0, shape) + 1.0
    full = internal
    for axis in range(internal.ndim):
        full = np.concatenate([full, full.sum(axis=axis, keepdims=True)], axis=axis)
    relations = grid_relations(full.shape).toarray()
    values = full.ravel()
    if kind == "linked":  # this constraint is a second breakdown of the grand total
        parts = np.floor(values[-1] * np.array([0.2, 0.3]))
        values = np.concatenate([values, parts, [values[-1] - parts.sum()]])
        line = np.zeros(len(values))
        line[full.size - 1], line[full.size :] = -1, 1
        relations = np.vstack([np.hstack([relations, np.zeros((len(relations), 3))]), line])
    inside = np.ones(full.shape, dtype=bool)
    for axis in range(internal.ndim):
        inside[tuple(-1 if a == axis else slice(None) for a in range(internal.ndim))] = False
    inner = np.zeros(len(values), dtype=bool)
    inner[: full.size] = inside.ravel()
    table = _protected(rng, values, relations, inner)
    if kind != "kept":
        return table
    mean, slope, cells = 0.01 * rng.random(), 0.01 + 0.04 * rng.random(), np.flatnonzero(inner)
    kept = Quality.combine([kept_mean(values, cells, mean), kept_slope(values, cells, slope)])
    return replace(table, quality=kept)


def _protected(rng: np.random.Generator, values: np.ndarray, relations: Any, inner: np.ndarray) -> CellTable:
    """Make a third of the inner cells sensitive with 20 % protection and 10, 40 or 100 % capacity."""
    sensitive = inner & (rng.random(len(values)) < 0.35)
    level = np.maximum(np.ceil(0.2 * values), 1.0)
    room = np.maximum(np.floor(rng.choice([0.1, 0.4, 1.0]) * values), np.where(sensitive, level, 0.0))
    return CellTable(values, relations, sensitive, level, level, room, room)


def least_objective(table: CellTable, mode: str) -> float | None:
    """Return the optimum of Cox 2005 (1)-(4), (7)-(8) by scipy's integer programming; None if infeasible."""
    cells, s = table.cells, np.flatnonzero(table.sensitive)
    size = len(s)
    unit = float(np.median(table.upper_protection[s])) if size else 1.0
    rise, fall = table.upper_capacity / unit, table.lower_capacity / unit
    up, down = table.upper_protection[s] / unit, table.lower_protection[s] / unit
    top_up = up if mode == "exact" else np.maximum(rise[s], up)
    top_down = down if mode == "exact" else np.maximum(fall[s], down)
    pick = np.zeros((size, cells))
    pick[np.arange(size), s] = 1
    none = np.zeros((size, cells))
    matrix = table.relations.toarray()
    rows = [
        LinearConstraint(np.hstack([matrix, -matrix, np.zeros((table.constraints, size))]), 0, 0),
        LinearConstraint(np.hstack([pick, none, -np.diag(up)]), 0, np.inf),
        LinearConstraint(np.hstack([pick, none, -np.diag(top_up)]), -np.inf, 0),
        LinearConstraint(np.hstack([none, pick, np.diag(down)]), down, np.inf),
        LinearConstraint(np.hstack([none, pick, np.diag(top_down)]), -np.inf, top_down),
    ]
    if table.quality is not None:
        sums = table.quality.weights.toarray()
        sums = np.hstack([sums, -sums, np.zeros((len(sums), size))])
        rows.append(LinearConstraint(sums, table.quality.least / unit, table.quality.most / unit))
    bounds = Bounds(np.zeros(2 * cells + size), np.concatenate([rise, fall, np.ones(size)]))
    costs = np.concatenate([table.costs, table.costs, np.zeros(size)])
    integrality = np.concatenate([np.zeros(2 * cells), np.ones(size)])
    answer = milp(
        costs, constraints=rows, bounds=bounds, integrality=integrality, options={"mip_rel_gap": 1e-9}
    )
    return float(answer.fun * unit) if answer.status == 0 else None
