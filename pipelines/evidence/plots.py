"""Plots of a release's evidence, as SVG texts to embed in a page."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import escape

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Module that draws plots; it is prefetched, because its import takes a second.
DRAWS = "matplotlib.backends.backend_svg"
BEFORE, AFTER, ACCENT = "#b3b8c4", "#1f6f8b", "#c8553d"
#: Colours and markers of lines. If there are more lines than colours, markers distinguish them.
PALETTE, MARKERS = (AFTER, ACCENT, "#6a4c93", "#5f7f3f"), ("o", "s", "^", "D")
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "svg.fonttype": "none",
    "text.parse_math": False,  # a name may contain dollar signs, which would start a formula
    "svg.hashsalt": "microguard",
    # shows tick labels 4580 and 4600 instead of 0 and 20 with the offset 4.58e3
    "axes.formatter.useoffset": False,
    "axes.formatter.limits": (-5, 9),
}
MILLION = 1e6
#: Width of a plot, height of one of its bars, and width of a character, in points.
_WIDTH, _BAR, _CHARACTER = 460.8, 18.7, 5.0
#: Maximum number of bars for which a plot is readable.
MOST_BARS = 40


def risk_plot(before: Any, after: Any, k: int) -> str:
    """Plot records below k, unique records and classes below k, before and after protection."""
    keys = {"records_below_k": f"records below k = {k}", "uniques": "unique records",
            "classes_below_k": f"combinations below k = {k}"}  # fmt: skip
    with figure(6.4, 2.0) as (drawn, axes):
        place = np.arange(len(keys))
        for shift, risk, colour, label in ((-0.2, before, BEFORE, "before"), (0.2, after, AFTER, "after")):
            counts = [getattr(risk, key) for key in keys]
            bars = axes.barh(place + shift, counts, 0.38, color=colour, label=label)
            axes.bar_label(bars, [plain(count) for count in counts], padding=3)
        axes.set_yticks(place, list(keys.values()))
        axes.invert_yaxis()
        only_labels(axes)
        legend_above(drawn, axes)
        return svg_of(drawn, "records and combinations below k, before and after")


def loss_plot(by_variable: Mapping[str, float]) -> str:
    """Plot the share of the variation of each variable that clustering removed, in percent."""
    names = list(by_variable)[:MOST_BARS]
    with figure(6.4, 0.8 + 0.26 * len(names)) as (drawn, axes):
        lost = [100 * by_variable[name] for name in names]
        axes.bar_label(axes.barh(names, lost, color=AFTER), [f"{value:.3g}" for value in lost], padding=3)
        axes.invert_yaxis()
        only_labels(axes)
        axes.set_xlabel("information loss, percent of the variable's SST")
        return svg_of(drawn, "information loss by variable")


def spread_plot(moments: Mapping[str, Any]) -> str:
    """Plot the ratio of standard deviations after and before protection; 1 means unchanged."""
    names = list(moments)[:MOST_BARS]
    ratio = [
        (moments[name].variance_after / moments[name].variance_before) ** 0.5
        if moments[name].variance_before > 0
        else 1.0
        for name in names
    ]
    with figure(6.4, 0.8 + 0.26 * len(names)) as (drawn, axes):
        bars = axes.barh(names, ratio, color=AFTER)
        axes.bar_label(bars, [f"{value:.3g}" for value in ratio], label_type="center", color="white")
        only_labels(axes)
        axes.axvline(1, color=ACCENT, linewidth=1)
        axes.invert_yaxis()
        axes.set_xlabel("standard deviation after / before")
        return svg_of(drawn, "standard deviation after protection over the one before, by variable")


def correlation_plot(
    before: Sequence[Sequence[float | None]], after: Sequence[Sequence[float | None]]
) -> str:
    """Plot the correlation of each pair before and after protection; points on the line are unchanged."""
    first, second = np.array(before, float), np.array(after, float)
    pairs = np.triu_indices(len(first), 1)
    with figure(3.6, 3.4) as (drawn, axes):
        axes.plot([-1, 1], [-1, 1], color=BEFORE, linewidth=1)
        axes.scatter(first[pairs], second[pairs], s=14, color=AFTER, alpha=0.7)
        axes.set_xlabel("correlation before")
        axes.set_ylabel("correlation after")
        return svg_of(drawn, "correlations before and after")


def error_plot(errors_by_dimension: Mapping[str, Mapping[str, int]]) -> str:
    """Plot the number of cells of the control tables by absolute error, one line for each dimension."""
    with figure(6.4, 2.6) as (drawn, axes):
        for position, dimension in enumerate(sorted(errors_by_dimension, key=int)):
            counted = {int(float(key)): value for key, value in errors_by_dimension[dimension].items()}
            sizes = sorted(counted)
            axes.plot(
                sizes,
                [counted[size] for size in sizes],
                marker="o",
                markersize=3,
                linewidth=1,
                color=PALETTE[position % len(PALETTE)],
                label=f"dimension {dimension}",
            )
        axes.set_yscale("symlog")
        plain_log(axes.yaxis)
        _only_whole(axes.xaxis)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("absolute error of a cell")
        axes.set_ylabel("cells")
        legend_above(drawn, axes)
        return svg_of(drawn, "cells of the control tables by absolute error")


def histogram_plot(panels: Mapping[str, tuple[Sequence[float], Sequence[int]]]) -> str:
    """Plot a histogram for each named panel, given (bins + 1,) edges and (bins,) counts of blocks."""
    with figure(2.6 * len(panels), 2.3, columns=len(panels)) as (drawn, panel):
        axes = np.atleast_1d(panel)
        for axis, (label, (edges, counts)) in zip(axes, panels.items(), strict=True):
            axis.stairs(counts, edges, fill=True, color=AFTER)
            axis.set_xlabel(label)
            _only_whole(axis.yaxis)
        axes[0].set_ylabel("blocks")
        return svg_of(drawn, "blocks by records, seconds and gap")


def trade_off_plot(rows: Sequence[Mapping[str, Any]]) -> str:
    """Plot information loss and remaining risk of each choice by k, in percent of the variation or of the
    records; markers of rows with an exceeded limit are open.
    """
    names = {
        "information_loss": "information loss: lost variation of the numbers, %",
        "categories_changed": "categories changed, %",
        "unique_jointly": "unique jointly: records unique with all published columns, %",
        "homogeneous": "homogeneous: records in classes with one sensitive value, %",
    }
    shown = [name for name in names if any(row[name] is not None for row in rows)]
    choices = list(dict.fromkeys(row["choice"] for row in rows))
    with figure(6.4, 0.8 + 1.5 * len(shown), len(shown)) as (drawn, panels):
        for axes, name in zip(np.atleast_1d(panels), shown, strict=True):
            for position, choice in enumerate(choices):
                of_choice = [row for row in rows if row["choice"] == choice and row[name] is not None]
                marker = MARKERS[position // len(PALETTE) % len(MARKERS)]
                colour = PALETTE[position % len(PALETTE)]
                shares = [100 * row[name] for row in of_choice]
                axes.plot([row["k"] for row in of_choice], shares, marker=marker, color=colour, label=choice)
                beyond = [row for row in of_choice if row.get("broken")]
                axes.plot(
                    [row["k"] for row in beyond],
                    [100 * row[name] for row in beyond],
                    marker=marker, color=colour, markerfacecolor="white", linestyle="none",
                )  # fmt: skip
            axes.set_title(names[name])
            highest = max(100 * row[name] for row in rows if row[name] is not None)
            axes.set_ylim(0, 1.15 * highest or 1.0)  # space for the highest markers
            axes.set_xticks(sorted({row["k"] for row in rows}))
        open_ones = any(row.get("broken") for row in rows)
        axes.set_xlabel("k (open marker: a limit is exceeded)" if open_ones else "k")
        if len(choices) > 1:
            handles, labels = axes.get_legend_handles_labels()
            drawn.legend(handles, labels, loc="outside upper left", frameon=False)
        return svg_of(drawn, "information loss and remaining risk of each choice, by k")


def stage_plot(seconds: Mapping[str, float]) -> str:
    """Plot the seconds of each stage.

    Every report has this plot, also those of updates without any other one. It is therefore written without
    matplotlib, which takes 0.1 CPU seconds per plot and 0.5 for its import.
    """
    left = min(_CHARACTER * max(map(len, seconds)), _WIDTH / 2)
    scale = (_WIDTH - left - _CHARACTER * len(" 12345 s")) / (max(seconds.values()) or 1.0)
    height = _BAR * len(seconds)
    bars = "".join(
        f'<text x="{left:.1f}" y="{(row + 0.7) * _BAR:.1f}" text-anchor="end">{escape(name)}</text>'
        f'<rect x="{left + 4:.1f}" y="{(row + 0.1) * _BAR:.1f}" width="{scale * value:.1f}" '
        f'height="{0.8 * _BAR:.1f}" fill="{BEFORE}"/>'
        f'<text x="{left + 8 + scale * value:.1f}" y="{(row + 0.7) * _BAR:.1f}">{value:.3g} s</text>'
        for row, (name, value) in enumerate(seconds.items())
    )
    return (
        f'<svg role="img" aria-label="seconds by stage" viewBox="0 0 {_WIDTH:g} {height:g}" '
        f'width="{_WIDTH:g}pt" height="{height:g}pt" font-family="sans-serif" font-size="9">{bars}</svg>'
    )


#: Lock that is held while a figure is drawn, because all threads share one style of matplotlib.
_DRAWING = threading.RLock()


@contextmanager
def figure(width: float, height: float, rows: int = 1, columns: int = 1) -> Iterator[tuple[Figure, Any]]:
    """Create a figure with one pair of axes, or with one for each row (common x axis) or column."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with _DRAWING, mpl.rc_context(_STYLE):
        drawn = Figure(figsize=(width, height), layout="constrained")
        yield drawn, drawn.subplots(rows, columns, sharex="col")


def svg_of(drawn: Figure, label: str) -> str:
    """Return the figure as an SVG text; `label` describes it for screen readers."""
    text = io.StringIO()
    drawn.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    return svg[svg.index("<svg") :].replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)


def plain_log(axis: Any) -> None:
    """Label a logarithmic axis with plain numbers at its major ticks only."""
    axis.set_major_formatter(lambda value, _: plain(value))
    axis.set_minor_formatter("")


def _only_whole(axis: Any) -> None:
    """Set axis ticks at integers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))


def plain(value: float) -> str:
    """Format a number without exponent and with separated thousands; from one million on, in millions."""
    if abs(value) >= MILLION:
        return f"{plain(value / MILLION) if value % MILLION == 0 else format(value / MILLION, '.3g')} M"
    return f"{value:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}") if abs(value) >= 1 else f"{value:g}"


def only_labels(axes: Any) -> None:
    """Remove the scale of labelled bars, and add space for the longest label."""
    axes.xaxis.set_ticks([])
    axes.spines["bottom"].set_visible(False)
    axes.margins(x=0.15)


def legend_above(drawn: Figure, axes: Any) -> None:
    """Draw the legend above the axes, so that it covers no data."""
    handles, labels = axes.get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside upper left", ncols=len(labels), frameon=False)
