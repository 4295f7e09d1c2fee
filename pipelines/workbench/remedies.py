"""Refusals of a run with their remedies: a button changes the role of a column, or applies a line."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from microguard.pipelines.workbench.role_change import role_keys
from microguard.pipelines.workbench.specification_text import REASON
from microguard.pipelines.workbench.widgets import box, button, entry, sentence, text
from microguard.pipelines.workbench.workbench import Workbench

ROLES_THAT_HELP = {
    "unique_published": ("quasi_identifier", "identifier"),
    "unique_with_number": ("identifier",),
    "own_text": ("identifier",),
}
"""Roles that remove the failure of a metric of one column."""
MOST_SHOWN = 20
"""Maximum number of failures with the same remedy that are listed."""
ACTS = {"quasi_identifier": "Protect", "identifier": "Leave out"}


def remedies(workbench: Workbench, failures: Sequence[Mapping[str, str]], head: str) -> None:
    """Show the refusals; those with the same remedy and line are shown together."""
    if not failures:
        return
    text("h3", head)
    with box("ul", "remedies"):
        for alike in grouped(failures):
            with box("li"):
                _show(workbench, alike)


def grouped(failures: Sequence[Mapping[str, str]]) -> list[list[Mapping[str, str]]]:
    """Return the failures by remedy and line, in order of occurrence."""
    by_remedy: dict[tuple[str, str], list[Mapping[str, str]]] = {}
    for failure in failures:
        by_remedy.setdefault((failure.get("remedy", ""), failure.get("line", "")), []).append(failure)
    return list(by_remedy.values())


def helpful_roles(failure: Mapping[str, str], columns: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """Return the column of a failure, and its roles that remove the failure; none of other failures."""
    metric, _, name = failure.get("key", "").partition(" of ")
    return name, ROLES_THAT_HELP.get(metric, ()) if name in columns else ()


def _show(workbench: Workbench, alike: Sequence[Mapping[str, str]]) -> None:
    content = workbench.text.content()
    guesses = {} if workbench.data is None else workbench.data.guesses
    helpful = [
        helpful_roles(failure, [name for name in content.get("variables", {}) if name in guesses])
        for failure in alike
    ]
    for failure, (name, roles) in list(zip(alike, helpful, strict=True))[:MOST_SHOWN]:
        found = f": {failure['found']}, allowed {failure['limit']}" if failure.get("limit") else ""
        with box("div", "row"):
            text("span", f"{failure.get('what', '')}{found}.")
            for role in roles:
                _role_button(workbench, f"{ACTS[role]} {name}", [name], role)
    if len(alike) > MOST_SHOWN:
        text("p", f"and {len(alike) - MOST_SHOWN:,} more.")
    left_out = [name for name, roles in helpful if "identifier" in roles]
    if len(left_out) > 1:
        _role_button(workbench, f"Leave out all {len(left_out)} columns", left_out, "identifier")
    text("p", f"{sentence(alike[0].get('remedy', ''))}.")
    _one_click(workbench, alike[0].get("line", ""))


def _role_button(workbench: Workbench, label: str, names: Sequence[str], role: str) -> None:
    def change() -> None:
        content = workbench.text.content()
        assert workbench.data is not None
        keys = role_keys(content, [workbench.data.guesses[name] for name in names], role)
        workbench.set(label, *keys)

    button(label, change, "small")


def _one_click(workbench: Workbench, line: str) -> None:
    if not line:
        return
    if REASON not in line:
        button(f"Set {line}", lambda: workbench.edit(lambda: workbench.text.apply_line(line)))
        return
    reason = {"": ""}
    name = line.partition("{")[2].partition("=")[0].strip()
    with box("div", "row"):
        entry(
            f"reason to accept {name}, and by whom", "", lambda value: reason.__setitem__("", value), "wide",
            placeholder="reason, by whom",
        )  # fmt: skip
        button(f"Accept {name}", lambda: workbench.edit(lambda: workbench.text.apply_line(line, reason[""])))
