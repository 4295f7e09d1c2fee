"""Counts of the values of one column, and concepts that its name contains."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Column:
    """Counts of the values of one column.

    Attributes
    ----------
    name : str
    label : str
        Name of the column in the queries of `Profile`.
    type : pyarrow.DataType
    present : int
        Number of values that are not missing.
    distinct : int
        Number of distinct values that are not missing.
    numbers, whole, dates, years, zero_led : int
        Number of values that are, or can be parsed as, a number, a whole number, a date or time, that contain
        a year of four digits, and numbers with leading zeros ("007").
    with_unit : int
        Number of texts that are a number with a sign of currency or a unit.
    positive, finite, round : int
        Number of positive numbers, of numbers up to `LARGEST_NUMBER`, and of multiples of ten.
    range : tuple of float
        Smallest and largest number, 0 if there is none.
    missing_codes, doubtful_codes : tuple of int
        Numeric codes that are treated as missing values, and numbers that may be such codes.
    widths : tuple of int
        Smallest and largest number of characters.
    words : float
        Mean number of words.
    concepts : frozenset of str
        Concepts of the name, by `concepts_of` and the codebook that the file follows.
    """

    name: str
    label: str
    type: pa.DataType
    present: int
    distinct: int
    numbers: int
    whole: int
    dates: int
    years: int
    with_unit: int
    zero_led: int
    positive: int
    finite: int
    round: int
    range: tuple[float, float]
    widths: tuple[int, int]
    words: float
    missing_codes: tuple[int, ...]
    doubtful_codes: tuple[int, ...]
    concepts: frozenset[str]

    def named(self, *concepts: str) -> bool:
        """Return whether the name contains one of these concepts."""
        return not self.concepts.isdisjoint(concepts)

    @property
    def is_key_type(self) -> bool:
        """Return whether values are text or whole numbers; pandas writes a key with missing values as
        1001.0.
        """
        return self.is_whole or not (self.numbers or pa.types.is_boolean(self.type))

    @property
    def is_whole(self) -> bool:
        """Return whether every value is a whole number; 6000.0 counts as one."""
        return 0 < self.present == self.whole

    @property
    def digits_of_one_width(self) -> bool:
        """Return whether every value is a text with this number of digits."""
        return self.is_whole and self.widths[0] == self.widths[1] >= 2

    @property
    def ties(self) -> int:
        """Return the number of records whose value also occurs in an earlier record."""
        return self.present - self.distinct
