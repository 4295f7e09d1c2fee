"""Number format of a CSV: its decimal mark and its thousands separator."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from microguard.pipelines.engine.sql_text import quoted_text
from microguard.schemas.specification.section import BLANKS, MINUS

MATCHING = 0.95
"""Minimum share of numbers in a numeric column; its other values are missing marks."""
_END = r"\s*$"
_BEGIN = rf"^\s*[+{MINUS}-]?"


@dataclass(frozen=True)
class NumberFormat:
    """A number format.

    Attributes
    ----------
    decimal : str
        Decimal mark: "." or ",".
    thousands : str or None
        Thousands separator: ".", ",", " " (any blank) or "'".
    """

    decimal: str = "."
    thousands: str | None = None

    @property
    def number(self) -> str:
        """Return the regular expression of a number."""
        point = f"[{self.decimal}]"
        plain = f"([0-9]+{point}?[0-9]*|{point}[0-9]+)([eE][+-]?[0-9]+)?"
        return f"{_BEGIN}({plain}{self._or_grouped('+')}){_END}"

    @property
    def whole(self) -> str:
        """Return the regular expression of a whole number, also if it is written with decimal zeros
        ("2.0").
        """
        return f"{_BEGIN}([0-9]{{1,18}}([{self.decimal}]0*)?{self._or_grouped('{1,5}', '0')}){_END}"

    @property
    def with_separator(self) -> str:
        """Return the regular expression of a number with a thousands separator."""
        return f"{_BEGIN}({self._grouped('+')}){_END}"

    @property
    def unambiguous(self) -> str:
        """Return the regular expression of a number whose separator cannot be a decimal mark with three
        decimals.

        Such a number has at most three digits, two separators, or a separator and a decimal mark.
        """
        part = f"[{self.decimal}][0-9]*"
        once = f"[0-9]{{1,3}}({self._mark}[0-9]{{3}})+{part}"
        return f"{_BEGIN}([0-9]{{1,3}}({part})?|{self._grouped('{2,}')}|{once}){_END}"

    def plain(self, text: str) -> str:
        """Return SQL that converts the text to a format that CAST accepts."""
        if self.thousands is not None:
            text = f"regexp_replace({text}, {quoted_text(self._mark)}, '', 'g')"
        return f"replace(replace(trim({text}), '{self.decimal}', '.'), '{MINUS}', '-')"

    @property
    def _mark(self) -> str:
        return f"[{BLANKS}]" if self.thousands == " " else f"[{self.thousands}]"

    def _grouped(self, groups: str, decimals: str = "0-9") -> str:
        return f"[0-9]{{1,3}}({self._mark}[0-9]{{3}}){groups}([{self.decimal}][{decimals}]*)?"

    def _or_grouped(self, groups: str, decimals: str = "0-9") -> str:
        return "" if self.thousands is None else f"|{self._grouped(groups, decimals)}"


#: Formats in order of preference, which decides if several fit equally many columns.
FORMATS = tuple(
    NumberFormat(decimal, thousands)
    for thousands in (",", ".", " ", "'", None)
    for decimal in (".", ",")
    if decimal != thousands
)


def detect_number_format(columns: Iterable[Sequence[str]]) -> NumberFormat:
    """Return the format under which the most columns are numbers.

    A format with a thousands separator is accepted only if a column excludes that the separator is a decimal
    mark: it has shorter numbers without one ("950" and "1,234"), two separators in a number, or a separator
    and a decimal mark.

    Parameters
    ----------
    columns : iterable of sequences of str
        Distinct values of each text column.
    """
    numeric = dict.fromkeys(FORMATS, 0)
    accepted = {style for style in FORMATS if style.thousands is None}
    for values in columns:
        if not any(re.search("[0-9][^0-9]", value) for value in values):
            continue  # the values are numbers in every format, or in none
        for style in FORMATS:
            if _matching(style.number, values) >= MATCHING * len(values):
                numeric[style] += 1
                certain = style in accepted or (
                    _matching(style.with_separator, values) and _matching(style.unambiguous, values)
                )
                if certain:
                    accepted.add(style)
    return max((style for style in FORMATS if style in accepted), key=lambda style: numeric[style])


def _matching(pattern: str, values: Sequence[str]) -> int:
    expression = re.compile(pattern)
    return sum(expression.search(value) is not None for value in values)
