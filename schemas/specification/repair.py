"""Removal of the faulty keys of a specification, so that the checks between keys can run."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from microguard.schemas.specification.faults import Path

STAND_INS: dict[str, dict[str, Any]] = {
    "release": {"name": "unnamed", "k": 2},
    "input": {"path": "unnamed-input"},
    "variables": {"unnamed": {"role": "other"}},
    "publish": {"path": "unnamed-lake", "evidence": "unnamed-evidence"},
}
"""Replacements for required keys that are missing or faulty."""


def repaired(content: dict[str, Any], faulty: list[Path]) -> tuple[dict[str, Any], bool]:
    """Return the specification without its faulty keys.

    Returns
    -------
    dict
        The content without faulty keys, with placeholders for required keys.
    bool
        Whether the role or kind of a variable is in doubt, so that checks across variables are not possible.
    """
    content = deepcopy(content)
    in_doubt = False
    for key in sorted(set(faulty), key=len):
        if key[0] == "groups":
            content.pop("groups", None)
        elif key[0] == "table":
            content.pop("table", None)
            in_doubt = True
        elif key[0] == "variables":
            in_doubt |= len(key) < 3 or key[2] in ("role", "kind")
            _repair_variable(content, key)
        else:
            _take_out(content, key[:2])
    for section, stand_ins in STAND_INS.items():
        table = content.setdefault(section, {})
        if section != "variables" or not table:
            for name, value in stand_ins.items():
                table.setdefault(name, value)
    return content, in_doubt


def _repair_variable(content: dict[str, Any], key: Path) -> None:
    if len(key) < 2:
        content.pop("variables", None)
    elif not key[1]:
        content["variables"].pop(key[1], None)
    elif len(key) == 2:
        content["variables"][key[1]] = {"role": "other"}
    elif isinstance(line := content["variables"].get(key[1]), dict):
        if key[2] == "role":
            line["role"] = "other"
        else:
            line.pop(key[2], None)


def _take_out(content: dict[str, Any], key: Path) -> None:
    table: Any = content if len(key) == 1 else content.get(str(key[0]))
    if isinstance(table, dict):
        table.pop(key[-1], None)


def related(one: Path, other: Path) -> bool:
    """Return whether one key contains the other, so that a fault of one is a fault of both."""
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]
