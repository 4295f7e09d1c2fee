"""Records that the workbench measures: read once, and recoded in memory by the specification."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from microguard.pipelines.draft import draft_records
from microguard.pipelines.drafting.column import Column
from microguard.pipelines.drafting.profile import Profile
from microguard.pipelines.drafting.sniff import sniff
from microguard.pipelines.workbench.files import Files
from microguard.schemas.errors import SpecificationError
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.sections import Variable

MOST_RECODES = 4
"""Number of stored recodes of a column, so that undoing a change needs no new computation."""


@dataclass(frozen=True)
class Values:
    """Recoded values of a column, in the order of `Profile.values`.

    Attributes
    ----------
    codes : (n,) int64 array
        Code of each value, -1 where it is missing.
    names : sequence of str
        The value of each code, in ascending order.
    numbers : (n,) float64 array or None
        The same values as numbers, NaN where missing; None if they are categories.
    """

    codes: np.ndarray
    names: Sequence[Any]
    numbers: np.ndarray | None = None

    @property
    def amounts(self) -> np.ndarray:
        """Return the numbers of a numeric column."""
        assert self.numbers is not None
        return self.numbers

    @classmethod
    def from_series(cls, series: pd.Series) -> Values:
        """Build values from a series of numbers or text."""
        codes, names = pd.factorize(series, sort=True)
        numbers = series.to_numpy(np.float64) if pd.api.types.is_float_dtype(series) else None
        return cls(codes.astype(np.int64), list(names), numbers)


class Data:
    """File in memory, with the guessed roles of its columns.

    Parameters
    ----------
    named : str
        The input as the user named it.

    Attributes
    ----------
    profile : Profile
    draft : Draft
    guesses : mapping of column to Guess
    files : Files
    """

    def __init__(self, named: str) -> None:
        self.files = Files(named)
        self.profile = Profile(sniff(named))
        self.draft = draft_records(self.profile)
        self.guesses = {each.name: each for each in self.draft.guesses}
        self.columns: dict[str, Column] = {each.name: each for each in self.profile.columns}
        self._read: dict[str, pd.Series] = {}
        self._recoded: dict[tuple[str, str], Values] = {}
        self._lock = threading.Lock()

    def values(self, name: str, variable: Variable, specification: Specification) -> Values:
        """Return the values of a column as the specification recodes them.

        Raises
        ------
        InputRejected, SpecificationError
            If the column has no values that can be profiled, its hierarchy cannot be read, or a run would
            refuse its missing codes.
        """
        if name not in self.columns:
            raise SpecificationError(
                f"variables.{name}: expected a column of the file with numbers, text or dates, found none "
                "of that name. Change its role to identifier."
            )
        key = name, repr((sorted(variable.recodes.items()), variable.kind, _written(variable, specification)))
        with self._lock:
            if name not in self._read:
                self._read[name] = self.profile.values(self.columns[name])
            if key not in self._recoded:
                kind = _kind(self.columns[name], variable, specification)
                series = recoded(name, self._read[name], variable, specification, kind)
                self._recoded[key] = Values.from_series(series)
                self._forget(name)
            return self._recoded[key]

    def _forget(self, name: str) -> None:
        """Keep the most recently used recodes of a column, and delete older ones."""
        keys = [key for key in self._recoded if key[0] == name]
        for key in keys[:-MOST_RECODES]:
            del self._recoded[key]


def _written(variable: Variable, specification: Specification) -> object:
    """Return the modification time of a variable's hierarchy, so that a corrected hierarchy is read again."""
    if variable.hierarchy is None:
        return None
    try:
        status = os.stat(specification.resolve(variable.hierarchy))
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _kind(column: Column, variable: Variable, specification: Specification) -> str | None:
    """Return the type that a column has in a run; None if it is text."""
    from microguard.pipelines.intake.columns import is_number

    if specification.input.format == "csv":
        return "double" if is_number(variable) else None
    return None if str(column.type).endswith(("string", "string_view")) else str(column.type)


def recoded(
    name: str,
    series: pd.Series,
    variable: Variable,
    specification: Specification | None,
    kind: str | None = "double",
) -> pd.Series:
    """Recode numbers or text in the order of a run: year, missing codes, then limits, bands or a level.

    Parameters
    ----------
    kind : str or None
        Type of the column in a run; None if it is text, even if each text is a number.

    Raises
    ------
    InputRejected, SpecificationError
        If a run would refuse the recodes or the values.
    """
    if variable.date is not None:
        from microguard.pipelines.intake.typed import YEAR

        series = series.astype("string").str.extract(f"({YEAR})", expand=True)[0].astype(float)
    if variable.missing:
        series = series.where(~_is_missing(name, series, variable, specification, kind))
    if variable.hierarchy is not None:
        from microguard.pipelines.intake.recode import hierarchy

        level = variable.level or 1
        assert specification is not None
        codes = hierarchy(specification.resolve(variable.hierarchy), level, name)
        return _as_text(series).map(codes)
    if not pd.api.types.is_float_dtype(series):
        return series
    if variable.bands is not None:
        from microguard.pipelines.intake.recode import band_labels

        labels = np.array(band_labels(variable.bands), dtype=object)
        banded = pd.Series(labels[np.searchsorted(variable.bands, series.to_numpy(), side="right")])
        return banded.where(series.notna().to_numpy())
    if variable.round_to is not None:
        digits = max(0, -int(Decimal(str(variable.round_to)).normalize().as_tuple().exponent))
        series = (np.rint(series / variable.round_to) * variable.round_to).round(digits)
    return series.clip(lower=variable.bottom_code, upper=variable.top_code)


def _is_missing(
    name: str, series: pd.Series, variable: Variable, specification: Specification | None, kind: str | None
) -> pd.Series:
    """Return whether each value is a missing code, by the same comparison as in a run."""
    from microguard.pipelines.intake.recode import missing_codes

    texts, codes = missing_codes(name, variable, kind)
    if pd.api.types.is_float_dtype(series):
        numbers = series
    else:
        decimal = "." if specification is None else specification.input.decimal
        numbers = pd.to_numeric(series.str.strip().str.replace(decimal, "."), errors="coerce")
    return _as_text(series).isin(texts) | numbers.isin(codes)


def _as_text(series: pd.Series) -> pd.Series:
    """Return numbers as text; whole numbers have no decimal point."""
    if not pd.api.types.is_float_dtype(series):
        return series
    return series.map(
        lambda value: None if value != value else str(int(value)) if value == int(value) else str(value)
    )
