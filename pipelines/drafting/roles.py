"""Guess roles and kinds from a profile, on the safe side: what might identify is an identifier until a person
says otherwise, and nothing that could is ever published as it is."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import pyarrow as pa

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

_WORDS = {
    "date": "date datetime timestamp time dob birth birthday birthdate datum geburtsdatum at",
    "key": "id ids uid uuid guid nr key pid ssn nin siren siret phone tel mobile iban",
    "name": "name names surname firstname lastname forename email mail address street url ip",
    "household": "household hh hhid menage haushalt dwelling family",
    "weight": "weight weights wgt wt pweight perwt hhwt fnlwgt afnlwgt poids gewicht",
    "region": "region nuts nuts1 nuts2 nuts3 state county province district canton department land",
    "sensitive": "diagnosis disease illness hiv icd religion ethnicity ethnic crime disability party",
    "code": "code nace naics isco isic sic type class category zip postcode postal plz activity",
}
"""Words of column names, in the languages of the files we met."""
_VOCABULARY = {what: frozenset(words.split()) for what, words in _WORDS.items()}


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
    guesses = [
        _first_guess(known[name], profile)
        if name in known
        else Guess(name, "identifier", None, "not a single value")
        for name in names
    ]
    guesses = _codes(_one_each(guesses), profile)
    guesses = _with_region(guesses, profile)
    guesses = _without_dependencies(guesses, profile)
    return _with_some_quasi_identifier(guesses)


def is_nameable(name: str) -> bool:
    """Whether a specification can name the column."""
    return bool(name.strip()) and not name.startswith("__")


def _named(column: Column, what: str) -> bool:
    """Whether a word of the column's name ("PersonId", "person_id", "person-id") says what it is."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", column.name)
    return not _VOCABULARY[what].isdisjoint(re.split(r"[\W_]+", parted.lower()))


def _first_guess(column: Column, profile: Profile) -> Guess:
    records = profile.records

    def as_(role: str, kind: str | None, why: str) -> Guess:
        return Guess(column.name, role, kind, why, column)

    count = f"{column.distinct:,} distinct value" + ("s" if column.distinct != 1 else "")
    if column.present == 0:
        return as_("identifier", None, "no value at all")
    if (
        pa.types.is_temporal(column.type)
        or column.dates >= NEARLY_ALL * column.present
        or _named(column, "date")
    ):
        return as_("identifier", None, "date-like")
    if column.distinct == 1 and column.present == records:
        return as_("other", None, "the same value everywhere")
    if column.distinct == column.present == records and _named(column, "key"):
        return as_("unit", None, "a key by name, no value twice")
    if _named(column, "household") and _is_key_type(column) and 0.05 * records < column.distinct < records:
        return as_("household", None, "a household by name") if column.present == records else _hidden(column)
    if _named(column, "key") and column.distinct > _most_categories(records):
        return as_("identifier", None, f"a key by name, {count}")
    if _is_numeric(column, profile):
        return _number(column, records, count)
    if column.distinct > _most_categories(records) or _is_text(column) or _named(column, "name"):
        return as_("identifier", None, f"free text or a name, {count}")
    if _named(column, "sensitive"):
        return as_("sensitive", "nominal", f"sensitive by name, {count}")
    return as_("quasi_identifier", "nominal", count)


def _hidden(column: Column) -> Guess:
    return Guess(column.name, "identifier", None, "a key by name, with missing values", column)


def _number(column: Column, records: int, count: str) -> Guess:
    whole = column.whole == column.present
    few = column.distinct <= MOST_CODES
    categories = column.distinct <= _most_categories(records)
    nominal = Guess(column.name, "quasi_identifier", "nominal", count, column)
    if _named(column, "weight") and column.positive == column.finite == column.present == records:
        return replace(nominal, role="weight", kind=None, why="a weight by name, positive everywhere")
    if whole and (few or (_named(column, "code") and categories)):
        return nominal
    if whole and (_named(column, "code") or _is_serial(column)):
        return replace(nominal, role="identifier", kind=None, why=f"a number that names, {count}")
    if column.distinct == 1 or column.finite < (1 - MOST_MISSING) * records:
        return replace(nominal, role="identifier", kind=None, why="a number that many records lack")
    return replace(nominal, kind="numeric")


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


def _is_serial(column: Column) -> bool:
    """Nearly no value twice and all of one length: a registration number rather than an amount."""
    least, most = column.widths
    return column.distinct >= NEARLY_ALL * column.present and least == most >= 5


def _is_key_type(column: Column) -> bool:
    return not pa.types.is_floating(column.type) and not pa.types.is_boolean(column.type)


def _is_text(column: Column) -> bool:
    return column.widths[1] > LONG_TEXT or column.words >= MANY_WORDS


def _most_categories(records: int) -> int:
    return min(max(records // RECORDS_PER_CATEGORY, FEWEST_CATEGORIES), MOST_CATEGORIES)


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
        if each.kind == "numeric" and column is not None and column.whole == column.present:
            coarse = column.distinct <= _most_categories(profile.records)
            if coarse and _tells(each, guesses, profile):
                each = replace(each, kind="nominal", why=f"a code that tells another, {each.why}")
        result.append(each)
    return result


def _with_region(guesses: list[Guess], profile: Profile) -> list[Guess]:
    """The coarsest complete column that is a region by name and has no region below k."""
    accepted = profile.accepting([each.column for each in guesses if each.kind == "numeric" and each.column])
    candidates = [
        each
        for each in guesses
        if each.column is not None
        and each.role == "quasi_identifier"
        and each.kind == "nominal"
        and each.column.present == profile.records
        and _named(each.column, "region")
        and profile.classes([each.column], K, accepted)[3] >= K
    ]
    if not candidates:
        return guesses
    region = min(candidates, key=lambda each: each.column.distinct if each.column else 0)
    why = f"a region by name, {region.why}"
    return [replace(each, role="region", kind=None, why=why) if each is region else each for each in guesses]


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
    assert each.column is not None
    alone = profile.classes([each.column], K)[0]
    return any(
        profile.classes([each.column, other.column], K)[0] == alone
        for other in guesses
        if other.role == "quasi_identifier" and other.kind == "nominal" and other.column is not None
        if other.column.distinct > 1
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
