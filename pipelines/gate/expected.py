"""Expectations of an agency's suite; `agency_suite` reads them and `agency_expectations` evaluates them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Keywords that name one column, and keywords that name several columns.
NAMES_ONE, NAMES_SEVERAL = ("column", "column_A", "column_B"), ("column_list", "column_set")


@dataclass(frozen=True)
class Expected:
    """One expectation of an agency's suite.

    Attributes
    ----------
    type : str
        Type such as ``expect_column_values_to_be_between``.
    kwargs : mapping
        Keywords, without those of `agency_suite.NOT_THEIRS`.
    """

    type: str
    kwargs: Mapping[str, Any]

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that the expectation names; none if it applies to the whole table."""
        one = [self.kwargs[name] for name in NAMES_ONE if name in self.kwargs]
        several = [each for name in NAMES_SEVERAL for each in self.kwargs.get(name) or ()]
        return tuple(map(str, [*one, *several]))

    @property
    def text(self) -> str:
        """Return type and columns as text, without limits and without sets of values."""
        return f"{self.type} of {', '.join(self.columns)}" if self.columns else self.type


@dataclass(frozen=True)
class AgencySuite:
    """Agency's suite; every expectation in it can be judged.

    Attributes
    ----------
    path : str
        Path in the specification.
    name : str
    expectations : tuple of Expected
        At least one expectation, in the order of the file.
    """

    path: str
    name: str
    expectations: tuple[Expected, ...]
