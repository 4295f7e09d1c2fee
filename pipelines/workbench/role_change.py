"""Keys of the specification that change with the role of columns: their lines, other roles, and groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from microguard.pipelines.drafting.guess import Guess
from microguard.pipelines.workbench.groups import fitted, quasi_identifiers_of

NAMELESS = ("unit", "identifier", "household", "region", "weight")
"""Roles for which the line of a column shows neither a kind nor recodes."""
Keys = list[tuple[tuple[str, ...], Any]]


def role_keys(content: Mapping[str, Any], guesses: Sequence[Guess], role: str) -> Keys:
    """Return the keys that change if columns get a role, and their values; None removes a key.

    The kind of a column remains, or is the guessed kind, or is derived from the values.
    """
    variables = content.get("variables", {})
    names = [guess.name for guess in guesses]
    keys: Keys = [
        (("variables", guess.name), _line(variables.get(guess.name, {}), guess, role)) for guess in guesses
    ]
    if role in ("unit", "household", "region"):  # a role that at most one variable can have
        keys += [
            (("variables", name, "role"), "identifier")
            for name, each in variables.items()
            if each.get("role") == role and name not in names
        ]
    return keys + group_keys(content, names, role)


def group_keys(content: Mapping[str, Any], names: Sequence[str], role: str) -> Keys:
    """Return the changed groups if columns become quasi-identifiers, or are no longer ones."""
    if "groups" not in content:
        return []
    others = [each for each in quasi_identifiers_of(content) if each not in names]
    return [(("groups",), fitted(content, [*others, *names] if role == "quasi_identifier" else others))]


def _line(variable: Mapping[str, Any], guess: Guess, role: str) -> dict[str, Any]:
    """Return the line of a column in `[variables]`."""
    if role in NAMELESS:
        return {"role": role}
    column = guess.column
    numeric = column is not None and 0 < column.present == column.numbers
    kind = variable.get("kind") or guess.kind or ("numeric" if numeric else "nominal")
    rest = {key: value for key, value in variable.items() if key not in ("role", "kind")}
    return {"role": role, "kind": kind} | rest
