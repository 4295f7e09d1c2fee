"""What the interface promises and this version does not do yet: refused by name, never ignored.

Whoever builds an item removes its row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from schemas.errors import SpecificationError
from schemas.specification.faults import Fault, Path, shown_key, shown_value

if TYPE_CHECKING:
    from schemas.specification.model import Specification

VERBS: frozenset[str] = frozenset()

KEYS: dict[Path, Callable[[Any], bool]] = {
    ("publish", "format"): lambda value: value == "iceberg",
    ("publish", "path"): lambda value: "://" in value,
    ("publish", "evidence"): lambda value: "://" in value,
}
"""Key of the specification -> whether a value of it waits to be built."""


def refuse_verb(verb: str) -> None:
    """Raise SpecificationError where the verb is not built yet."""
    if verb in VERBS:
        raise SpecificationError(f"The verb {verb} is not built yet in this version of microguard.")


def not_built(specification: Specification) -> list[Fault]:
    """Faults for valid values that this version does not carry out yet."""
    faults = []
    for key, waits in KEYS.items():
        value: Any = specification
        for part in key:
            value = getattr(value, str(part))
        if waits(value):
            faults.append(
                Fault(key, f"{shown_key(key)}: {shown_value(value)} is not built yet in this version")
            )
    return faults
