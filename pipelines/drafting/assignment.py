"""Roles of columns: the key that identifies the units, and the roles of all other columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from microguard.pipelines.drafting.entities import Entity
from microguard.pipelines.drafting.evidence import NEARLY_UNIQUE, Facts, Reading
from microguard.pipelines.drafting.guess import LIKELY, SURE, UNSURE, Alternative, Guess

ROLES: dict[str, tuple[str, str | None]] = {
    "category": ("quasi_identifier", "nominal"),
    "place": ("quasi_identifier", "nominal"),
    "amount": ("quasi_identifier", "numeric"),
    "key": ("identifier", None),
    "household": ("household", None),
    "weight": ("weight", None),
    "date": ("identifier", None),
    "text": ("identifier", None),
}
"""Role and kind of each reading of a column, before columns are compared."""
MOST_MISSING = 0.5
"""Maximum share of records in which a numeric key variable may be missing."""


def assigned(facts: Facts, reading: Reading) -> Guess:
    """Return the guess for a column based on its own evidence only."""
    column, confidence = facts.column, reading.confidence
    role, kind = ROLES[reading.name]
    count = f"{column.distinct:,} distinct value" + ("s" if column.distinct != 1 else "")
    why = f"{reading.why}, {count}"
    alternative = None
    if confidence != SURE and reading.second is not None:
        other_role, other_kind = ROLES[reading.second]
        if (other_role, other_kind) != (role, kind):
            alternative = Alternative(other_role, other_kind, f"if it is {_DESCRIBED[reading.second]}")
    if reading.name == "household" and column.present < facts.records:
        role, why = "identifier", f"{why}, with missing values"
    elif reading.name == "amount" and column.finite < (1 - MOST_MISSING) * facts.records:
        alternative = Alternative("other", kind, "to publish it as it is")
        role, kind, why = "identifier", None, f"{why}, missing in many records"
    elif reading.name == "amount" and reading.second == "weight" and confidence == UNSURE:
        role = "other"  # a weight is never averaged; the limits refuse a weight that is published unprotected
        why += ": choose whether it is a weight or a quasi_identifier"
    elif reading.name in ("category", "place") and column.named("sensitive") and not column.named("visible"):
        role, why, alternative = "sensitive", f"sensitive by name, {count}", alternative
    elif reading.name == "weight":
        zeros = facts.records - column.positive
        why += f", 0 in {zeros:,} records" if zeros else ", positive in every record"
    elif reading.name == "date":
        why += ": left out"
        year = Alternative("quasi_identifier", "numeric", "to publish its year", ', date = "year"')
        alternative = year if column.years >= column.dates else None  # a time of day or 21.11.26 has no year
    if confidence == UNSURE and alternative is None and reading.second is None:
        confidence = LIKELY
    return Guess(column.name, role, kind, why, column, reading.name, confidence, alternative)


_DESCRIBED = {
    "category": "a code list",
    "place": "a place",
    "amount": "an amount",
    "key": "a key",
    "household": "the key of households",
    "weight": "a sampling weight",
    "date": "a date",
    "text": "a name or free text",
}


def with_units(guesses: list[Guess], entities: Mapping[str, Entity], records: int) -> list[Guess]:
    """Choose the key of the units and the key of the households; all other keys become identifiers.

    The unit is the key of a panel, else a key whose values are distinct except for duplicates, else (without
    households) a key whose values repeat.
    """
    keys = [each for each in guesses if each.reading == "key"]
    kinds = {each.name: _kind(each, entities) for each in guesses}
    panel = [each for each in keys if kinds[each.name] == "panel"]
    unique = [each for each in keys if _is_unique(each, records)]
    homes = [each for each in guesses if each.role == "household"]
    repeated = [each for each in keys if kinds[each.name] == "repeated"]
    units = sorted(panel or unique or ([] if homes else repeated), key=_by_name)
    homes.sort(key=lambda each: not (each.column is not None and each.column.named("household")))
    unit, home = (each[0].name if each else None for each in (units, homes))
    result = []
    for each in guesses:
        if each.name == unit and each.column is not None:
            each = replace(each, role="unit", why=_why_unit(each, kinds[each.name], records))
        elif each.role == "household" and each.name != home:
            each = _second_home(each)
        elif each in keys and each.column is not None and kinds[each.name]:
            why = f"{entities[each.column.label].why}, and not the unit"
            may_count = unit is None and kinds[each.name] == "repeated"
            alternative = Alternative("unit", None, "if k counts it") if may_count else None
            each = replace(each, why=why, alternative=alternative)
        elif panel and each in unique:
            each = replace(each, why="the column numbers the records of a panel")
        result.append(each)
    return result


def _second_home(each: Guess) -> Guess:
    """Leave out a second column that groups persons like households do: another key, or an amount."""
    why = f"a second key of households; {each.why}"
    if each.column is None or each.column.named("household") or not each.column.finite:
        return replace(each, role="identifier", why=why)
    amount = Alternative("quasi_identifier", "numeric", "if it is an amount of the household")
    why = f"it has one value for each household, as a second key or an amount has; {each.why}"
    return replace(each, role="identifier", why=why, confidence=UNSURE, alternative=amount)


def _kind(each: Guess, entities: Mapping[str, Entity]) -> str:
    entity = entities.get(each.column.label) if each.column is not None else None
    return "" if entity is None else entity.kind


def _is_unique(each: Guess, records: int) -> bool:
    column = each.column
    return (
        column is not None
        and column.present == records
        and column.distinct >= NEARLY_UNIQUE * records
        and not column.named("code", "place")
    )


def _by_name(each: Guess) -> tuple[bool, int]:
    assert each.column is not None
    return not each.column.named("key"), each.column.ties


def _why_unit(each: Guess, kind: str, records: int) -> str:
    assert each.column is not None
    if kind == "panel":
        return 'a key whose values occur once per period: with method.unit = "unit", k counts its values'
    if each.column.distinct >= NEARLY_UNIQUE * records and each.column.ties:
        return (
            f"{each.why}; {each.column.ties:,} record(s) repeat a value: remove duplicates, or "
            'let k count units with method.unit = "unit"'
        )
    if kind:
        return 'a key whose values repeat: method.unit = "unit" makes k count units'
    return f"{each.why}, each once"
