"""The quality constraints that Cox 2005 takes from Cox, Kelly and Patil 2004: mean and slope are preserved.

The adjustment is linear, so mean and slope can be bounded. Variance and correlation follow from the slope and
small deviations (`sdc.cta.table.quality`), and are measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from microguard.sdc.cta.table.quality import Quality, fit, kept_mean, kept_slope

from tests.benchmarks.paper_pages import Measured
from tests.benchmarks.parts import Parts
from tests.benchmarks.table import Table
from tests.benchmarks.tabular.grids import random_table
from tests.benchmarks.tabular.timed import timed

SHAPES = ((10, 10), (15, 15))
KEPT = {"nothing": (), "mean": (kept_mean,), "mean and slope": (kept_mean, kept_slope)}
TOLERANCES = (1e-3, 1e-5)


@dataclass(frozen=True)
class Kept:
    """Cost and gap of an adjustment, and the statistics of its internal cells."""

    objective: float
    gap: float
    mean: float
    slope: float
    correlation: float
    variance: float


def kept_statistics(parts: Parts, seeds: tuple[int, ...]) -> Measured:
    """Compare the cost of a table with and without preservation of mean and slope of its internal cells."""
    rows: list[tuple[object, ...]] = []
    for shape in SHAPES:
        size = "x".join(map(str, shape))
        for what in KEPT:
            for tolerance in TOLERANCES if KEPT[what] else (0.0,):
                name = f"{size}, {what} kept within {tolerance:g}"
                runs = [parts.answer(f"{name} {seed}", partial(adjust_table, shape, seed, what, tolerance))
                        for seed in seeds]  # fmt: skip
                found = [one for one, _ in runs]
                rows.append(
                    (
                        size,
                        what,
                        tolerance or None,
                        _median([one.objective for one in found]),
                        _rounded(100 * _median([one.gap for one in found])),
                        _rounded(max(abs(one.mean - 1) for one in found)),
                        _rounded(max(abs(one.slope - 1) for one in found)),
                        min(one.correlation for one in found),
                        max(abs(one.variance - 1) for one in found),
                        _median([seconds for _, seconds in runs]),
                    )
                )
    columns = (
        "table", "kept", "tolerance", "objective", "gap %", "mean, largest change", "slope, largest change",
        "least correlation", "variance, largest change", "CPU s",
    )  # fmt: skip
    title = "Quality constraints of Cox 2005: mean and slope of the internal cells, mode exact"
    note = "Changes are relative to the original table. The paper has no figures; it cites Cox et al. 2004."
    return Measured(Table(title, columns, rows, note))


def adjust_table(shape: tuple[int, ...], seed: int, what: str, tolerance: float) -> Kept:
    """Adjust one random table with the constraints of `KEPT`."""
    table = random_table(shape, seed)
    positions = np.arange(table.cells).reshape(tuple(n + 1 for n in shape))
    internal, x = positions[:-1, :-1].ravel(), table.values
    if KEPT[what]:
        table = replace(table, quality=Quality.combine([keep(x, internal, tolerance) for keep in KEPT[what]]))
    answer, _ = timed(table, "exact", "auto", "standard", None)
    after = fit(x[internal], answer.values[internal])
    assert after.slope is not None
    assert after.correlation is not None
    assert after.variance_ratio is not None
    if KEPT[what]:
        assert abs(after.mean_after / after.mean_before - 1) <= tolerance + 1e-9
    if kept_slope in KEPT[what]:
        assert abs(after.slope - 1) <= tolerance + 1e-9
    return Kept(
        answer.objective, answer.gap, after.mean_after / after.mean_before, after.slope, after.correlation,
        after.variance_ratio,
    )  # fmt: skip


def _rounded(value: float) -> float:
    """Round to six decimals, because further decimals are solver tolerances."""
    return round(value, 6) + 0.0


def _median(values: list[float]) -> float:
    return float(np.median(values))
