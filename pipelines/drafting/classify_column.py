"""Classify a single column: guess its role and kind from its type, its name and its distribution."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
from microguard.pipelines.drafting.keys import is_registration_number, is_serial_number
from microguard.pipelines.drafting.names import name_indicates
from microguard.pipelines.drafting.profile import Column, Profile

FEWEST_CATEGORIES, MOST_CATEGORIES, RECORDS_PER_CATEGORY = 30, 1_000, 50
"""A nominal variable has at most one category per 50 records, with a maximum between 30 and 1,000 categories.
A column with more distinct values is a name or free text."""
MOST_CODES = 20
"""An integer variable with at most this many distinct values is a code."""
LONG_TEXT = 60
MANY_WORDS = 4.0
NEARLY_ALL = 0.8
"""Minimum share of values with the form of a date, or of distinct values, for dates and keys."""
MOST_MISSING = 0.5
"""Maximum share of records in which a numeric variable may be missing."""


@dataclass(frozen=True)
class Guess:
    """The guessed role and kind of a column, with the reason."""

    name: str
    role: str
    kind: str | None
    why: str
    column: Column | None = None


def classify_column(column: Column, profile: Profile, body: bool) -> Guess:
    """Guess the role and kind of a column.

    Parameters
    ----------
    column : Column
    profile : Profile
    body : bool
        Whether the file has measures of the body, so that "weight" may be one of them.
    """
    records = profile.records

    def as_(role: str, kind: str | None, why: str) -> Guess:
        return Guess(column.name, role, kind, why, column)

    def named(what: str) -> bool:
        return name_indicates(column.name, what)

    count = f"{column.distinct:,} distinct value" + ("s" if column.distinct != 1 else "")
    if column.present == 0:
        return as_("identifier", None, "no values")
    if pa.types.is_temporal(column.type) or column.dates >= NEARLY_ALL * column.present or named("date"):
        return as_("identifier", None, "date-like")
    if column.distinct == 1 and column.present == records:
        return as_("other", None, "the same value in every record")
    is_key = named("key") and is_key_type(column)
    if column.distinct == column.present == records and is_key:
        return as_("unit", None, "a key by name, all values distinct")
    if _is_household(column, records):
        if column.present == records:
            return as_("household", None, f"a household by name, {count}")
        return as_("identifier", None, "a key by name, with missing values")
    if is_key and column.distinct > min(max_categories(records), MOST_CODES) and not named("amount"):
        return as_("identifier", None, f"a key by name, {count}")
    if _is_numeric(column, profile):
        return _number(column, profile, count, body)
    if column.distinct > max_categories(records) or _is_text(column) or named("name"):
        return as_("identifier", None, f"free text or a name, {count}")
    if named("sensitive"):
        return as_("sensitive", "nominal", f"sensitive by name, {count}")
    return as_("quasi_identifier", "nominal", count)


def _number(column: Column, profile: Profile, count: str, body: bool) -> Guess:
    records = profile.records
    few = column.distinct <= MOST_CODES
    categories = column.distinct <= max_categories(records)
    amount, code = name_indicates(column.name, "amount"), name_indicates(column.name, "code")
    nominal = Guess(column.name, "quasi_identifier", "nominal", count, column)
    weight = name_indicates(column.name, "weight") and not body
    if weight and column.finite == column.present == records and column.range[0] >= 0:
        zeros = records - column.positive
        where = f"0 in {zeros:,} records" if zeros else "positive in every record"
        return replace(nominal, role="weight", kind=None, why=f"a weight by name, {where}")
    if column.is_whole and (few or (code and categories)):
        return replace(nominal, why=f"whole numbers that are codes, {count}")
    if column.is_whole and code:
        return replace(nominal, role="identifier", kind=None, why=f"a code by name, {count}")
    if is_serial_number(column, profile.numbers(column)):
        why = "a serial number: distinct, evenly spread whole numbers"
        return replace(nominal, role="identifier", kind=None, why=why)
    nearly_all = column.distinct >= NEARLY_ALL * column.present
    if nearly_all and not amount and is_registration_number(column, profile.numbers(column)):
        return replace(nominal, role="identifier", kind=None, why=f"a registration number, {count}")
    if column.distinct == 1 or column.finite < (1 - MOST_MISSING) * records:
        return replace(nominal, role="identifier", kind=None, why="a number that is missing in many records")
    return replace(nominal, kind="numeric", why=f"numbers, {count}")


def _is_numeric(column: Column, profile: Profile) -> bool:
    """Return whether a column is numeric. Only text of a CSV can be numeric, unless it has leading zeros."""
    if pa.types.is_boolean(column.type):
        return False
    if (
        pa.types.is_integer(column.type)
        or pa.types.is_floating(column.type)
        or pa.types.is_decimal(column.type)
    ):
        return True
    return profile.source.format == "csv" and column.numbers == column.present and not column.zero_led


def is_key_type(column: Column) -> bool:
    """Return whether a column is text or has whole numbers; pandas writes a key with gaps as 1001.0."""
    return column.is_whole or not (column.numbers or pa.types.is_boolean(column.type))


def _is_household(column: Column, records: int) -> bool:
    """Return whether a column is a key of households by its name, and not their income or type."""
    if (
        not name_indicates(column.name, "household")
        or name_indicates(column.name, "amount")
        or name_indicates(column.name, "code")
    ):
        return False
    return is_key_type(column) and 0.05 * records < column.distinct < records


def _is_text(column: Column) -> bool:
    return column.widths[1] > LONG_TEXT or column.words >= MANY_WORDS


def max_categories(records: int) -> int:
    """Return the maximum number of categories of a nominal variable in a file with so many records."""
    return min(max(records // RECORDS_PER_CATEGORY, FEWEST_CATEGORIES), MOST_CATEGORIES)
