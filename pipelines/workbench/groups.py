"""Groups of variables in the text of a specification; every quasi-identifier is in one group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from microguard.schemas.specification.model import WHOLE

OWN = "a group of its own"
"""Choice with which a user begins a new group."""
_Groups = list[dict[str, Any]]


def group_of(content: Mapping[str, Any], name: str) -> str:
    """Return the group of a variable; `WHOLE` if all are protected together."""
    found = (each["name"] for each in content.get("groups", []) if name in each.get("variables", []))
    return next(found, WHOLE)


def fitted(content: Mapping[str, Any], quasi_identifiers: Sequence[str]) -> _Groups | None:
    """Return groups that contain exactly these quasi-identifiers; new ones are added to the first group.

    Returns
    -------
    list of dict or None
        None if all are protected together.
    """
    groups = [
        {"name": each["name"], "variables": [name for name in each["variables"] if name in quasi_identifiers]}
        for each in content.get("groups", [])
    ]
    grouped = {name for each in groups for name in each["variables"]}
    groups = [each for each in groups if each["variables"]]
    if len(groups) < 2:
        return None
    groups[0]["variables"] += [name for name in quasi_identifiers if name not in grouped]
    return groups


def moved(content: Mapping[str, Any], name: str, group: str) -> _Groups | None:
    """Return the groups after one variable was moved to another group, or to `OWN`."""
    quasi_identifiers = quasi_identifiers_of(content)
    groups: _Groups = fitted(content, quasi_identifiers) or [
        {"name": "group_1", "variables": list(quasi_identifiers)}
    ]
    for each in groups:
        each["variables"] = [other for other in each["variables"] if other != name]
    target = next((each for each in groups if each["name"] == group), None)
    if target is None:
        names = {each["name"] for each in groups}
        number = next(i for i in range(1, len(names) + 2) if f"group_{i}" not in names)
        target = {"name": f"group_{number}", "variables": []}
        groups.append(target)
    target["variables"].append(name)
    return fitted({"groups": groups}, quasi_identifiers)


def quasi_identifiers_of(content: Mapping[str, Any]) -> list[str]:
    """Return the names of the quasi-identifiers in the order of the text."""
    variables = content.get("variables", {})
    return [name for name, each in variables.items() if each.get("role") == "quasi_identifier"]
