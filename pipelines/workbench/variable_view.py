"""One variable: its values before and after protection as a picture, and its recodes."""

from __future__ import annotations

import asyncio
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

RECODES = {
    "top_code": "largest value that is published",
    "bottom_code": "smallest value that is published",
    "round_to": "round to multiples of",
    "bands": "lower limits of bands, such as 0, 18, 65",
}


class VariableView:
    """A list of the quasi-identifiers; the chosen one with its picture and its recodes."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._name = ""
        self._drawn: Any = None
        self._fields: dict[str, Any] = {}
        self._names: list[str] = []

    def build(self) -> None:
        """Create the containers."""
        self._list = box("div", "row")
        self._recodes = box("div", "row settings")
        self._picture = box("div")
        self._losses = box("div")

    def sync(self) -> None:
        """Show the variables that are protected now."""
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
        for key, field in self._fields.items():
            set_value(field, self._shown(key))
        if found is not None and self._name and self._drawn != (id(found), self._name):
            self._drawn = id(found), self._name
            asyncio.get_running_loop().create_task(self._draw(found, self._name))

    def _choose(self, name: str) -> None:
        self._name = name
        self._build_recodes()
        self.sync()

    def _build_recodes(self) -> None:
        self._recodes.clear()
        self._fields.clear()
        line = self._line()
        if line.get("kind") != "numeric" and "bands" not in line:
            return
        with self._recodes:
            for key, label in RECODES.items():
                with box("label"):
                    text("span", label)
                    self._fields[key] = entry(
                        f"{self._name}: {label}",
                        self._shown(key),
                        partial(self._set, key),
                        "short",
                    )

    def _line(self) -> dict[str, Any]:
        return dict(self._workbench.text.content().get("variables", {}).get(self._name, {}))

    def _shown(self, key: str) -> str:
        value = self._line().get(key)
        if isinstance(value, list):
            return ", ".join(map(plain_number, value))
        return "" if value is None else plain_number(value)

    def _set(self, key: str, value: str) -> None:
        """Change one recode; an empty field removes it. Bands make categories of numbers."""
        try:
            numbers = [number_of(part) for part in value.replace(";", ",").split(",") if part.strip()]
        except ValueError:
            self._workbench.changed(f"{RECODES[key]}: expected a number.")
            return
        name = self._name
        given: Any = None if not numbers else numbers if key == "bands" else numbers[0]
        keys: list[Any] = [(("variables", name, key), given)]
        if key == "bands":
            kind = "ordinal" if numbers else "numeric"
            keys.append((("variables", name, "kind"), kind))
            keys += [(("variables", name, other), None) for other in RECODES if other != "bands" and numbers]
        self._workbench.set(f"{name}: {key} = {value or 'none'}", *keys)

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
