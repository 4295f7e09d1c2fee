"""Parts of a table around given cells, for small linear programs that search for tables of deviations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

#: Type of a function that returns the prices of cells by position; infinity if a cell cannot deviate.
Prices = Callable[[np.ndarray], np.ndarray]
#: Linear programs of a primary cell in large tables: maximum numbers of cells of the first and the second
#: program, and growth factor of further programs.
NEAR, _FURTHER = (250, 2_000), 8


class Neighbourhoods:
    """Search for the cells near given cells of a table.

    Parameters
    ----------
    relations : sparse (relations, cells)
    """

    def __init__(self, relations: sparse.csr_matrix) -> None:
        rows, columns = sparse.csr_matrix(relations), sparse.csc_matrix(relations)
        self._cells, self._cell_starts = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
        self._rows, self._row_starts = columns.indices.astype(np.int64), columns.indptr.astype(np.int64)
        self._signs, self._entries = columns.data, rows.data
        # work arrays of `around`, which resets only the used entries, so that its work does not grow with the
        # table
        self._inside, self._seen = np.zeros((2, rows.shape[1]), dtype=bool)
        self._links, self._linked = np.zeros(rows.shape[1], dtype=np.int64), np.zeros(rows.shape[0], bool)
        self._places, self._entered = np.zeros((2, max(rows.shape)), dtype=np.int64)

    def relations_of(self, cells: np.ndarray) -> np.ndarray:
        """Return the relations that contain some cells."""
        return np.unique(gather(self._rows, self._row_starts, cells))

    def members(self, relations: np.ndarray) -> np.ndarray:
        """Return the cells of each of some relations, concatenated."""
        return gather(self._cells, self._cell_starts, relations)

    def around(self, cells: np.ndarray, prices: Prices, most: int) -> np.ndarray:
        """Return the cells that can deviate together with the given cells, in ascending order.

        The first step adds all cells of the relations of these cells. Each later step adds the cells that are
        connected to the found cells by at least one relation more than the step before required. If there are
        no such cells, the required number starts again. If a step finds too many cells, it adds the cheapest
        ones and is the last step.

        Parameters
        ----------
        cells : positions
        prices : Prices
        most : int
            Number of cells at which the search ends.
        """
        inside, new, count = np.unique(cells), np.unique(cells), 0
        size = len(inside)
        self._inside[inside] = True
        found, seen, linked = [inside], [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        waiting, price = seen[0], np.empty(0)
        while True:
            count += 1
            if len(new):
                relations = gather(self._rows, self._row_starts, new)
                relations = self._once(relations[~self._linked[relations]])
                self._linked[relations] = True
                linked.append(relations)
                members = self.members(relations)
                np.add.at(self._links, members, 1)
                members = self._once(members[~self._seen[members]])
                self._seen[members] = True
                seen.append(members)
                prices_of = prices(members)
                able = np.isfinite(prices_of) & ~self._inside[members]
                waiting, price = (
                    np.concatenate([waiting, members[able]]),
                    np.concatenate([price, prices_of[able]]),
                )
            able = self._links[waiting] >= count
            near, near_price = waiting[able], price[able]
            left = most - size
            if len(near) > left:
                near = near[np.lexsort((near, near_price))[: max(left, 0)]]
            new = near
            if len(near) == 0:
                if count == 1 or len(waiting) == 0:
                    break
                count = 0
                continue
            self._inside[near] = True
            left_out = ~self._inside[waiting]
            waiting, price = waiting[left_out], price[left_out]
            found.append(near)
            size += len(near)
            if size >= most:
                break
        inside, members = np.sort(np.concatenate(found)), np.concatenate(seen)
        self._inside[inside] = self._seen[members] = False
        self._links[members] = 0
        self._linked[np.concatenate(linked)] = False
        return self._balanced(inside)

    def relations_around(self, cell: int, able: np.ndarray, steps: int, most: int) -> np.ndarray:
        """Return the relations within a few steps of a cell; a step leads through a cell that can deviate.

        Parameters
        ----------
        able : (cells,) boolean array
        most : number of relations after which no further step is made
        """
        found = self.relations_of(np.array([cell]))
        for _ in range(steps - 1):
            members = np.unique(self.members(found))
            more = self.relations_of(members[able[members]])
            if len(more) == len(found) or len(more) > most:
                break
            found = more
        return found

    def rows(self, relations: np.ndarray) -> tuple[np.ndarray, sparse.csc_matrix]:
        """Return the cells of some relations in ascending order, and these relations restricted to
        the cells.
        """
        sizes = self._cell_starts[relations + 1] - self._cell_starts[relations]
        cells, place = np.unique(self.members(relations), return_inverse=True)
        entries = gather(self._entries, self._cell_starts, relations)
        matrix = sparse.csr_matrix(
            (entries, place, np.concatenate([[0], np.cumsum(sizes)])), shape=(len(relations), len(cells))
        )
        return cells, matrix

    def _balanced(self, cells: np.ndarray) -> np.ndarray:
        """Remove cells that are alone in a relation until there are none."""
        starts = self._row_starts
        while len(cells):
            rows = gather(self._rows, starts, cells)
            np.add.at(self._entered, rows, 1)
            alone = self._entered[rows] == 1
            self._entered[rows] = 0
            if not alone.any():
                break
            owner = np.repeat(np.arange(len(cells)), starts[cells + 1] - starts[cells])
            kept = np.ones(len(cells), dtype=bool)
            kept[owner[alone]] = False
            cells = cells[kept]
        return cells

    def _once(self, positions: np.ndarray) -> np.ndarray:
        """Return the distinct elements of a list of cells or relations, without sorting."""
        order = np.arange(len(positions))
        self._places[positions] = order
        once: np.ndarray = positions[self._places[positions] == order]
        return once

    def part(self, cells: np.ndarray) -> sparse.csc_matrix:
        """Return the relations of some cells, restricted to the columns of these cells."""
        starts = self._row_starts
        used, place = np.unique(gather(self._rows, starts, cells), return_inverse=True)
        sizes = starts[cells + 1] - starts[cells]
        return sparse.csc_matrix(
            (
                gather(self._signs, starts, cells),
                place,
                np.concatenate([[0], np.cumsum(sizes)]),
            ),
            shape=(len(used), len(cells)),
        )


def sizes_up_to(cells: int) -> tuple[int, ...]:
    """Yield the sizes of the successive programs of a primary cell; the last one includes all cells."""
    sizes = list(NEAR)
    while sizes[-1] * _FURTHER < cells:
        sizes.append(sizes[-1] * _FURTHER)
    return (*sizes, cells)


def both_signs(matrix: sparse.csc_matrix) -> sparse.csc_matrix:
    """Return ``[matrix, -matrix]``."""
    starts = np.concatenate([matrix.indptr, matrix.indptr[1:] + matrix.nnz])
    data = np.concatenate([matrix.data, -matrix.data])
    return sparse.csc_matrix(
        (data, np.tile(matrix.indices, 2), starts), (matrix.shape[0], 2 * matrix.shape[1])
    )


def gather(array: np.ndarray, starts: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Concatenate several parts of an array."""
    sizes = starts[chosen + 1] - starts[chosen]
    offsets = np.repeat(starts[chosen] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    return array[offsets + np.arange(len(offsets))]
