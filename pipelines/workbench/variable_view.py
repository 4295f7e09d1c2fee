"""The view of one variable: a plot of its values before and after protection, and its recodes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

from microguard.pipelines.workbench.figures import Preview
from microguard.pipelines.workbench.figures_view import with_error
from microguard.pipelines.workbench.pictures import before_after, loss_picture
from microguard.pipelines.workbench.widgets import (
    box,
    entry,
    number_of,
    picture,
    plain_number,
    select,
    set_value,
    text,
)
from microguard.pipelines.workbench.workbench import Workbench

NUMBERS = {
    "top_code": "largest value that is published",
    "bottom_code": "smallest value that is published",
    "round_to": "round to multiples of",
    "bands": "lower limits of bands, such as 0, 18, 65",
}
"""Recodes of numbers."""
CATEGORIES = {
    "hierarchy": "file with the levels of its codes (CSV, finest first)",
    "level": "level that is published, 1 the finest",
    "order": "categories with ; between them, the lowest first",
}
"""Recodes of categories; the order is that of an ordinal variable."""
MISSING = {"missing": "codes of a missing value, such as 97, 99"}
FIRST_LEVEL = 2
"""Level of a hierarchy that was just named: the first one changes nothing."""


class VariableView:
    """A list of the quasi-identifiers, and the plot and recodes of the chosen one."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._name = ""
        self._drawn: Any = None
        self._fields: dict[str, Any] = {}
        self._names: list[str] = []
        self._built: Any = None

    def build(self) -> None:
        """Create the containers."""
        self._list = box("div", "row")
        self._recodes = box("div", "row settings")
        self._state = text("p", "", "soft")
        self._picture = box("div")
        self._losses = box("div")

    def sync(self) -> None:
        """Show the quasi-identifiers of the current specification."""
        found = self._workbench.preview
        names = [] if found is None else list(found.losses)
        if names != self._names:
            self._names = names
            if self._name not in names:
                self._name = names[0] if names else ""
            self._list.clear()
            if names:
                with self._list, box("label"):
                    text("span", "variable")
                    select("variable", names, self._name, self._choose)
            self._build_recodes()
        old = found is not None and (self._workbench.fault or self._workbench.measuring)
        self._state.set_text("The pictures are of the previous state." if old else "")
        line = self._line()
        if self._built != (self._name, tuple(self._labels(line))):  # the kind of the variable was changed
            self._build_recodes()
        for key, field in self._fields.items():
            set_value(field, self._shown(line, key))
        if found is not None and self._name and self._drawn != (id(found), self._name):
            self._drawn = id(found), self._name
            asyncio.get_running_loop().create_task(self._draw(found, self._name))

    def _choose(self, name: str) -> None:
        self._name = name
        self._build_recodes()
        self.sync()

    def _build_recodes(self) -> None:
        """Create the recode fields for the kind of the variable."""
        line = self._line()
        labels = self._labels(line)
        self._built = self._name, tuple(labels)
        self._recodes.clear()
        self._fields.clear()
        with self._recodes:
            for key, label in labels.items():
                with box("label"):
                    text("span", label)
                    self._fields[key] = entry(
                        f"{self._name}: {label}", self._shown(line, key), partial(self._set, key), "short"
                    )

    def _labels(self, line: Mapping[str, Any]) -> dict[str, str]:
        if not line:
            return {}
        if line.get("kind") == "numeric" or "bands" in line:
            return NUMBERS | MISSING
        names = ("hierarchy", "level", "order") if line.get("kind") == "ordinal" else ("hierarchy", "level")
        return {name: CATEGORIES[name] for name in names} | MISSING

    def _line(self) -> dict[str, Any]:
        return dict(self._workbench.text.content().get("variables", {}).get(self._name, {}))

    def _shown(self, line: Mapping[str, Any], key: str) -> str:
        value = line.get(key)
        if isinstance(value, list):
            return ("; " if key == "order" else ", ").join(map(plain_number, value))
        return "" if value is None else plain_number(value)

    def _set(self, key: str, value: str) -> None:
        """Change one recode; an empty field removes it."""
        try:
            keys = recode_keys(self._line(), key, value)
        except ValueError:
            self._workbench.changed(f"{(NUMBERS | CATEGORIES | MISSING)[key]}: expected a number.")
            return
        name = self._name
        changes = [(("variables", name, each), given) for each, given in keys.items()]
        self._workbench.set(f"{name}: {key} = {value or 'none'}", *changes)

    async def _draw(self, found: Preview, name: str) -> None:
        drawn = await asyncio.to_thread(before_after, found, name)
        losses = await asyncio.to_thread(loss_picture, found)
        if self._drawn != (id(found), name) or self._picture.is_deleted:
            return
        estimate = found.losses[name]
        what = "of its values change" if name in found.names else "of its variance is lost"
        said = f"{name}: {with_error(estimate)} {what}, effort {found.effort}."
        for container, svg, words in (
            (self._picture, drawn, f"{name} before and after protection"),
            (self._losses, losses, "loss by variable"),
        ):
            container.clear()
            with container:
                if container is self._picture:
                    text("p", said)
                picture(svg, f"{words}. {said if container is self._picture else ''}")


def recode_keys(line: Mapping[str, Any], key: str, written: str) -> dict[str, Any]:
    """Return the keys of a variable that change if the user enters a recode; None removes a key.

    Bands turn numbers into categories. A hierarchy also needs the level that is published.

    Raises
    ------
    ValueError
        If a number was expected.
    """
    written = written.strip()
    if key == "hierarchy":
        level = line.get("level", FIRST_LEVEL) if written else None
        return {key: written or None, "level": level}
    if key == "order":
        return {key: [part.strip() for part in written.split(";") if part.strip()] or None}
    parts = [part.strip() for part in written.replace(";", ",").split(",") if part.strip()]
    if key == "missing":
        return {key: list(map(_code, parts)) or None}
    numbers = [number_of(part) for part in parts]
    if key != "bands":
        return {key: numbers[0] if numbers else None}
    others = {other: None for other in NUMBERS if other != key and numbers}
    return {key: numbers or None, "kind": "ordinal" if numbers else "numeric"} | others


def _code(written: str) -> str | float | int:
    """Return a missing code as a number if it is one, else as text."""
    try:
        return number_of(written)
    except ValueError:
        return written
