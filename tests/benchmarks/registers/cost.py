"""Cost of a register for its readers: loss, retained records, stale values, and pending updates of units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from tests.benchmarks.parts import RESULTS
from tests.benchmarks.registers.stream import QUASI_IDENTIFIERS, TRACE
from tests.benchmarks.registers.updates import PublishedRegister
from tests.benchmarks.table import Table

#: Updates in the table; the plot has all of them.
SHOWN = (1, 5, 10, 15, 20, 25, 30)


@dataclass(frozen=True)
class PendingTimes:
    """Number of updates between the entrance of units and their first publication.

    Attributes
    ----------
    entrants : int
        Number of units that entered after the first update.
    median, most : float
        Median and 95 % quantile for the published units.
    never : int
        Number of entrants that left before publication, or were pending at the end.
    """

    entrants: int
    median: float
    most: float
    never: int


def losses(series: PublishedRegister) -> list[tuple[float, float]]:
    """Information loss of each update, relative to current values and to the protected values.

    The loss is SSE/SST as the mean over the numeric quasi-identifiers, plus the share of changed nominal
    values, over the published units of the update. The second loss does not include pending corrections.
    """
    rows, seen = [], pd.DataFrame()
    for tonight, done in zip(series.nights, series.done, strict=True):
        published = released(done.release)
        truth = tonight.frame.set_index(TRACE)
        fresh = published.index.difference(seen.index) if series.register else published.index
        seen = pd.concat([seen, truth.loc[truth.index.intersection(fresh)]]) if series.register else truth
        both = published.index.intersection(truth.index)
        rows.append(
            (
                _loss(series.kind, published.loc[both], truth.loc[both]),
                _loss(series.kind, published.loc[both], seen.loc[both]),
            )
        )
    return rows


def released(folder: Path) -> pd.DataFrame:
    """Return the published records by their identifying column."""
    parts = [pq.read_table(part).to_pandas() for part in sorted((folder / "microdata").glob("*.parquet"))]
    return pd.concat(parts).set_index(TRACE)


def _loss(kind: str, published: pd.DataFrame, truth: pd.DataFrame) -> float:
    numeric, changed = [], []
    for name, kind_of_variable in QUASI_IDENTIFIERS[kind].items():
        if kind_of_variable == "numeric":
            values = truth[name].to_numpy(np.float64)
            errors = published[name].to_numpy(np.float64) - values
            numeric.append((errors**2).sum() / ((values - values.mean()) ** 2).sum())
        else:
            changed.append((published[name].to_numpy() != truth[name].to_numpy()).mean())
    return float(np.mean(numeric) if numeric else 0.0) + float(np.mean(changed) if changed else 0.0)


def waits(series: PublishedRegister) -> PendingTimes:
    """Return how long entrants were pending."""
    came: dict[float, int] = {}
    shown: dict[float, int] = {}
    before: Path | None = None
    for night, (tonight, done) in enumerate(zip(series.nights, series.done, strict=True)):
        for trace in tonight.frame[TRACE]:
            came.setdefault(trace, night)
        if done.release != before:
            for trace in released(done.release).index:
                shown.setdefault(trace, night)
        before = done.release
    entrants = [trace for trace, night in came.items() if night]
    nights = np.array([shown[trace] - came[trace] for trace in entrants if trace in shown])
    never = len(entrants) - len(nights)
    return PendingTimes(len(entrants), float(np.median(nights)), float(np.quantile(nights, 0.95)), never)


def waiting(all_series: Sequence[PublishedRegister]) -> Table:
    """Count retained records, stale values and pending units after the last update."""
    rows: list[tuple[object, ...]] = []
    for series in all_series:
        counts, waits_so_far = series.done[-1].counts, waits(series)
        shares = [100 * counts[name] / counts["published"] for name in ("ghosts", "stale")]
        most = max(100 * done.counts["waiting"] / done.counts["units"] for done in series.done)
        rows.append(
            (
                f"{series.kind}, k = {series.k}",
                len(series.nights),
                *shares,
                most,
                waits_so_far.entrants,
                waits_so_far.median,
                waits_so_far.most,
                waits_so_far.never,
            )
        )
    columns = (
        "register",
        "nights",
        "ghosts, % of rows",
        "out of date, % of rows",
        "most waiting, % of units",
    )
    more = ("entrants", "nights waited, median", "95 %", "never published")
    return Table("What a register costs after its last night", (*columns, *more), rows)


def cost(series: PublishedRegister, anew: PublishedRegister) -> Table:
    """Compare the loss of each update with protection again; write a plot."""
    ours, again = losses(series), losses(anew)
    rows: list[tuple[object, ...]] = []
    for night, (tonight, done) in enumerate(zip(series.nights, series.done, strict=True)):
        counts = done.counts
        fresh = again[night][0] if night < len(again) else None
        share = [100 * counts[name] / counts["published"] for name in ("ghosts", "stale", "waiting")]
        percent = None if fresh is None else 100 * fresh
        rows.append(
            (night + 1, tonight.event or "-", percent, 100 * ours[night][1], 100 * ours[night][0], *share)
        )
    columns = ("night", "event", "solved anew: loss, %", "rule: loss, %", "rule: loss with corrections, %")
    plot = _plotted(series, rows)
    return Table(
        f"A register night by night, {series.kind}, k = {series.k}",
        (*columns, "ghosts, %", "out of date, %", "waiting, %"),
        [row for row in rows if row[0] in SHOWN],
        f"All nights: {plot}.",
    )


def _plotted(series: PublishedRegister, rows: Sequence[tuple[object, ...]]) -> Path:
    """Plot loss, retained records, stale values and pending units over the updates, as SVG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    nights = [row[0] for row in rows]
    for place, name in (
        (2, "solved anew"),
        (3, "rule, values as protected"),
        (4, "rule, values of the night"),
    ):
        left.plot(nights, [np.nan if row[place] is None else row[place] for row in rows], label=name)
    for place, name in ((5, "ghosts"), (6, "out of date"), (7, "waiting")):
        right.plot(nights, [row[place] for row in rows], label=name)
    for axes, title in ((left, "information loss, %"), (right, "share of published records, %")):
        axes.set(xlabel="night", title=title)
        axes.legend(frameon=False)
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"series-{series.kind}-{series.k}.svg"
    figure.savefig(path)
    return path
