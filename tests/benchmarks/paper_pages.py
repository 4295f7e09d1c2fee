"""Write pages of the manual with the tables and plots of a paper, each once it is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from microguard.pipelines.evidence.plots import ACCENT, AFTER, BEFORE, MARKERS, PALETTE, figure, svg_of

from tests.benchmarks.misses import Misses
from tests.benchmarks.parts import RESULTS
from tests.benchmarks.table import Table, measured_by

DOCS = Path(__file__).parents[2] / "docs/benchmarks"
#: Draw the plot of a table, as an SVG text with a description.
Plot = Callable[[str], str]


@dataclass(frozen=True)
class Measured:
    """A table, and its plot, if there is one."""

    table: Table
    plot: Plot | None = None


@dataclass(frozen=True)
class Section:
    """A table of a page that is not measured yet.

    Attributes
    ----------
    title : str
        Numbers of its tables and figures in the paper.
    measure : callable
        Return the table. Failed assertions in `misses` become part of its note.
    """

    title: str
    measure: Callable[[], Measured]

    def run(self, misses: Misses) -> Measured:
        """Measure the table. An error becomes the only row of the table, and is a miss."""
        before = len(misses.found)
        try:
            measured = self.measure()
        # this also covers data that are unavailable on this machine
        except (Exception, pytest.skip.Exception) as error:
            reason = f"{type(error).__name__}: {error}"
            misses.unless(False, f"{self.title}: {reason}")
            return Measured(Table(self.title, ("not measured, because of",), [(reason,)]))
        missed = misses.found[before:]
        if not missed:
            return measured
        note = f"{measured.table.note} **Missed:** {'; '.join(missed)}.".strip()
        return replace(measured, table=replace(measured.table, note=note))


@dataclass
class Page:
    """The page of a paper: rewritten whenever a table is added.

    Parameters
    ----------
    name : str
        Name of the page and of its plots, without ending.
    heading, introduction : str
    quick : bool
        A quick run leaves the manual alone and writes to `build/benchmarks`.
    expected : tuple of str
        Titles of all tables in order, so that an unfinished page names those that are missing.
    """

    name: str
    heading: str
    introduction: str
    quick: bool = False
    expected: tuple[str, ...] = ()
    sections: list[str] = field(default_factory=list)

    @property
    def path(self) -> Path:
        return (RESULTS / "pages" if self.quick else DOCS) / f"{self.name}.md"

    def add(self, measured: Measured) -> None:
        """Append a table with its plot, and write the page."""
        table = measured.table
        lines = [
            f"## {table.title}",
            measured_by("papers", self.quick),
            "",
            table.markdown().split("\n\n", 1)[1].strip(),
            "",
        ]
        plots = self.path.parent / "papers"
        plots.mkdir(parents=True, exist_ok=True)
        if measured.plot is not None:
            file = plots / f"{self.name}_{len(self.sections) + 1:02}.svg"
            file.write_text(measured.plot(table.title), encoding="utf-8")
            lines += [f"![{table.title}](papers/{file.name})", ""]
        self.sections.append("\n".join(lines))
        missing = "; ".join(self.expected[len(self.sections) :])
        names = f" Not measured yet: {missing}." if missing else ""
        self._write(f"\n*The measurement was stopped here.{names} The same command continues it.*\n")

    def finish(self) -> None:
        """Write the page without the remark that tables are missing."""
        self._write("")

    def _write(self, end: str) -> None:
        text = f"# {self.heading}\n\n{self.introduction}\n\n" + "\n".join(self.sections) + end
        self.path.write_text(text, encoding="utf-8")


def boxes(panels: Mapping[str, Mapping[str, np.ndarray]], label: str, columns: int = 2) -> Plot:
    """Draw box plots in panels; whiskers as in the thesis, 1.5 times the interquartile range."""

    def draw(title: str) -> str:
        rows = -(-len(panels) // columns)
        most = max(map(len, panels.values()))
        with figure(3.6 * columns, (1.2 + 0.17 * most) * rows, rows, columns) as (drawn, axes):
            every = np.atleast_1d(axes).ravel()
            for place, (name, values) in zip(every, panels.items(), strict=False):
                _draw_boxes(place, values)
                place.invert_yaxis()
                place.set_title(name)
                place.set_ylabel(label)
            for place in every[len(panels) :]:
                place.set_axis_off()
            return svg_of(drawn, title)

    return draw


def curves(
    panels: Mapping[str, Mapping[str, tuple[np.ndarray, np.ndarray]]], across: str, up: str, log: bool = False
) -> Plot:
    """Draw lines of (x, y) in adjacent panels; `log` makes both axes logarithmic."""

    def draw(title: str) -> str:
        with figure(3.6 * len(panels), 2.8, 1, len(panels)) as (drawn, axes):
            for place, (name, lines) in zip(np.atleast_1d(axes).ravel(), panels.items(), strict=True):
                for number, (label, (x, y)) in enumerate(lines.items()):
                    marker, colour = MARKERS[number % len(MARKERS)], PALETTE[number % len(PALETTE)]
                    place.plot(x, y, label=label, marker=marker, markersize=4, color=colour)
                if log:
                    place.set_xscale("log")
                    place.set_yscale("log")
                place.set_title(name)
                place.set_xlabel(across)
                place.set_ylabel(up)
                if len(lines) > 1:
                    place.legend(frameon=False, fontsize=8)
            return svg_of(drawn, title)

    return draw


def _draw_boxes(axes: Any, values: Mapping[str, np.ndarray]) -> None:
    """Draw one box per name; all whiskers, medians and points are one element each, for a small file."""
    rows, low, high, medians, points = [], [], [], [], []
    for row, each in enumerate(values.values()):
        kept = np.asarray(each)[np.isfinite(each)]
        if len(kept) == 0:
            continue
        first, median, third = np.quantile(kept, (0.25, 0.5, 0.75))
        reach = 1.5 * (third - first)
        inside = kept[(kept >= first - reach) & (kept <= third + reach)]
        rows.append(row)
        low.append(inside.min())
        high.append(inside.max())
        medians.append(median)
        points += [(outside, row) for outside in np.unique(kept[(kept < low[-1]) | (kept > high[-1])])]
        axes.barh(row, third - first, 0.6, left=first, color=BEFORE)
    axes.hlines(rows, low, high, color=AFTER, linewidth=0.8)
    axes.plot(medians, rows, "|", color=ACCENT, markersize=8)
    if points:
        axes.plot(*np.array(points).T, ".", color=AFTER, markersize=3)
    axes.set_yticks(range(len(values)), list(values))
