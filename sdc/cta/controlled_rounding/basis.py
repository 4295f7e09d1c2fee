"""Simplex basis of the constraints of a table; cells enter and leave it one by one.

The basic cells compensate a change of a nonbasic cell so that all constraints still hold. The basis starts
empty; each linearly independent constraint gets one basic cell. The inverse is stored in product form with
one eta vector per pivot. The basis is refactorised when this eta file has grown too long (Dantzig and
Orchard-Hays 1954).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import kernel
from scipy import sparse

#: Entries of a direction below this are treated as zero. Rounding errors of sums of a few thousand terms are
#: smaller.
ENTRY_TOLERANCE = 1e-9
#: Smallest pivot element; smaller ones make the basis ill-conditioned.
PIVOT = 1e-6
NONE = -1
#: The basis is refactorised once the eta file exceeds both this size and this multiple of its initial size.
_MANY_ENTRIES, _GROWTH = 50_000, 3


class _Columns(NamedTuple):
    pointers: np.ndarray
    rows: np.ndarray
    entries: np.ndarray


class _Etas(NamedTuple):
    rows: np.ndarray
    pivots: np.ndarray
    ends: np.ndarray
    places: np.ndarray
    entries: np.ndarray


class Basis:
    """Basic cells: each constraint has one, which compensates the changes of other cells.

    Parameters
    ----------
    relations : sparse (constraints, cells)

    Attributes
    ----------
    cells : (constraints,) basic cell of each constraint, `NONE` if it has none
    direction : (constraints,)
        Decrease of each basic cell if the cell last passed to `ftran` increases by one.
    touched : (constraints,) positions of the nonzero entries of `direction`; the first `count` are valid
    count : int
    work : int
        Number of eta entries read.
    """

    def __init__(self, relations: sparse.csr_matrix) -> None:
        columns = sparse.csc_matrix(relations)
        rows = relations.shape[0]
        self._columns = _Columns(
            columns.indptr.astype(np.int64), columns.indices.astype(np.int64), columns.data.astype(float)
        )
        self.cells = np.full(rows, NONE, dtype=np.int64)
        self.direction, self.touched, self.count = np.zeros(rows), np.empty(rows, dtype=np.int64), 0
        self._marked = np.zeros(rows, dtype=bool)
        self._etas = _Etas(
            rows=np.empty(64, dtype=np.int64),
            pivots=np.empty(64),
            ends=np.zeros(65, dtype=np.int64),
            places=np.empty(1024, dtype=np.int64),
            entries=np.empty(1024),
        )
        self._size = self._filled = self._initial = self.work = 0

    def ftran(self, cell: int) -> int:
        """Compute the changes of the basic cells that compensate a change of a cell (FTRAN of the simplex
        method).

        Returns
        -------
        int
            The constraint without a basic cell in which the direction has its largest entry, or `NONE`.
        """
        self._clear()
        if self._filled > max(_MANY_ENTRIES, _GROWTH * self._initial):
            self._refactorise()
        return self._direction(cell)

    def pivot(self, row: int, cell: int) -> None:
        """Exchange the basic cell of a constraint for the cell last passed to `ftran`."""
        self.cells[row] = cell
        etas, needed = self._etas, self._filled + self.count
        if self._size + 1 >= len(etas.rows) or needed > len(etas.places):
            etas = etas._replace(
                rows=_longer(etas.rows), pivots=_longer(etas.pivots), ends=_longer(etas.ends)
            )
            while needed > len(etas.places):
                etas = etas._replace(places=_longer(etas.places), entries=_longer(etas.entries))
            self._etas = etas
        self._filled = _append(row, self.direction, self.touched, self.count, etas, self._size, self._filled)
        self._size += 1

    def _direction(self, cell: int) -> int:
        self.count, free_row, read = _solve(
            cell,
            self._columns,
            self.direction,
            self.touched,
            self._marked,
            self._etas,
            self._size,
            self.cells,
        )
        self.work += int(read)
        return int(free_row)

    def _refactorise(self) -> None:
        entered = np.sort(self.cells[self.cells != NONE])
        self.cells[:] = NONE
        self._size = self._filled = 0
        for cell in entered:
            row = self._direction(int(cell))
            # a cell that is linearly dependent on the others, within the tolerance, leaves the basis
            if row != NONE:
                self.pivot(row, int(cell))
            self._clear()
        self._initial = self._filled

    def _clear(self) -> None:
        _clear(self.direction, self.touched, self._marked, self.count)
        self.count = 0


def _longer(array: np.ndarray) -> np.ndarray:
    return np.concatenate([array, np.empty_like(array)])


@kernel
def _clear(direction, touched, marked, count):
    for at in range(count):
        direction[touched[at]], marked[touched[at]] = 0.0, False


@kernel
def _solve(cell, columns, direction, touched, marked, etas, size, cells):
    count, read = 0, size
    for at in range(columns.pointers[cell], columns.pointers[cell + 1]):
        row = columns.rows[at]
        direction[row], marked[row] = columns.entries[at], True
        touched[count] = row
        count += 1
    for eta in range(size):
        if direction[etas.rows[eta]] == 0.0:
            continue
        share = direction[etas.rows[eta]] / etas.pivots[eta]
        direction[etas.rows[eta]] = share
        read += etas.ends[eta + 1] - etas.ends[eta]
        for at in range(etas.ends[eta], etas.ends[eta + 1]):
            row = etas.places[at]
            left = direction[row] - share * etas.entries[at]
            direction[row] = left if abs(left) > ENTRY_TOLERANCE else 0.0
            if not marked[row]:
                marked[row] = True
                touched[count] = row
                count += 1
    free_row, largest = NONE, PIVOT
    for at in range(count):
        row = touched[at]
        if cells[row] == NONE and abs(direction[row]) > largest:
            free_row, largest = row, abs(direction[row])
    return count, free_row, read


@kernel
def _append(pivot_row, direction, touched, count, etas, size, filled):
    etas.rows[size], etas.pivots[size] = pivot_row, direction[pivot_row]
    for at in range(count):
        row = touched[at]
        if row != pivot_row and direction[row] != 0.0:
            etas.places[filled], etas.entries[filled] = row, direction[row]
            filled += 1
    etas.ends[size + 1] = filled
    return filled
