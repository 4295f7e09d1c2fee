"""Expectations of an agency's suite, read by `agency_suite` and evaluated by `agency_expectations`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Keywords that name a column, and those that name several.
NAMES_ONE, NAMES_SEVERAL = ("column", "column_A", "column_B"), ("column_list", "column_set")


@dataclass(frozen=True)
class Expected:
    """One expectation.

    Attributes
    ----------
    type : str
        Such as ``expect_column_values_to_be_between``.
    kwargs : mapping
        Keywords, without those of `agency_suite.NOT_THEIRS`.
    """

    type: str
    kwargs: Mapping[str, Any]

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that it names; none if it is about the table."""
        one = [self.kwargs[name] for name in NAMES_ONE if name in self.kwargs]
        several = [each for name in NAMES_SEVERAL for each in self.kwargs.get(name) or ()]
        return tuple(map(str, [*one, *several]))

    @property
    def text(self) -> str:
        """Return its type and columns for a person, without limits and sets of values."""
        return f"{self.type} of {', '.join(self.columns)}" if self.columns else self.type


@dataclass(frozen=True)
class AgencySuite:
    """A suite whose every expectation can be judged.

    Attributes
    ----------
    path : str
        Path in the specification.
    name : str
    expectations : tuple of Expected
        In the order of the file; at least one.
    """

    path: str
    name: str
    expectations: tuple[Expected, ...]
