"""View of a table: a grid with marked sensitive cells, the rules, and a comparison of methods."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from microguard.pipelines.evidence.plots import MOST_BARS
from microguard.pipelines.evidence.table_plots import method_plot
from microguard.pipelines.workbench.commands import Finished
from microguard.pipelines.workbench.table_preview import TablePreview
from microguard.pipelines.workbench.widgets import (
    box,
    button,
    entry,
    number_of,
    picture,
    plain_number,
    select,
    sentence,
    set_value,
    table,
    text,
)
from microguard.pipelines.workbench.workbench import Workbench
from microguard.schemas.method_registry import BUILT_IN

RULES = {
    "minimum_frequency": "fewest contributors of a safe cell (default: k)",
    "p_percent": "p %: a contributor can be estimated to within p percent",
    "safety_range": "level of cells with too few contributors, in percent",
}
METHODS = {name: name.replace("_", " ") for name, row in BUILT_IN.items() if row.content == "table"}
MOST_ROWS, MOST_COLUMNS = 200, 40
"""Maximum number of codes that the grid shows, including totals."""
MOST_LISTED = 100
"""Maximum number of sensitive cells that are listed."""
SHARES = {
    "suppressed": "without a value",
    "changed": "with another value",
    "error": "mean error",
    "largest_error": "largest error",
    "value_error": "error of all values",
}
COUNTS = {"open_lines": "totals that do not add up", "given_away": "cells given away"}


class TableView:
    """Fields for rules and method, a grid of two dimensions, and the contributors who learn a value."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._fields: dict[str, Any] = {}
        self._shown: Any = None
        self._compared: Any = None
        self._slice: dict[str, str] = {}

    def build_rules(self) -> None:
        """Create the fields of rules, levels and method."""
        with box("div", "row settings"):
            with box("label"):
                text("span", "method")
                self._fields["method"] = select(
                    "method", METHODS, self._value("method"), lambda value: self._set("method", value)
                )
            for name, label in RULES.items():
                with box("label"):
                    text("span", label)
                    self._fields[name] = entry(
                        label, self._value(name), partial(self._number, name), "short",
                        inputmode="decimal",
                    )  # fmt: skip
            with box("label"):
                text("span", "dominance: n, percent")
                self._fields["dominance"] = entry(
                    "dominance, n and percent: the n largest contributors have more than it, such as 1, 85",
                    self._value("dominance"),
                    self._dominance,
                    "short",
                )

    def build_cells(self) -> None:
        """Create the containers of the grid of cells."""
        self._state = text("p", "", "soft", role="status")
        self._choices = box("div", "row")
        self._grid = box("div")
        self._list = box("div")

    def build_methods(self) -> None:
        """Create the container of the comparison of methods."""
        self._methods = box("div")

    def sync(self) -> None:
        """Show the current rules and cells."""
        for name, field in self._fields.items():
            set_value(field, self._value(name))
        workbench, found = self._workbench, self._workbench.preview
        old = (
            ("The cells below describe the specification before the last change: ")
            if found is not None
            else ""
        )
        fault = workbench.fault and f"{old}{workbench.fault}"
        self._state.set_text(fault or ("Measuring ..." if workbench.measuring else self._summary(found)))
        self._state.classes(replace="fault" if workbench.fault else "soft")
        if found is not None and found is not self._shown:
            self._shown = found
            self._show_choices(found)
            self._show(found)
        self._sync_methods()

    def _sync_methods(self) -> None:
        """Show the comparison of methods if it was made with the current specification."""
        result = self._workbench.finished.get("compare")
        if result is not self._compared:
            self._compared = result
            self._methods.clear()
            if result is not None and not result.outdated and result.content.get("methods"):
                asyncio.get_running_loop().create_task(self._show_methods(result))

    def _value(self, name: str) -> str:
        value = self._workbench.text.content().get("table", {}).get(name)
        if name == "method":
            return str(value or "adjustment")
        if name == "dominance" and value:
            rules = value if isinstance(value, list) else [value]
            return "; ".join(f"{rule['n']}, {plain_number(rule['k'])}" for rule in rules)
        return "" if value is None else plain_number(value)

    def _set(self, name: str, value: Any) -> None:
        self._workbench.set(f"{name}: {value or 'none'}", (("table", name), value))

    def _number(self, name: str, value: str) -> None:
        try:
            given = number_of(value) if value.strip() else None
        except ValueError:
            self._workbench.changed(f"{RULES[name]}: expected a number.")
            return
        self._set(name, given)

    def _dominance(self, value: str) -> None:
        try:
            pairs = [part.split(",") for part in value.split(";") if part.strip()]
            rules = [{"n": int(n), "k": number_of(k)} for n, k in pairs]
        except ValueError:
            self._workbench.changed("dominance: expected two numbers, such as 1, 85.")
            return
        self._set("dominance", (rules[0] if len(rules) == 1 else rules) if rules else None)

    def _summary(self, found: TablePreview | None) -> str:
        if found is None:
            return ""
        return (
            f"{len(found.values):,} cells, {int(found.sensitive.sum()):,} of them sensitive: counted on the "
            "whole file."
        )

    def _show_choices(self, found: TablePreview) -> None:
        """Offer a choice of a code for each dimension beyond two, because the grid shows two dimensions."""
        self._choices.clear()
        further = found.dimensions[2:]
        self._slice = {name: self._slice.get(name, found.total) for name in further}
        with self._choices:
            for name in further:
                codes = list(dict.fromkeys([found.total, *found.labels[name]]))
                with box("label"):
                    text("span", name)
                    select(f"code of {name}", codes, self._slice[name], partial(self._choose, name))

    def _choose(self, name: str, code: str) -> None:
        self._slice[name] = code
        self._show(self._shown)

    def _show(self, found: TablePreview) -> None:
        inside = np.ones(len(found.values), bool)
        for name, code in self._slice.items():
            inside &= (found.labels[name] == code).to_numpy()
        self._grid.clear()
        with self._grid:
            self._show_grid(found, np.flatnonzero(inside))
        self._list.clear()
        with self._list:
            text("h3", "Information that contributors could learn from the sensitive cells")
            cells = np.flatnonzero(found.sensitive)
            rows = [
                [
                    " / ".join(found.labels.iloc[cell]),
                    number(found.values[cell], found.digits),
                    found.learned(int(cell)),
                ]
                for cell in cells[:MOST_LISTED]
            ]
            table("Sensitive cells", ("cell", "value", "who learns what"), rows, numbers=(1,))
            if len(cells) > MOST_LISTED:
                text("p", f"The first {MOST_LISTED} of {len(cells):,} are listed.", "soft")
            for note in found.notes:
                text("p", note, "soft")

    def _show_grid(self, found: TablePreview, cells: np.ndarray) -> None:
        """Show the cells of a slice; a sign marks sensitive cells for users who do not see colours."""
        first = found.dimensions[0]
        second = found.dimensions[1] if len(found.dimensions) > 1 else None
        labels = found.labels.iloc[cells]
        rows, more_rows = _first(labels[first], found.total, MOST_ROWS)
        columns, more_columns = (
            ([found.total], 0) if second is None else _first(labels[second], found.total, MOST_COLUMNS)
        )
        places = {
            (row, found.total if second is None else column): cell
            for cell, row, column in zip(
                cells, labels[first], labels[first if second is None else second], strict=True
            )
        }
        name = f"cells by {first}" + (f" and {second}" if second else "")
        with box("div", "scroll", tabindex="0", role="group", aria_label=name), box("table", "grid"):
            text("caption", f"{sentence(name)}; ▲ is a sensitive cell")
            with box("thead"), box("tr"):
                for head in (first, *columns):
                    text("th", head, scope="col")
            with box("tbody"):
                for row in rows:
                    with box("tr"):
                        text("th", row, scope="row")
                        for column in columns:
                            self._cell(found, places.get((row, column)))
        for more, dimension in ((more_rows, first), (more_columns, second)):
            if more:
                text("p", f"{more:,} more codes of {dimension} are not shown.", "soft")

    def _cell(self, found: TablePreview, cell: int | None) -> None:
        if cell is None:
            text("td", "")
        elif found.sensitive[cell]:
            text(
                "td",
                f"▲ {number(found.values[cell], found.digits)}",
                "sensitive",
                title=found.learned(int(cell)),
            )
        else:
            text("td", number(found.values[cell], found.digits))

    async def _show_methods(self, result: Finished) -> None:
        """Show the cost of each method for users of the table, and the number of cells that it discloses."""
        rows: list[dict[str, Any]] = result.content["methods"]
        able = [row for row in rows if not row["reason"]]
        drawn = await asyncio.to_thread(method_plot, able) if 0 < len(able) <= MOST_BARS else ""
        if (
            result is not self._compared or self._methods.is_deleted
        ):  # the specification was changed after the comparison
            return
        with self._methods:
            text("h3", "Comparison of the methods")
            heads = ["method", *SHARES.values(), *COUNTS.values()]
            shown = [
                [
                    METHODS.get(row["method"], row["method"]),
                    *(f"{100 * row[name]:.3g} %" for name in SHARES),
                    *(f"{row[name]:,}" for name in COUNTS),
                ]
                for row in able
            ]
            table("Methods on this table", heads, shown, numbers=range(1, len(heads)))
            with box("div", "row"):
                for row in able:
                    button(
                        f"Use {METHODS.get(row['method'], row['method'])}",
                        partial(self._set, "method", row["method"]),
                    )
            for row in rows:
                if row["reason"]:
                    text("p", f"{METHODS.get(row['method'], row['method'])}: {row['reason']}", "soft")
            if drawn:
                picture(drawn, "Cost of each method for a user of the table, as in the table above")


def _first(labels: Iterable[str], total: str, most: int) -> tuple[list[str], int]:
    """Return the first distinct codes with the total, and the number of codes that are not shown."""
    codes = list(dict.fromkeys(labels))
    first = set([code for code in codes if code != total][: most - 1])
    shown = [code for code in codes if code == total or code in first]
    return shown, len(codes) - len(shown)


def number(value: float, digits: int) -> str:
    """Format a value of a cell."""
    return f"{value:,.{digits}f}"
