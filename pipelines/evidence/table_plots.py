"""Plots for the evidence of a protected table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from microguard.pipelines.evidence.plots import ACCENT, AFTER, BEFORE, figure, legend_above, plain_log, svg_of


def change_plot(changes: Sequence[Mapping[str, Any]]) -> str:
    """Plot the relative change of cells by size, and the number of sensitive cells of each size."""
    shown = [row for row in changes if row["cells"]]
    sizes = [(row["from"] * row["to"]) ** 0.5 for row in shown]
    with figure(6.4, 3.6, rows=2) as (drawn, (above, below)):
        above.plot(sizes, [100 * row["largest"] for row in shown], "o-", color=ACCENT, label="largest")
        above.plot(sizes, [100 * row["median"] for row in shown], "o-", color=AFTER, label="median")
        above.set_ylabel("change, percent")
        above.set_yscale("symlog", linthresh=0.1)
        above.set_ylim(bottom=0)
        width = [row["to"] - row["from"] for row in shown]
        left = [row["from"] for row in shown]
        cells = [row["cells"] for row in shown]
        below.bar(left, cells, width, align="edge", color=BEFORE, label="cells")
        sensitive = [row["sensitive"] for row in shown]
        below.bar(left, sensitive, width, align="edge", color=ACCENT, label="sensitive")
        below.set_ylabel("cells")
        below.set_xlabel("size of the cell")
        for axes in (above, below):
            axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0)
            axes.set_xscale("log")
            plain_log(axes.xaxis)
        plain_log(above.yaxis)
        return svg_of(drawn, "relative change of cells by their size, and number of sensitive cells")


def attacker_plot(widths: Sequence[float]) -> str:
    """Plot the share of sensitive cells by the width of an attacker's interval, before (zero width) and after
    protection.
    """
    ordered = np.sort(np.array(widths))
    share = np.arange(1, len(ordered) + 1) / len(ordered)
    with figure(6.4, 2.4) as (drawn, axes):
        axes.step(ordered, 100 * share, where="post", color=AFTER, label="after")
        axes.axvline(0, color=BEFORE, linewidth=3, label="before: the value itself")
        axes.axvline(1, color=ACCENT, linewidth=1, label="protection level")
        axes.set_xlabel("interval of an attacker, in protection levels")
        axes.set_ylabel("sensitive cells, percent")
        axes.set_xscale("symlog", linthresh=1)
        axes.set_xlim(left=-0.05)
        plain_log(axes.xaxis)
        legend_above(drawn, axes)
        return svg_of(drawn, "share of sensitive cells by the interval of an attacker")


def history_plot(history: Sequence[Sequence[float]], bound: float) -> str:
    """Plot the gap of each improved table by the number of linear programs solved so far."""
    steps = [row[0] for row in history]
    if bound > 0:
        heights, label = [100 * (row[1] / bound - 1) for row in history], "gap, percent"
    else:
        heights, label = [row[1] for row in history], "objective"
    with figure(6.4, 2.4) as (drawn, axes):
        axes.step(steps, heights, where="post", color=AFTER, marker="o", markersize=3)
        axes.set_xlabel("linear programs solved")
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        return svg_of(drawn, "gap of each better table by linear programs solved")


def method_plot(rows: Sequence[Mapping[str, Any]]) -> str:
    """Plot the cost of each table method for a user of the table: suppressed or changed cells, and errors."""
    names = {
        "suppressed": "cells without a value, %",
        "changed": "cells with another value, %",
        "error": "mean error of a cell, %",
        "value_error": "error of all values, %",
    }
    with figure(6.4, 1.2 * len(names), rows=len(names)) as (drawn, panels):
        for axes, (name, title) in zip(np.atleast_1d(panels), names.items(), strict=True):
            shares = [100 * row[name] for row in rows]
            axes.bar([row["method"].replace("_", " ") for row in rows], shares, 0.5, color=ACCENT)
            axes.set_title(title)
            axes.set_ylim(0, max([*shares, 1e-9]) * 1.1)
        return svg_of(drawn, "cost of each method for a user of the table")
