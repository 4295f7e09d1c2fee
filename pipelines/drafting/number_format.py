"""How numbers are written in the text of a CSV: decimal mark, and marks between thousands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from microguard.pipelines.engine.sql_text import quoted_text

MATCHING = 0.95
"""Share of a column's values that read as numbers where it is one; the rest are marks of missing values."""
BLANKS = " \u00a0\u202f"
"""What stands between thousands where a blank does: plain, unbroken and narrow."""

_END = r"\s*$"
_BEGIN = r"^\s*[+-]?"


@dataclass(frozen=True)
class NumberFormat:
    """A way to write numbers.

    Attributes
    ----------
    decimal : str
        "." or ",".
    thousands : str or None
        Mark between groups of three digits: ".", ",", " " (any blank) or "'".
    """

    decimal: str = "."
    thousands: str | None = None

    @property
    def number(self) -> str:
        """Regular expression of a number."""
        point = f"[{self.decimal}]"
        plain = f"([0-9]+{point}?[0-9]*|{point}[0-9]+)([eE][+-]?[0-9]+)?"
        return f"{_BEGIN}({plain}{self._or_grouped('+')}){_END}"

    @property
    def whole(self) -> str:
        """Regular expression of a whole number, also one written with a decimal 0 ("2.0")."""
        return f"{_BEGIN}([0-9]{{1,18}}([{self.decimal}]0*)?{self._or_grouped('{1,5}', '0')}){_END}"

    @property
    def with_separator(self) -> str:
        """Regular expression of a number that has a mark of thousands."""
        return f"{_BEGIN}({self._grouped('+')}){_END}"

    @property
    def unambiguous(self) -> str:
        """Of a number that no writing with three decimals has: short and bare, two marks, or both marks."""
        part = f"[{self.decimal}][0-9]*"
        once = f"[0-9]{{1,3}}({self._mark}[0-9]{{3}})+{part}"
        return f"{_BEGIN}([0-9]{{1,3}}({part})?|{self._grouped('{2,}')}|{once}){_END}"

    def plain(self, text: str) -> str:
        """SQL of the same number as a cast reads it."""
        if self.thousands is not None:
            text = f"regexp_replace({text}, {quoted_text(self._mark)}, '', 'g')"
        return f"replace(trim({text}), '{self.decimal}', '.')"

    @property
    def _mark(self) -> str:
        return f"[{BLANKS}]" if self.thousands == " " else f"[{self.thousands}]"

    def _grouped(self, groups: str, decimals: str = "0-9") -> str:
        return f"[0-9]{{1,3}}({self._mark}[0-9]{{3}}){groups}([{self.decimal}][{decimals}]*)?"

    def _or_grouped(self, groups: str, decimals: str = "0-9") -> str:
        return "" if self.thousands is None else f"|{self._grouped(groups, decimals)}"


FORMATS = tuple(  # of those under which as many columns are numbers, the first one that is believed
    NumberFormat(decimal, thousands)
    for thousands in (",", ".", " ", "'", None)
    for decimal in (".", ",")
    if decimal != thousands
)


def detect_number_format(columns: Iterable[Sequence[str]]) -> NumberFormat:
    """The writing under which most columns are numbers.

    Marks between thousands are believed where a column has them in a way that decimals do not have: with
    shorter numbers that lack them ("950" beside "1,234"), twice in a number, or beside a decimal mark.

    Parameters
    ----------
    columns : iterable of sequences of str
        Distinct values of each column of text.
    """
    numeric = dict.fromkeys(FORMATS, 0)
    believed = {style for style in FORMATS if style.thousands is None}
    for values in columns:
        if not any(re.search("[0-9][^0-9]", value) for value in values):
            continue  # as much a number under every writing: it decides nothing
        for style in FORMATS:
            if _matching(style.number, values) >= MATCHING * len(values):
                numeric[style] += 1
                certain = style in believed or (
                    _matching(style.with_separator, values) and _matching(style.unambiguous, values)
                )
                if certain:
                    believed.add(style)
    return max((style for style in FORMATS if style in believed), key=lambda style: numeric[style])


def _matching(pattern: str, values: Sequence[str]) -> int:
    expression = re.compile(pattern)
    return sum(expression.search(value) is not None for value in values)
