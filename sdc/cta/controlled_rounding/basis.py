"""A basis of the relations of a table that grows and changes cell by cell: which cells give way to another.

Lines start without a cell of their own and take one each, if they depend on no other line. The inverse is
kept in product form, one eta vector a cell that entered, and made anew from the basis when it has grown
(Dantzig and Orchard-Hays 1954).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import kernel
from scipy import sparse

#: Entries of a direction below it are none: sums of a few thousand floats of size one leave less.
ENTRY_TOLERANCE = 1e-9
#: Entries that a cell may leave or enter the basis by; smaller ones make it ill conditioned.
PIVOT = 1e-6
NONE = -1
#: The product form is made anew once it has so many entries, and so many times those that it last began with.
_MANY_ENTRIES, _GROWTH = 50_000, 3


class _Columns(NamedTuple):
    pointers: np.ndarray
    lines: np.ndarray
    entries: np.ndarray


class _Etas(NamedTuple):
    rows: np.ndarray
    pivots: np.ndarray
    ends: np.ndarray
    lines: np.ndarray
    entries: np.ndarray


class Basis:
    """Cells that follow when another one moves.

    Parameters
    ----------
    relations : sparse (lines, cells)

    Attributes
    ----------
    cells : (lines,) cell that gives way for each line, `NONE` where none does
    direction : (lines,) of the cell last asked for: what its rise by one takes from the cell of each line
    touched : (lines,) positions of its entries, the first `count` of them
    count : int
    work : int
        Entries of the product form that were read.
    """

    def __init__(self, relations: sparse.csr_matrix) -> None:
        columns = sparse.csc_matrix(relations)
        lines = relations.shape[0]
        self._columns = _Columns(
            columns.indptr.astype(np.int64), columns.indices.astype(np.int64), columns.data.astype(float)
        )
        self.cells = np.full(lines, NONE, dtype=np.int64)
        self.direction, self.touched, self.count = np.zeros(lines), np.empty(lines, dtype=np.int64), 0
        self._marked = np.zeros(lines, dtype=bool)
        self._etas = _Etas(
            rows=np.empty(64, dtype=np.int64),
            pivots=np.empty(64),
            ends=np.zeros(65, dtype=np.int64),
            lines=np.empty(1024, dtype=np.int64),
            entries=np.empty(1024),
        )
        self._size = self._filled = self._began = self.work = 0

    def move(self, cell: int) -> int:
        """Compute the direction of a cell, and find the line without a cell that it would open most."""
        self._clear()
        if self._filled > max(_MANY_ENTRIES, _GROWTH * self._began):
            self._renew()
        return self._direction(cell)

    def enter(self, line: int, cell: int) -> None:
        """Let the cell last asked for give way for a line from now on."""
        self.cells[line] = cell
        etas, needed = self._etas, self._filled + self.count
        if self._size + 1 >= len(etas.rows) or needed > len(etas.lines):
            etas = etas._replace(
                rows=_longer(etas.rows), pivots=_longer(etas.pivots), ends=_longer(etas.ends)
            )
            while needed > len(etas.lines):
                etas = etas._replace(lines=_longer(etas.lines), entries=_longer(etas.entries))
            self._etas = etas
        self._filled = _append(line, self.direction, self.touched, self.count, etas, self._size, self._filled)
        self._size += 1

    def _direction(self, cell: int) -> int:
        self.count, open_line, read = _solve(
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
        return int(open_line)

    def _renew(self) -> None:
        entered = np.sort(self.cells[self.cells != NONE])
        self.cells[:] = NONE
        self._size = self._filled = 0
        for cell in entered:
            line = self._direction(int(cell))
            if line != NONE:  # one that depends on the others within the tolerance stays where it is
                self.enter(line, int(cell))
            self._clear()
        self._began = self._filled

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
        line = columns.lines[at]
        direction[line], marked[line] = columns.entries[at], True
        touched[count] = line
        count += 1
    for eta in range(size):
        if direction[etas.rows[eta]] == 0.0:
            continue
        share = direction[etas.rows[eta]] / etas.pivots[eta]
        direction[etas.rows[eta]] = share
        read += etas.ends[eta + 1] - etas.ends[eta]
        for at in range(etas.ends[eta], etas.ends[eta + 1]):
            line = etas.lines[at]
            left = direction[line] - share * etas.entries[at]
            direction[line] = left if abs(left) > ENTRY_TOLERANCE else 0.0
            if not marked[line]:
                marked[line] = True
                touched[count] = line
                count += 1
    open_line, largest = NONE, PIVOT
    for at in range(count):
        line = touched[at]
        if cells[line] == NONE and abs(direction[line]) > largest:
            open_line, largest = line, abs(direction[line])
    return count, open_line, read


@kernel
def _append(row, direction, touched, count, etas, size, filled):
    etas.rows[size], etas.pivots[size] = row, direction[row]
    for at in range(count):
        line = touched[at]
        if line != row and direction[line] != 0.0:
            etas.lines[filled], etas.entries[filled] = line, direction[line]
            filled += 1
    etas.ends[size + 1] = filled
    return filled
