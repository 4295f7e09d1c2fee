"""Pictures of the workbench, in the style of the evidence page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from microguard.pipelines.evidence.plots import (
    AFTER,
    BEFORE,
    MOST_BARS,
    figure,
    legend_above,
    only_labels,
    svg_of,
)
from microguard.pipelines.workbench.figures import Preview

BINS = 40
TAILS = (0.5, 99.5)
"""Percentiles between which numbers are drawn, because a few extreme values would leave only one
visible bar."""
LONGEST = 24
"""Number of characters of a category's name that are drawn."""


def before_after(found: Preview, name: str) -> str:
    """Plot the values of a variable before and after protection: a histogram, or bars of categories."""
    before, after = found.before[name], found.after[name]
    if name not in found.names:
        return _histograms(before, after, name)
    names = ["missing", *map(str, found.names[name])]
    counts = [np.bincount(codes + 1, minlength=len(names)) for codes in (before, after)]
    order = np.argsort(-counts[0], kind="stable")[:MOST_BARS]
    order = order[(counts[0] + counts[1])[order] > 0]
    with figure(6.4, 0.9 + 0.3 * len(order)) as (drawn, axes):
        place = np.arange(len(order))
        for shift, values, colour, label in (
            (-0.2, counts[0], BEFORE, "before"),
            (0.2, counts[1], AFTER, "after"),
        ):
            shares = 100 * values[order] / max(len(before), 1)
            bars = axes.barh(place + shift, shares, 0.38, color=colour, label=label)
            axes.bar_label(bars, [f"{share:.3g} %" for share in shares], padding=3)
        axes.set_yticks(place, [_short(names[code]) for code in order])
        axes.invert_yaxis()
        only_labels(axes)
        legend_above(drawn, axes)
        return svg_of(drawn, f"categories of {name} before and after")


def _histograms(before: np.ndarray, after: np.ndarray, name: str) -> str:
    known = before[np.isfinite(before)]
    low, high = np.percentile(known, TAILS) if len(known) else (0.0, 1.0)
    edges = np.linspace(low, high if high > low else low + 1.0, BINS + 1)
    with figure(6.4, 2.6) as (drawn, axes):
        for values, colour, label, fill in ((before, BEFORE, "before", True), (after, AFTER, "after", False)):
            shares = 100 * np.histogram(values[np.isfinite(values)], edges)[0] / max(len(before), 1)
            axes.stairs(shares, edges, fill=fill, color=colour, label=label, linewidth=1.6)
        axes.set_xlabel(_short(name))
        axes.set_ylabel("records, percent")
        legend_above(drawn, axes)
        return svg_of(drawn, f"distribution of {name} before and after")


def loss_picture(found: Preview) -> str:
    """Plot the loss of each variable with its error."""
    names = sorted(found.losses, key=lambda name: -found.losses[name].value)[:MOST_BARS]
    with figure(6.4, 0.9 + 0.3 * len(names)) as (drawn, axes):
        lost = [100 * found.losses[name].value for name in names]
        errors = [100 * found.losses[name].error for name in names]
        bars = axes.barh(range(len(names)), lost, xerr=errors, color=AFTER, ecolor="#23283a", capsize=3)
        axes.bar_label(bars, [f"{value:.3g}" for value in lost], padding=3)
        axes.set_yticks(range(len(names)), [_short(name) for name in names])
        axes.invert_yaxis()
        only_labels(axes)
        axes.set_xlabel("percent of the variance, or of the values of a category")
        return svg_of(drawn, "loss by variable, with its error")


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def history_picture(rows: Sequence[Mapping[str, Any]], counted: Sequence[str]) -> str:
    """Plot the counts of each release of a source, oldest first."""
    place = range(len(rows))
    with figure(6.4, 0.9 + 1.1 * len(counted), rows=len(counted)) as (drawn, panels):
        for axes, name in zip(np.atleast_1d(panels), counted, strict=True):
            values = [np.nan if row[name] is None else float(row[name]) for row in rows]
            axes.plot(place, values, marker="o", color=AFTER)
            axes.set_title(name)
            axes.set_ylim(0, 1.15 * max([*np.nan_to_num(values), 1e-9]))
            axes.set_xticks(place, [str(row["period"] or row["release"][:8]) for row in rows])
        return svg_of(drawn, "counts of each release, oldest first")
