"""Unit witnesses: a few cells that all deviate by the same amount, up or down, and satisfy all relations.

Examples are the four corners of a rectangle, or a cycle of cells in a table of two dimensions. Unit witnesses
are found by a depth-first search: take a relation that does not add up, change one more of its cells, and
repeat. The search uses exact integer arithmetic and takes a tenth of the time of a linear program. If it
finds no witness, nothing is proved.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.suppression.attackers import WATCHED
from microguard.sdc.suppression.knowledge import OUTSIDER, Knowledge
from scipy import sparse

#: Maximum numbers of cells: in a witness, tried to balance one relation, and visited in one search.
_DEPTH, _WIDTH, _WORK = 16, 24, 20_000
#: Maximum number of relations that are not yet balanced during a search.
_WAITING = 24


class _Table(NamedTuple):
    """Cells by relation, relations by cell, and two arrays that a search changes and restores: residuals and
    used cells.
    """

    row_starts: np.ndarray
    row_cells: np.ndarray
    row_signs: np.ndarray
    cell_starts: np.ndarray
    cell_rows: np.ndarray
    cell_signs: np.ndarray
    residual: np.ndarray
    used: np.ndarray


class UnitWitnesses:
    """Search for unit witnesses in one table.

    Parameters
    ----------
    relations : sparse (relations, cells) of -1, 0, 1
    knowledge : Knowledge
    """

    def __init__(self, relations: sparse.csr_matrix, knowledge: Knowledge) -> None:
        rows, columns = sparse.csr_matrix(relations), sparse.csc_matrix(relations)
        self._table = _Table(
            rows.indptr.astype(np.int64),
            rows.indices.astype(np.int64),
            rows.data.astype(np.int8),
            columns.indptr.astype(np.int64),
            columns.indices.astype(np.int64),
            columns.data.astype(np.int8),
            np.zeros(rows.shape[0], dtype=np.int8),
            np.zeros(rows.shape[1], dtype=np.bool_),
        )
        self._knowledge = knowledge
        self._fall, self._rise = np.array(knowledge.fall), np.array(knowledge.rise)
        self._weights = np.where(knowledge.watched, WATCHED, 1.0)
        self._found, self._signs = np.empty(_DEPTH, dtype=np.int64), np.empty(_DEPTH, dtype=np.int8)

    def of(
        self, primary: int, attacker: int, amount: float, suppressed: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the suppressed cells of a unit witness in ascending order, and their deviations; None if
        none is found.

        The result is the witness with the fewest cells among those found. A cell that some attacker knows
        counts as `WATCHED` cells.

        Parameters
        ----------
        amount : deviation of the primary
        suppressed : (cells,) boolean array
        """
        relations = self._table.cell_starts[primary + 1] - self._table.cell_starts[primary]
        if not 0 < relations < _WAITING:
            return None
        own = own_fall = own_rise = np.empty(0)
        if attacker != OUTSIDER:
            own, own_fall, own_rise = self._knowledge.entries(attacker)
            self._fall[own], self._rise[own] = own_fall, own_rise
        count = _search(
            self._table,
            primary,
            1 if amount > 0 else -1,
            abs(amount),
            (self._fall, self._rise, self._weights),
            suppressed,
            self._found,
            self._signs,
        )
        if attacker != OUTSIDER:
            self._fall[own], self._rise[own] = self._knowledge.fall[own], self._knowledge.rise[own]
        if count == 0:
            return None
        order = np.argsort(self._found[:count])
        return self._found[order], abs(amount) * self._signs[order].astype(float)


@kernel
def _search(table, primary, side, amount, bounds, suppressed, found, signs):
    """Write the cells and signs of the best witness; return its number of cells, 0 if none was found."""
    fall, rise, weights = bounds
    stack, stack_signs = np.empty(_DEPTH, np.int64), np.empty(_DEPTH, np.int8)
    spent = np.zeros(_DEPTH + 1)
    tried, tried_signs = np.empty((_DEPTH, _WIDTH), np.int64), np.empty((_DEPTH, _WIDTH), np.int8)
    keys, sums = np.empty((_DEPTH, _WIDTH)), np.empty((_DEPTH, _WIDTH))
    counts, next_one = np.zeros(_DEPTH, np.int64), np.zeros(_DEPTH, np.int64)
    waiting = np.empty(_WAITING, np.int64)
    left, work, best, size, depth = 0, 0, np.inf, 0, 0
    stack[0], stack_signs[0] = primary, side
    left = _apply(table, primary, side, waiting, left)
    entering = True
    while True:
        if entering:
            entering = False
            counts[depth] = next_one[depth] = 0
            if work <= _WORK and depth + 1 < _DEPTH:
                row = waiting[0]
                for number in range(1, left):
                    other = waiting[number]
                    here = table.row_starts[row + 1] - table.row_starts[row]
                    there = table.row_starts[other + 1] - table.row_starts[other]
                    if there < here or (there == here and other < row):
                        row = other
                for place in range(table.row_starts[row], table.row_starts[row + 1]):
                    work += 1
                    cell = table.row_cells[place]
                    if table.used[cell] or not suppressed[cell]:
                        continue
                    sign = -table.residual[row] * table.row_signs[place]
                    if (rise[cell] if sign > 0 else fall[cell]) < amount:
                        continue
                    weight = spent[depth] + weights[cell]
                    if weight >= best:
                        continue
                    more = 0
                    for entry in range(table.cell_starts[cell], table.cell_starts[cell + 1]):
                        change = sign * table.cell_signs[entry]
                        before = table.residual[table.cell_rows[entry]]
                        if before == 0:
                            more += 1
                        elif before == change:
                            more = _WAITING
                        else:
                            more -= 1
                    if left + more >= _WAITING:
                        continue
                    if left + more == 0:
                        best, size = weight, depth + 2
                        found[: depth + 1], signs[: depth + 1] = stack[: depth + 1], stack_signs[: depth + 1]
                        found[depth + 1], signs[depth + 1] = cell, sign
                        continue
                    if depth + 2 >= _DEPTH or weight + 1.0 >= best:
                        continue
                    key = weight + left + more
                    last = counts[depth]
                    if last == _WIDTH:
                        if keys[depth, last - 1] <= key:
                            continue
                        last -= 1
                    else:
                        counts[depth] += 1
                    while last > 0 and keys[depth, last - 1] > key:
                        keys[depth, last], sums[depth, last] = keys[depth, last - 1], sums[depth, last - 1]
                        tried[depth, last] = tried[depth, last - 1]
                        tried_signs[depth, last] = tried_signs[depth, last - 1]
                        last -= 1
                    keys[depth, last], sums[depth, last] = key, weight
                    tried[depth, last], tried_signs[depth, last] = cell, sign
        if next_one[depth] < counts[depth] and work <= _WORK:
            number = next_one[depth]
            next_one[depth] += 1
            if sums[depth, number] + 1.0 >= best:
                continue
            cell, sign = tried[depth, number], tried_signs[depth, number]
            spent[depth + 1] = sums[depth, number]
            depth += 1
            stack[depth], stack_signs[depth] = cell, sign
            left = _apply(table, cell, sign, waiting, left)
            entering = True
        else:
            left = _apply(table, stack[depth], -stack_signs[depth], waiting, left)
            table.used[stack[depth]] = False
            depth -= 1
            if depth < 0:
                return size


@kernel
def _apply(table, cell, sign, waiting, left):
    """Change a cell by one unit; return the number of relations that are no longer balanced."""
    table.used[cell] = True
    for entry in range(table.cell_starts[cell], table.cell_starts[cell + 1]):
        row = table.cell_rows[entry]
        before = table.residual[row]
        table.residual[row] = before + sign * table.cell_signs[entry]
        if before == 0:
            waiting[left] = row
            left += 1
        elif table.residual[row] == 0:
            place = 0
            while waiting[place] != row:
                place += 1
            left -= 1
            waiting[place] = waiting[left]
    return left
