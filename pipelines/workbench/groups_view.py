"""The view of which quasi-identifiers are protected together."""

from __future__ import annotations

from functools import partial
from typing import Any

from microguard.pipelines.workbench.groups import OWN, group_of, moved, quasi_identifiers_of
from microguard.pipelines.workbench.widgets import box, select, set_value, text
from microguard.pipelines.workbench.workbench import Workbench
from microguard.schemas.specification.model import WHOLE


class GroupsView:
    """For each quasi-identifier, a list from which its group is chosen."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._lists: dict[str, Any] = {}
        self._key: Any = None

    def build(self) -> None:
        """Create the container."""
        with box("details"):
            text("summary", "Groups of quasi-identifiers")
            text(
                "p",
                "By default all quasi-identifiers are protected together. Groups are protected one by one: "
                "the loss is lower, and k-anonymity applies only to attackers who know the variables of one "
                "group.",
                "soft",
            )
            self._rows = box("div", "row settings")

    def sync(self) -> None:
        """Show the group of each quasi-identifier."""
        content = self._workbench.text.content()
        names = quasi_identifiers_of(content)
        groups = [each["name"] for each in content.get("groups", [])] or [WHOLE]
        if (names, groups) != self._key:
            self._key = names, groups
            self._rows.clear()
            self._lists.clear()
            with self._rows:
                for name in names:
                    with box("label"):
                        text("span", name)
                        self._lists[name] = select(
                            f"group of {name}",
                            [*groups, OWN],
                            group_of(content, name),
                            partial(self._move, name),
                        )
        for name, each in self._lists.items():
            set_value(each, group_of(content, name))

    def _move(self, name: str, group: str) -> None:
        groups = moved(self._workbench.text.content(), name, group)
        self._workbench.set(f"group of {name}: {group}", (("groups",), groups))
