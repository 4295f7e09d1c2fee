"""How many records and values a nominal method has changed, by variable."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from sdc.errors import InvalidParameter, ShapeMismatch


@dataclass(frozen=True)
class ChangedValues:
    """Records and values that are no longer what they were.

    Attributes
    ----------
    records : int
        Records compared.
    changed_records : int
        Records of which at least one value changed.
    by_variable : dict of name to int
        Records of which this value changed.
    by_number : (a + 1,) int64 array
        Records of which 0, 1, ..., a values changed.
    """

    records: int
    changed_records: int
    by_variable: dict[Hashable, int]
    by_number: np.ndarray

    @property
    def share_of_records(self) -> float:
        """Share of the records that changed, 0 to 1."""
        return self.changed_records / self.records if self.records else 0.0

    @property
    def share_of_values(self) -> float:
        """Share of all values that changed, 0 to 1."""
        values = self.records * len(self.by_variable)
        return sum(self.by_variable.values()) / values if values else 0.0

    def __add__(self, other: ChangedValues) -> ChangedValues:
        """Of two blocks together."""
        if list(self.by_variable) != list(other.by_variable):
            raise ShapeMismatch("blocks with other variables cannot be added up")
        return ChangedValues(
            self.records + other.records,
            self.changed_records + other.changed_records,
            {name: count + other.by_variable[name] for name, count in self.by_variable.items()},
            self.by_number + other.by_number,
        )


def changed_values(
    before: np.ndarray,
    after: np.ndarray,
    names: Sequence[Hashable],
    records: np.ndarray | None = None,
) -> ChangedValues:
    """Compare rows before and after.

    Parameters
    ----------
    before, after : (n, a) arrays of codes
        Row by row the same records; or one row for each pair of combinations, with `records`.
    names : a labels
    records : (n,) int array, optional
        Records that each row stands for; 1 each by default.

    Raises
    ------
    ShapeMismatch, InvalidParameter
        Arrays that do not fit together; negative numbers of records.
    """
    if before.shape != after.shape or before.ndim != 2 or before.shape[1] != len(names):
        raise ShapeMismatch(f"rows of shapes {before.shape} and {after.shape} for {len(names)} variables")
    rows = np.ones(len(before), np.int64) if records is None else np.asarray(records, np.int64)
    if rows.shape != (len(before),):
        raise ShapeMismatch(f"{rows.shape} records for {len(before)} rows")
    if (rows < 0).any():
        raise InvalidParameter("a row stands for a negative number of records")
    different = before != after
    number = different.sum(axis=1)
    by_number = np.bincount(number, weights=rows, minlength=len(names) + 1).astype(np.int64)
    return ChangedValues(
        records=int(rows.sum()),
        changed_records=int(by_number[1:].sum()),
        by_variable={name: int(rows[different[:, j]].sum()) for j, name in enumerate(names)},
        by_number=by_number,
    )
