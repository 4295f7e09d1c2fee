"""Guess roles and kinds from a profile, on the safe side: what might identify is an identifier until a person
says otherwise, and nothing that could is ever published as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from pipelines.drafting.keys import (
    FEWEST_THINGS,
    MOST_WITNESSES,
    holds_together,
    looks_drawn,
    numbers_things,
    repeats_by_period,
)
from pipelines.drafting.names import says
from pipelines.drafting.profile import Column, Profile
from schemas.errors import InputRejected

K = 3
FEWEST_CATEGORIES, MOST_CATEGORIES, RECORDS_PER_CATEGORY = 30, 1_000, 50
"""A nominal variable has at most a category per 50 records, within 30 and 1,000; more is a name or a text."""
MOST_CODES = 20
"""A whole-number variable with no more distinct values is a code."""
LONG_TEXT = 60
MANY_WORDS = 4.0
NEARLY_ALL = 0.8
"""Share of values that makes a column date-like or key-like."""
MOST_MISSING = 0.5
"""A number missing in more records than this would cost too many of them."""
MOST_REJECTED = 0.2
"""Share of the records that missing numbers may cost together."""
MANY_MISSING = 0.05
"""Share from which records that lack a number are clustered by what they lack, where that is possible."""
REPEATED_SHARE = 0.5
"""As in a run: a column whose values mostly occur once tells a reader of the release nothing."""


@dataclass(frozen=True)
class Guess:
    """What a variable is taken for, and why."""

    name: str
    role: str
    kind: str | None
    why: str
    column: Column | None = None


def guess(profile: Profile) -> list[Guess]:
    """A guess for every column of the file that a specification can name."""
    known = {column.name: column for column in profile.columns}
    names = [name for name in profile.source.schema.names if is_nameable(name)]
    body = any(says(name, "body") for name in names)
    guesses = [
        _first_guess(known[name], profile, body)
        if name in known
        else Guess(name, "identifier", None, "not a single value")
        for name in names
    ]
    guesses = _one_each(_with_repeated_keys(guesses, profile))
    guesses = _with_region(_codes(guesses, profile), profile)
    guesses = _without_small_region(_without_rare_numbers(guesses, profile), profile)
    guesses = _without_dependencies(guesses, profile)
    return _with_some_quasi_identifier(guesses)


def is_nameable(name: str) -> bool:
    """Whether a specification can name the column."""
    return bool(name.strip()) and not name.startswith("__")


def counts_units(guesses: Sequence[Guess], profile: Profile) -> Column | None:
    """The unit, where it repeats, so that k has to count it."""
    for each in guesses:
        if each.role == "unit" and each.column is not None and each.column.distinct < profile.records:
            return each.column
    return None


def by_pattern(guesses: Sequence[Guess], profile: Profile) -> bool:
    """Whether the records that lack a number are many, and enough of each pattern in each region."""
    numeric = [each.column for each in guesses if each.kind == "numeric" and each.role == "quasi_identifier"]
    columns = [column for column in numeric if column is not None]
    rejected = profile.records - profile.count(profile.accepting(columns))
    if rejected <= MANY_MISSING * profile.records or rejected > profile.count(profile.lacking(columns)):
        return False  # few, or unreadable rather than missing
    region = [each.column for each in guesses if each.role == "region" and each.column is not None]
    return profile.smallest_pattern(columns, region, counts_units(guesses, profile)) >= K


def _first_guess(column: Column, profile: Profile, body: bool) -> Guess:
    records = profile.records

    def as_(role: str, kind: str | None, why: str) -> Guess:
        return Guess(column.name, role, kind, why, column)

    def named(what: str) -> bool:
        return says(column.name, what)

    count = f"{column.distinct:,} distinct value" + ("s" if column.distinct != 1 else "")
    if column.present == 0:
        return as_("identifier", None, "no value at all")
    if pa.types.is_temporal(column.type) or column.dates >= NEARLY_ALL * column.present or named("date"):
        return as_("identifier", None, "date-like")
    if column.distinct == 1 and column.present == records:
        return as_("other", None, "the same value everywhere")
    is_key = named("key") and _is_key_type(column)
    if column.distinct == column.present == records and is_key:
        return as_("unit", None, "a key by name, no value twice")
    if _is_household(column, records):
        if column.present == records:
            return as_("household", None, f"a household by name, {count}")
        return as_("identifier", None, "a key by name, with missing values")
    if is_key and column.distinct > min(_most_categories(records), MOST_CODES) and not named("amount"):
        return as_("identifier", None, f"a key by name, {count}")
    if _is_numeric(column, profile):
        return _number(column, profile, count, body)
    if column.distinct > _most_categories(records) or _is_text(column) or named("name"):
        return as_("identifier", None, f"free text or a name, {count}")
    if named("sensitive"):
        return as_("sensitive", "nominal", f"sensitive by name, {count}")
    return as_("quasi_identifier", "nominal", count)


def _number(column: Column, profile: Profile, count: str, body: bool) -> Guess:
    records = profile.records
    few = column.distinct <= MOST_CODES
    categories = column.distinct <= _most_categories(records)
    amount, code = says(column.name, "amount"), says(column.name, "code")
    nominal = Guess(column.name, "quasi_identifier", "nominal", count, column)
    weight = says(column.name, "weight") and not body
    if weight and column.positive == column.finite == column.present == records:
        return replace(nominal, role="weight", kind=None, why="a weight by name, positive everywhere")
    if column.is_whole and (few or (code and categories)):
        return replace(nominal, why=f"whole numbers that are codes, {count}")
    if column.is_whole and code:
        return replace(nominal, role="identifier", kind=None, why=f"a code by name, {count}")
    if numbers_things(column, profile.numbers(column)):
        why = "whole numbers without a tie where chance would have made some: a serial number"
        return replace(nominal, role="identifier", kind=None, why=why)
    nearly_all = column.distinct >= NEARLY_ALL * column.present
    if nearly_all and not amount and looks_drawn(column, profile.numbers(column)):
        return replace(nominal, role="identifier", kind=None, why=f"a number that names, {count}")
    if column.distinct == 1 or column.finite < (1 - MOST_MISSING) * records:
        return replace(nominal, role="identifier", kind=None, why="a number that many records lack")
    return replace(nominal, kind="numeric", why=f"numbers, {count}")


def _is_numeric(column: Column, profile: Profile) -> bool:
    """Text of a CSV becomes a number where it is declared one ("007" stays text), of a Parquet never."""
    if pa.types.is_boolean(column.type):
        return False
    if (
        pa.types.is_integer(column.type)
        or pa.types.is_floating(column.type)
        or pa.types.is_decimal(column.type)
    ):
        return True
    return profile.source.format == "csv" and column.numbers == column.present and not column.zero_led


def _is_key_type(column: Column) -> bool:
    """Text, or whole numbers: pandas writes a key with a missing value somewhere as 1001.0."""
    return column.is_whole or not (column.numbers or pa.types.is_boolean(column.type))


def _is_household(column: Column, records: int) -> bool:
    """A key of households by name: not their income or their type."""
    if not says(column.name, "household") or says(column.name, "amount") or says(column.name, "code"):
        return False
    return _is_key_type(column) and 0.05 * records < column.distinct < records


def _is_text(column: Column) -> bool:
    return column.widths[1] > LONG_TEXT or column.words >= MANY_WORDS


def _most_categories(records: int) -> int:
    return min(max(records // RECORDS_PER_CATEGORY, FEWEST_CATEGORIES), MOST_CATEGORIES)


def _with_repeated_keys(guesses: list[Guess], profile: Profile) -> list[Guess]:
    """A key that repeats is the unit where nothing else is, or where each occurs once a period (a panel).

    Otherwise it is an identifier: never a number to be averaged, and never published.
    """
    columns = [each.column for each in guesses if each.column is not None]
    periods = [
        column
        for column in columns
        if 1 < column.distinct <= column.present / 2 and (says(column.name, "period") or column.dates)
    ]
    witnesses = sorted(
        (each.column for each in guesses if each.kind == "nominal" and each.column is not None),
        key=lambda column: column.distinct,
        reverse=True,
    )[:MOST_WITNESSES]
    panel, repeated = [], []
    for each in guesses:
        column = each.column
        if column is None or not _may_repeat(each, column, profile):
            continue
        others = [other for other in witnesses if other is not column]
        if repeats_by_period(column, periods, profile):
            panel.append(each.name)
        elif each.role == "household":
            continue
        elif (says(column.name, "key") and each.role == "identifier") or (
            column.distinct > _most_categories(profile.records) and holds_together(column, others, profile)
        ):
            repeated.append(each.name)
    by_name = sorted(panel, key=lambda name: not says(name, "key"))
    unique = [each.name for each in guesses if each.role in ("unit", "household")]
    candidates = by_name or ([] if unique else repeated)
    chosen = candidates[0] if candidates else None
    result = []
    for each in guesses:
        if each.name == chosen:
            why = "a key that repeats, once a period" if panel else "a key that repeats"
            each = replace(each, role="unit", kind=None, why=f'{why}: method.unit = "unit" counts it')
        elif each.name in panel or each.name in repeated:
            each = replace(each, role="identifier", kind=None, why="a second key, whose values repeat")
        elif panel and each.role == "unit":
            each = replace(each, role="identifier", kind=None, why="it numbers the records of a panel")
        result.append(each)
    return result


def _may_repeat(each: Guess, column: Column, profile: Profile) -> bool:
    """Whether a column could hold a key whose values repeat, in every record."""
    if each.role in ("weight", "other", "unit") or says(each.name, "period") or column.dates:
        return False
    if says(each.name, "amount") or (says(each.name, "region") and not says(each.name, "key")):
        return False
    if column.present != profile.records or not _is_key_type(column):
        return False
    return FEWEST_THINGS <= column.distinct < profile.records


def _one_each(guesses: list[Guess]) -> list[Guess]:
    """Of unit, household, weight the first stands; a later key is an identifier, a later weight a number."""
    seen: set[str] = set()
    result = []
    for each in guesses:
        if each.role in seen:
            if each.role == "weight":
                each = replace(each, role="quasi_identifier", kind="numeric", why="a second weight by name")
            else:
                each = replace(each, role="identifier", why=f"a second {each.role} by name")
        elif each.role in ("unit", "household", "weight"):
            seen.add(each.role)
        result.append(each)
    return result


def _codes(guesses: list[Guess], profile: Profile) -> list[Guess]:
    """A whole number that tells a category (activity A88, which tells A21) is a finer code, not an amount."""
    result = []
    for each in guesses:
        column = each.column
        if each.kind == "numeric" and column is not None and column.is_whole:
            coarse = column.distinct <= _most_categories(profile.records)
            if coarse and not says(each.name, "amount") and _tells(each, guesses, profile):
                each = replace(each, kind="nominal", why=f"a code that tells another, {each.why}")
        result.append(each)
    return result


def _without_rare_numbers(guesses: list[Guess], profile: Profile) -> list[Guess]:
    """Numbers that together would cost too many records are left out, the one most records lack first."""
    while True:
        numeric = [each for each in guesses if each.role == "quasi_identifier" and each.kind == "numeric"]
        columns = [each.column for each in numeric if each.column is not None]
        accepted = profile.count(profile.accepting(columns))
        if accepted >= (1 - MOST_REJECTED) * profile.records or by_pattern(guesses, profile):
            return guesses
        rarest = min(numeric, key=lambda each: each.column.finite if each.column else 0)
        why = "a number that too many records lack"
        guesses = [
            replace(each, role="identifier", kind=None, why=why) if each is rarest else each
            for each in guesses
        ]


def _with_region(guesses: list[Guess], profile: Profile) -> list[Guess]:
    """The coarsest complete column that is a region by name and has no region below k."""
    counted = counts_units(guesses, profile)
    candidates = [
        each
        for each in guesses
        if each.column is not None
        and each.role == "quasi_identifier"
        and each.kind == "nominal"
        and each.column.present == profile.records
        and says(each.name, "region")
        and profile.classes([each.column], K, counted=counted)[3] >= K
    ]
    if not candidates:
        return guesses
    region = min(candidates, key=lambda each: each.column.distinct if each.column else 0)
    why = f"a region by name, {region.why}"
    return [replace(each, role="region", kind=None, why=why) if each is region else each for each in guesses]


def _without_small_region(guesses: list[Guess], profile: Profile) -> list[Guess]:
    """A region that rejected records leave below k is protected instead."""
    if by_pattern(guesses, profile):
        return guesses
    accepted = profile.accepting([each.column for each in guesses if each.kind == "numeric" and each.column])
    counted = counts_units(guesses, profile)
    return [
        replace(each, role="quasi_identifier", kind="nominal", why="a region too small for k")
        if each.role == "region"
        and each.column is not None
        and profile.classes([each.column], K, accepted, counted)[3] < K
        else each
        for each in guesses
    ]


def _without_dependencies(guesses: list[Guess], profile: Profile) -> list[Guess]:
    """A column published as it is must not tell a protected one: it is protected, too."""
    result = []
    for each in guesses:
        if each.role in ("region", "sensitive", "weight") and _tells(each, guesses, profile):
            kind = "numeric" if each.role == "weight" else "nominal"
            why = f"it would be {each.role}, but it tells another variable"
            each = replace(each, role="quasi_identifier", kind=kind, why=why)
        result.append(each)
    return result


def _tells(each: Guess, guesses: list[Guess], profile: Profile) -> bool:
    """Whether every value goes with one value of a protected category, and most values occur again."""
    assert each.column is not None
    alone, _, uniques, _ = profile.classes([each.column], K)
    if profile.records - uniques < REPEATED_SHARE * profile.records:
        return False
    others = [
        other.column
        for other in guesses
        if other.role == "quasi_identifier" and other.kind == "nominal" and other.column is not None
        if other.column is not each.column and other.column.distinct > 1
    ]
    if not others:
        return False
    glance = profile.glance([each.column, *others])
    seen = len(glance.drop_duplicates(each.column.label))
    return any(
        profile.classes([each.column, other], K)[0] == alone
        for other in others
        if len(glance.drop_duplicates([each.column.label, other.label])) == seen
    )


def _with_some_quasi_identifier(guesses: list[Guess]) -> list[Guess]:
    """A specification needs one: the column with fewest values, where nothing looked like one."""
    if any(each.role == "quasi_identifier" for each in guesses):
        return guesses
    usable = [each for each in guesses if each.column is not None and each.column.present]
    if not usable:
        raise InputRejected("The file has no column that could be a quasi-identifier.")
    chosen = min(usable, key=lambda each: each.column.distinct if each.column else 0)
    why = f"nothing else looked like a quasi-identifier; {chosen.why}"
    return [
        replace(each, role="quasi_identifier", kind="nominal", why=why) if each is chosen else each
        for each in guesses
    ]
