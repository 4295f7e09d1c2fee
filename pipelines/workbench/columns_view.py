"""Columns of the file: the guessed role of each with its reason, and switches to correct it."""

from __future__ import annotations

from typing import Any, get_args

from microguard.pipelines.drafting.guess import Alternative, Guess
from microguard.pipelines.workbench.role_change import NAMELESS, group_keys, role_keys
from microguard.pipelines.workbench.widgets import box, button, select, set_value, text
from microguard.pipelines.workbench.workbench import Workbench
from microguard.schemas.roles import KINDS, Role

ROLES = {
    "unit": "identifies the unit that k counts; never published",
    "identifier": "left out",
    "household": "the key of households; never published",
    "region": "published unmodified; no cluster contains records of two regions",
    "quasi_identifier": "protected by the method; the figures say whether it promises k",
    "sensitive": "published unmodified; limits apply to its values within a cluster",
    "weight": "a sampling weight, published unmodified",
    "risk": "read by swapping, never published",
    "derived": "computed from published columns after protection",
    "other": "published as it is",
}
assert set(ROLES) == set(get_args(Role))


class ColumnsView:
    """Table of the columns; every switch changes one line of `[variables]` in the specification."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._rows: dict[str, tuple[Any, Any, Any]] = {}

    def build(self) -> None:
        """Create the table of columns."""
        data = self._workbench.data
        if data is None:
            return
        text(
            "p",
            "Each role is a guess: read each line. After a change, counts and measures are computed at once.",
            "soft",
        )
        with box("details"):
            text("summary", "What the roles mean")
            with box("dl"):
                for role, meaning in ROLES.items():
                    text("dt", _plain(role))
                    text("dd", meaning)
        with (
            box("div", "scroll", tabindex="0", role="group", aria_label="columns of the file"),
            box("table", "columns"),
        ):
            text("caption", "Columns of the file", "heard")
            with box("thead"), box("tr"):
                for head in ("column", "role", "kind", "why"):
                    text("th", head, scope="col")
            with box("tbody"):
                for guess in data.guesses.values():
                    self._row(guess)

    def _row(self, guess: Guess) -> None:
        name = guess.name
        variable = self._variable(name)
        with box("tr"):
            text("th", name, scope="row")
            with box("td"):
                role = select(
                    f"role of {name}",
                    {each: _plain(each) for each in ROLES},
                    variable.get("role", "identifier"),
                    lambda value: self._set_role(guess, value),
                )
            with box("td"):
                kind = select(
                    f"kind of {name}",
                    {"": "-"} | {each: each for each in KINDS},
                    variable.get("kind", ""),
                    lambda value: self._set_kind(name, value),
                )
            with box("td", "why"):
                text("span", guess.confidence, f"mark {guess.confidence}")
                text("span", f" {guess.why}")
                other = guess.alternative
                ask = None
                if other is not None:
                    ask = button(
                        f"Make it {_plain(other.role)} {other.when}",
                        lambda: self._take(name, other),
                        "small",
                        aria_label=f"{name}: make it {_plain(other.role)} {other.when}",
                    )
        self._rows[name] = role, kind, ask

    def _variable(self, name: str) -> dict[str, Any]:
        return dict(self._workbench.text.content().get("variables", {}).get(name, {}))

    def sync(self) -> None:
        """Show the roles and kinds of the specification, for example after an undo."""
        variables = self._workbench.text.content().get("variables", {})
        for name, (role, kind, _) in self._rows.items():
            variable = variables.get(name, {})
            set_value(role, variable.get("role", "identifier"))
            set_value(kind, variable.get("kind", ""))
            kind.props.set_bool("disabled", variable.get("role", "identifier") in NAMELESS)

    def _set_role(self, guess: Guess, role: str) -> None:
        keys = role_keys(self._workbench.text.content(), [guess], role)
        self._workbench.set(f"role of {guess.name}: {role}", *keys)

    def _set_kind(self, name: str, kind: str) -> None:
        self._workbench.set(f"kind of {name}: {kind or 'none'}", (("variables", name, "kind"), kind or None))

    def _take(self, name: str, other: Alternative) -> None:
        line = {"role": other.role} | ({"kind": other.kind} if other.kind else {})
        if "date" in other.recode:
            line["date"] = "year"
        self._workbench.set(
            f"role of {name}: {other.role}",
            (("variables", name), line),
            *group_keys(self._workbench.text.content(), [name], other.role),
        )


def _plain(role: str) -> str:
    return role.replace("_", "-")
