"""Settings of the whole release: k, effort, diversity, approval, and the history of all changes."""

from __future__ import annotations

from functools import partial
from typing import Any

from microguard.pipelines.workbench.widgets import box, button, entry, select, set_value, text
from microguard.pipelines.workbench.workbench import Workbench
from microguard.sdc.algorithms.algorithm import EFFORTS

NUMBERS = {
    "k": (("release", "k"), "k: records that share a combination"),
    "min_diversity": (("method", "min_diversity"), "values of a sensitive variable in each class"),
}
OF_TABLES = "k: fewest contributors of a safe cell"
"""What k means for a table."""
APPROVAL = {"none": "published once it is verified", "required": "is pending until a person approves it"}


class SettingsView:
    """Fields for k, effort and approval, undo and redo, the history and the text."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._fields: dict[str, Any] = {}

    def build(self, of_records: bool) -> None:
        """Create the fields; a table has no diversity, and its method determines its efforts."""
        numbers = NUMBERS if of_records else {"k": NUMBERS["k"]}
        section = "method" if of_records else "table"
        self._effort = (section, "effort")
        with box("div", "row settings"):
            for name, (path, words) in numbers.items():
                label = words if of_records else OF_TABLES
                with box("label"):
                    text("span", label)
                    self._fields[name] = entry(
                        label,
                        str(self._value(path, 1)),
                        partial(self._number, name, path),
                        "short",
                        inputmode="numeric",
                    )
            with box("label"):
                text("span", "effort of the search")
                self._fields["effort"] = select(
                    "effort of the search", EFFORTS, self._value(self._effort, "standard"),
                    lambda value: self._workbench.set(f"effort: {value}", (self._effort, value)),
                )  # fmt: skip
            with box("label"):
                text("span", "a verified release")
                self._fields["approval"] = select(
                    "a verified release", APPROVAL, self._value(("publish", "approval"), "none"),
                    lambda value: self._workbench.set(f"approval: {value}", (("publish", "approval"), value)),
                )  # fmt: skip

    def build_buttons(self) -> None:
        """Create the buttons undo, redo and save."""
        workbench = self._workbench
        with box("div", "row"):
            self._undo = button("Undo", lambda: workbench.edit(workbench.text.undo, "Undone."))
            self._redo = button("Redo", lambda: workbench.edit(workbench.text.redo, "Repeated."))
            self._save = button("Save", workbench.save, "main")
            self._saved = text("span", "", "soft")

    def build_history(self) -> None:
        """Create the list of changes and the text of the specification."""
        with box("details"):
            text("summary", "Changes so far")
            self._changes = box("ol")
        with box("details"):
            text("summary", "The specification (TOML)")
            self._toml = text("pre", "", tabindex="0", role="group", aria_label="the specification as TOML")

    def _value(self, path: tuple[str, str], default: Any) -> Any:
        return self._workbench.text.content().get(path[0], {}).get(path[1], default)

    def _number(self, name: str, path: tuple[str, str], value: str) -> None:
        if not (value.strip().isdecimal() and len(value.strip()) < 7):
            self._workbench.changed(f"{name}: expected a whole number.")
            return
        self._workbench.set(f"{name}: {int(value)}", (path, int(value)))

    def sync(self) -> None:
        """Show the values of the specification."""
        text_, workbench = self._workbench.text, self._workbench
        for name, (path, _) in NUMBERS.items():
            if name in self._fields:
                set_value(self._fields[name], str(self._value(path, 1)))
        set_value(self._fields["effort"], self._value(self._effort, "standard"))
        set_value(self._fields["approval"], self._value(("publish", "approval"), "none"))
        self._undo.props.set_bool("disabled", not text_.changes)
        self._redo.props.set_bool("disabled", not text_.can_redo)
        self._saved.set_text(
            f"{text_.path.name} is saved." if text_.is_saved else f"{text_.path.name} is not saved yet."
        )
        if self._toml.text != text_.text:
            self._toml.set_text(text_.text)
            self._changes.clear()
            with self._changes:
                for change in workbench.text.changes:
                    text("li", change)
