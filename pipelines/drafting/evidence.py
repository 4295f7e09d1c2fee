"""Classification of a column by scored evidence: its name, its type and the distribution of its values.

Each rule adds points to one reading (class of a column). The reading with the most points is chosen; its
confidence is the distance to the second reading.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from microguard.pipelines.drafting.column import Column
from microguard.pipelines.drafting.entities import Entity
from microguard.pipelines.drafting.guess import LIKELY, SURE, UNSURE
from microguard.pipelines.drafting.shapes import (
    is_code_list,
    is_numbering,
    is_registration_number,
    is_serial_number,
)

READINGS = ("category", "place", "amount", "key", "household", "weight", "date", "text")
FEWEST_CATEGORIES, MOST_CATEGORIES, RECORDS_PER_CATEGORY = 30, 1_000, 50
"""Maximum number of categories of a nominal variable: one per 50 records, but at least 30 and at most 1,000.
A column with more distinct values is a name or free text, unless its name shows that it is a code."""
MIN_RECORDS_PER_CODE = 3
"""Minimum number of records per code if the name shows that a column is a code list; with fewer, codes may
identify units."""
MOST_CODES = 20
"""Maximum number of distinct values of an integer variable that is classified as a code."""
RECORDS_PER_PERIOD = 20
"""Minimum number of records per value of a period (2024Q1); with fewer, it is the date of an event."""
LONG_TEXT = 60
MANY_WORDS = 4.0
NEARLY_ALL = 0.8
"""Minimum shares for dates and keys: of values that have the form of a date, and of distinct values."""
NEARLY_UNIQUE = 0.98
"""Minimum share of distinct values in a key with some duplicates."""
SURE_POINTS, LIKELY_POINTS = 3, 2
"""Minimum difference of scores to the second best reading, for a "sure" and for a "likely" reading."""


@dataclass(frozen=True)
class Facts:
    """Facts about a column that the evidence rules use.

    Attributes
    ----------
    column : Column
    records : int
    csv : bool
        Whether texts can be numbers.
    numbers : (m,) float array
        Sampled numbers, without missing ones.
    entity : Entity or None
        The key whose values repeat.
    body : bool
        Whether the file has measures of the body, so that "weight" may be one of them.
    weight_signs : tuple of str
        Properties of sampling weights that its values have.
    """

    column: Column
    records: int
    csv: bool
    numbers: np.ndarray
    entity: Entity | None
    body: bool
    weight_signs: tuple[str, ...]

    def named(self, *concepts: str) -> bool:
        """Return whether the name has one of these concepts."""
        return self.column.named(*concepts)

    @property
    def few(self) -> bool:
        """Return whether there are at most `MOST_CODES` distinct values."""
        return self.column.distinct <= MOST_CODES

    @property
    def categories(self) -> bool:
        """Return whether there are few enough distinct values for categories."""
        return self.column.distinct <= max_categories(self.records)

    @property
    def listed(self) -> bool:
        """Return the minimum number of records per value for a code list recognised by name."""
        return self.categories or MIN_RECORDS_PER_CODE * self.column.distinct <= self.column.present

    @property
    def numeric(self) -> bool:
        """Return whether all values are numbers. Text counts as a number only in a CSV, and without leading
        zeros.
        """
        if pa.types.is_boolean(self.column.type) or self.column.present == 0:
            return False
        typed = self.column.type
        if pa.types.is_integer(typed) or pa.types.is_floating(typed) or pa.types.is_decimal(typed):
            return True
        return self.csv and self.column.numbers == self.column.present and not self.column.zero_led

    @property
    def padded(self) -> bool:
        """Return whether values are digits of one width with leading zeros, as in codes and padded
        amounts.
        """
        return self.csv and self.column.zero_led > 0 and self.column.digits_of_one_width and not self.few

    @property
    def whole(self) -> bool:
        """Return whether values are numeric and all are whole."""
        return self.numeric and self.column.is_whole

    @property
    def label(self) -> bool:
        """Return whether values are text that is no number, or numbers with leading zeros."""
        return not self.numeric

    @property
    def mixed(self) -> bool:
        """Return whether most values of a CSV column are numbers, and some are other texts ("85+")."""
        return self.csv and NEARLY_ALL * self.column.present <= self.column.numbers < self.column.present

    @property
    def unique(self) -> bool:
        """Return whether all values are distinct, except for a few duplicates."""
        return self.column.distinct >= NEARLY_UNIQUE * self.records

    @property
    def text(self) -> bool:
        """Return whether values are long texts of many words."""
        return self.column.widths[1] > LONG_TEXT or self.column.words >= MANY_WORDS

    @property
    def pattern(self) -> bool:
        """Return whether texts have one width and one word each, as keys have."""
        least, most = self.column.widths
        return least == most >= 4 and self.column.words == 1

    @property
    def serial(self) -> bool:
        """Return whether values are distinct, evenly spread whole numbers."""
        return self.numeric and is_serial_number(self.column, self.numbers)

    @property
    def registration(self) -> bool:
        """Return whether values are whole numbers of one length that are nearly all distinct."""
        many = self.column.distinct >= NEARLY_ALL * self.column.present
        return self.numeric and many and is_registration_number(self.column, self.numbers)

    @property
    def of_a_body(self) -> bool:
        """Return whether values look like body weights in kilograms: at most 400 with one decimal, with other
        body measures in the file.
        """
        tenths = np.abs(self.numbers * 10 - np.round(self.numbers * 10)) < 1e-6
        return self.body and self.numeric and self.column.range[1] <= 400 and bool(tenths.all())

    @property
    def maybe_weight(self) -> bool:
        """Return whether numbers may be a sampling weight although neither name nor values show it."""
        if self.named("income", "age", "visible", "body") or _amount(self):
            return False
        levels = self.few and self.numeric and not self.whole and self.column.positive == self.records
        return len(self.weight_signs) == 1 or levels

    @property
    def alone(self) -> bool:
        """Return whether the records of a key have a single column in common, as those of a place or a fine
        code do.
        """
        entity = self.entity
        named = self.named("key", "entity", "household")
        return entity is not None and entity.kind == "cluster" and len(entity.shared) == 1 and not named

    @property
    def non_negative(self) -> bool:
        """Return whether values are numeric, present in every record and never below 0."""
        column = self.column
        return self.numeric and column.finite == column.present == self.records and column.range[0] >= 0


@dataclass(frozen=True)
class Rule:
    """Rule of evidence: points for a class of columns if a condition holds, and the reason."""

    reading: str
    points: int
    holds: Callable[[Facts], bool]
    why: str


def _amount(f: Facts) -> bool:
    return f.named("amount", "income") and not f.few


RULES = (
    Rule("category", 4, lambda f: f.few and f.whole, "whole numbers that are codes"),
    Rule("category", 4, lambda f: f.categories and f.label, "categories"),
    Rule("category", 2, lambda f: f.column.zero_led > 0 and f.listed, "digits with leading zeros"),
    Rule("category", 8, lambda f: f.column.zero_led > 0 and f.listed and f.column.digits_of_one_width,
         "digits of one width with leading zeros"),
    Rule("category", 7, lambda f: f.named("code") and f.listed and (f.whole or f.label)
         and not _amount(f), "a code by name"),
    Rule("category", 5, lambda f: f.whole and not f.named("amount", "key", "age", "line")
         and is_code_list(f.column, f.numbers), "whole numbers with the gaps of a code list"),
    Rule("category", 5, lambda f: f.whole and not f.named("amount", "key", "age", "line")
         and is_numbering(f.column, f.numbers), "a numbering without gaps, each number as frequent"),
    Rule("category", 6, lambda f: f.named("period") and f.whole and f.categories, "a period by name"),
    Rule("category", 20, lambda f: f.named("period") and f.few and f.label
         and f.column.dates >= NEARLY_ALL * f.column.present >= RECORDS_PER_PERIOD * f.column.distinct,
         "a period by name, with few values"),
    Rule("place", 8, lambda f: f.named("place") and f.listed and (f.whole or f.label)
         and not f.named("amount"), "a region by name"),
    Rule("amount", 4, lambda f: f.numeric and not f.few, "numbers"),
    Rule("amount", 4, lambda f: f.numeric and not f.whole, "numbers with decimals"),
    Rule("amount", 9, lambda f: f.padded and f.listed, "numbers with leading zeros"),
    Rule("amount", 9, lambda f: f.padded and f.named("income", "age") and not f.named("code", "key"),
         "numbers with leading zeros; the name is that of an amount"),
    Rule("key", 12, lambda f: f.named("key") and f.unique and f.column.is_key_type, "a key by name"),
    Rule("key", 8, lambda f: f.serial, "a serial number: evenly spread whole numbers"),
    Rule("key", 6, lambda f: f.registration and not _amount(f), "a registration number"),
    Rule("key", 6, lambda f: f.named("line") and f.column.is_key_type,
         "a number within the household by name"),
    Rule("key", 10, lambda f: f.label and f.unique and f.pattern, "texts of one width, nearly all distinct"),
    Rule("key", 8, lambda f: f.named("key", "entity") and not f.few and f.column.is_key_type
         and not f.named("amount"), "a key by name"),
    Rule("key", 9, lambda f: f.entity is not None and f.entity.kind != "household" and not f.alone,
         "a key whose values repeat"),
    Rule("key", 5, lambda f: f.alone, "a key whose values repeat"),
    Rule("key", 9, lambda f: f.named("code", "place") and not f.listed and f.column.is_key_type
         and not f.named("amount"), "a code by name, nearly all values distinct"),
    Rule("household", 10, lambda f: f.entity is not None and f.entity.kind == "household", "a household"),
    Rule("household", 9, lambda f: f.named("household") and f.column.is_key_type and not f.few
         and not f.named("amount", "code", "age") and f.column.distinct > 0.05 * f.records,
         "a household by name"),
    Rule("weight", 12, lambda f: f.named("weight") and f.non_negative and not f.of_a_body,
         "a weight by name"),
    Rule("weight", 7, lambda f: len(f.weight_signs) >= 2 and not f.named("amount", "income", "age",
         "visible"),
         "a weight by its values"),
    Rule("weight", 3, lambda f: len(f.weight_signs) >= 3, "several properties of weights"),
    Rule("date", 20, lambda f: pa.types.is_temporal(f.column.type), "a date by type"),
    Rule("date", 14, lambda f: f.column.dates >= NEARLY_ALL * f.column.present,
         "values with the form of dates"),
    Rule("date", 9, lambda f: f.named("date") and not f.few
         and (f.label or f.column.widths in ((6, 6), (8, 8))),
         "a date by name"),
    Rule("text", 9, lambda f: f.label and not f.categories, "free text or a name"),
    Rule("text", 8, lambda f: f.text and f.label and not f.few, "free text"),
    Rule("text", 12, lambda f: f.mixed and not f.categories,
         "numbers and texts: to protect it as a number, replace the texts by numbers or the missing mark"),
    Rule("text", 13, lambda f: f.column.with_unit >= NEARLY_ALL * f.column.present and not f.categories,
         "numbers with a unit: to protect it as a number, write the values without it"),
    Rule("text", 14, lambda f: f.named("coordinate") and f.numeric and not f.few,
         "a coordinate by name, which locates a unit"),
    Rule("text", 9, lambda f: f.named("name") and f.label and not f.few, "a name"),
)  # fmt: skip


@dataclass(frozen=True)
class Reading:
    """Class of a column, the reason, the confidence, and an alternative."""

    name: str
    why: str
    confidence: str
    second: str | None


def read_column(facts: Facts) -> Reading:
    """Return the class with the most points, the strongest reason for it, and its confidence."""
    points = dict.fromkeys(READINGS, 0)
    reasons: dict[str, tuple[int, str]] = {}
    for rule in RULES:
        if rule.holds(facts):
            points[rule.reading] += rule.points
            if rule.points > reasons.get(rule.reading, (0, ""))[0]:
                reasons[rule.reading] = rule.points, rule.why
    first, second, *_ = sorted(READINGS, key=lambda reading: (-points[reading], READINGS.index(reading)))
    distance = points[first] - points[second]
    if not points[first]:
        return Reading("text", "values of no known form", UNSURE, None)
    sure = SURE if distance >= SURE_POINTS else LIKELY if distance >= LIKELY_POINTS else UNSURE
    why = reasons[first][1]
    if first == "weight" and not facts.named("weight"):
        sure, why = UNSURE, f"{why}: {', '.join(facts.weight_signs)}"
    if first == "amount" and facts.maybe_weight:
        signs = (*facts.weight_signs, "few positive numbers")
        return Reading(first, f"{why}, {signs[0]} as sampling weights are", UNSURE, "weight")
    return Reading(first, why, sure, second if points[second] else None)


def max_categories(records: int) -> int:
    """Return the maximum number of categories of a nominal variable in a file of this size."""
    return min(max(records // RECORDS_PER_CATEGORY, FEWEST_CATEGORIES), MOST_CATEGORIES)
