"""Linear system of one or several related variables in one population: unknowns, equations, intervals."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

#: Release numbers of rows that belong to no single release: rows from the layout of tables, and rows that
#: need several releases.
STRUCTURE, MIXED = -1, -2


@dataclass(frozen=True)
class System:
    """Unknown numbers, the published statements about them, and which of the numbers are secret.

    Attributes
    ----------
    key : (n,) uint64 array
        Identity of each unknown, independent of the rest of the system.
    units : (n,) int64 array
        Number of units over which an unknown is the sum; 0 for a cell of a table.
    secret : (n,) bool array
        Sensitive cells, and values of single units.
    k : (n,) int64 array
        Sums over fewer than k units are secret too; 0 for cells.
    holder : (n,) uint64 array
        The contributor of an unknown that has only one; 0 for others.
    rows : (m, n) csr_matrix
    low, high : (m,) arrays
        Interval of each row.
    row_release : (m,) int64 array
        Release that states the row, or `STRUCTURE`.
    said : (s,) int64 array
        Number of the unknown for each interval that a release states about a single unknown.
    said_low, said_high, said_gap, said_shown : (s,) arrays
        The interval, the minimum distance of the true value from the published one, and the published value.
    said_secret : (s,) bool array
        Whether the unknown is sensitive in the release itself.
    said_release : (s,) int64 array
    whole : bool
        Whether the unknowns are counts.
    positive : (n,) bool array
        Whether everybody knows that an unknown is not negative.
    truth, largest, second, last : (n,) arrays
        True value, two largest contributions and true value in the last period; NaN if unknown.
    values : (v,) array
        Public list of the values that a unit can have; empty if there is no list.
    """

    key: np.ndarray
    units: np.ndarray
    secret: np.ndarray
    k: np.ndarray
    holder: np.ndarray
    rows: sparse.csr_matrix
    low: np.ndarray
    high: np.ndarray
    row_release: np.ndarray
    said: np.ndarray
    said_low: np.ndarray
    said_high: np.ndarray
    said_gap: np.ndarray
    said_shown: np.ndarray
    said_secret: np.ndarray
    said_release: np.ndarray
    whole: bool
    positive: np.ndarray
    truth: np.ndarray
    largest: np.ndarray
    second: np.ndarray
    last: np.ndarray
    values: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def __len__(self) -> int:
        """Return the number of unknowns."""
        return len(self.key)

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the intervals of single unknowns, (n,), (n,), as stated by all releases together."""
        lower = np.where(self.positive, 0.0, -np.inf)
        upper = np.full(len(self), np.inf)
        np.maximum.at(lower, self.said, self.said_low)
        np.minimum.at(upper, self.said, self.said_high)
        return lower, upper

    def part(self, unknowns: np.ndarray, rows: np.ndarray) -> System:
        """Return the subsystem of some unknowns and rows; the rows must not contain other unknowns."""
        place = np.full(len(self), -1, np.int64)
        place[unknowns] = np.arange(len(unknowns))
        said = np.flatnonzero(place[self.said] >= 0)
        chosen = {name: getattr(self, name)[unknowns] for name in _OF_UNKNOWNS}
        stated = {name: getattr(self, name)[said] for name in _OF_STATEMENTS}
        stated["said"] = place[stated["said"]]
        matrix = self.rows[rows][:, unknowns]
        columns: dict[str, Any] = {**self._rows(rows), **chosen, **stated}
        return replace(self, rows=matrix, **columns)

    def with_rows(self, rows: np.ndarray) -> System:
        """Return the system with only the given rows, in the given order."""
        columns: dict[str, Any] = self._rows(rows)
        return replace(self, rows=self.rows[rows], **columns)

    def of_release(self, release: int) -> System:
        """Return the statements of one release together with the structure of tables."""
        rows = np.flatnonzero((self.row_release == release) | (self.row_release == STRUCTURE))
        said = self.said_release == release
        stated = {name: getattr(self, name)[said] for name in _OF_STATEMENTS}
        columns: dict[str, Any] = stated
        return replace(self.with_rows(rows), **columns)

    def _rows(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        return {name: getattr(self, name)[rows] for name in _OF_ROWS}


_OF_UNKNOWNS = ("key", "units", "secret", "k", "holder", "positive", "truth", "largest", "second", "last")
_OF_STATEMENTS = ("said", "said_low", "said_high", "said_gap", "said_shown", "said_secret", "said_release")
_OF_ROWS = ("low", "high", "row_release")
