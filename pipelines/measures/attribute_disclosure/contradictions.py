"""Unmodified columns that follow from a changed variable, for example the region of an exchanged ward.

If the change is secret (swapping, PRAM, rank swapping, noise), a record whose column contradicts its variable
is known to be changed, and the column limits what the original value was.
"""

from __future__ import annotations

from dataclasses import dataclass

from microguard.pipelines.measures.attribute_disclosure.arithmetic import computed
from microguard.pipelines.measures.attribute_disclosure.compared_columns import compared_columns
from microguard.pipelines.measures.attribute_disclosure.conditional_mode import (
    Dependency,
    dependencies_among,
)
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.unmodified_columns import (
    exchanged_levels,
    modified_variables,
    unmodified_columns,
)
from pyspark.sql import DataFrame

#: Separator of the names of a level of nested areas.
_WITHIN = "\x1f"


@dataclass(frozen=True)
class Contradiction:
    """An unmodified column that changed variables determine together.

    Attributes
    ----------
    column : str
    changed : tuple of str
    """

    column: str
    changed: tuple[str, ...]

    def __str__(self) -> str:
        names = " and ".join(self.changed)
        return (
            f"{self.column} is published unmodified and follows from {names}: a record in which it does not "
            "was changed"
        )


def contradictions(frame: DataFrame, specification: Specification, records: int) -> list[Contradiction]:
    """Find the unmodified columns that changed variables determine, if it is secret which records changed.

    A level of exchanged areas is compared with the levels above it, because codes of wards may repeat in
    several regions.

    Parameters
    ----------
    frame : DataFrame
        The original records.
    specification : Specification
    records : int
        Number of records of the frame.
    """
    kept = unmodified_columns(specification)
    if not kept or not specification.secretly_changed:
        return []
    changed = exchanged_levels(specification) or [(name,) for name in modified_variables(specification)]
    groups = {_WITHIN.join(names): names for names in changed}
    columns = groups | {name: (name,) for name in kept}
    seen = compared_columns(frame, columns, (), kept, specification, records)
    pairs = [Dependency(group, name) for name in kept for group in groups]
    found = dependencies_among(pairs, seen.codes, kept, None, seen.whole)
    amounts = {
        name: seen.numbers[name] for name in specification.numeric if name in {*groups} & {*seen.numbers}
    }
    numbers = {name: seen.numbers[name] for name in kept if name in seen.numbers}
    found += computed(amounts, numbers, {name: seen.codes[name] for name in kept}, found)
    by_column: dict[str, list[tuple[str, ...]]] = {}
    for each in found:
        by_column.setdefault(each.determines, []).append(_variables(each))
    return [Contradiction(name, changed) for name, each in by_column.items() for changed in _least(each)]


def _least(sets: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the distinct sets of variables that include no other one."""
    return [each for each in dict.fromkeys(sets) if not any({*other} < {*each} for other in sets)]


def _variables(found: Dependency) -> tuple[str, ...]:
    names = [name for group in (found.column, *found.beside) for name in group.split(_WITHIN)]
    return tuple(dict.fromkeys(names))
