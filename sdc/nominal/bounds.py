"""Bounds on the chi-square of every protected frequency vector of a file, whatever method made it.

A published count is 0 or at least k, and so is every cell, a sum of such counts. Alone, a cell with fewer
than k records therefore costs at least what the cheaper of 0 and k costs: the *free* bound. What it leaves
out is that the cells of a table add up to those of its margins: a *family*, a control table with the
margins that are control tables, is a linear program over lower hulls of the errors. A margin of several
families has its errors shared equally among them, so that the bounds of the families add up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from sdc.nominal.control_tables import ControlTables
from sdc.solver import INFINITY, Limits, Program, Status, solve
from sdc.stop import Deadline

#: Cells of a family's largest table up to which its program is solved: a second or so.
_MOST_CELLS = 1_000
#: Chords of the hull are taken at these distances from the original count, on both sides.
_DISTANCES = (0, 1, 2, 4, 8, 16, 32)
#: The solver's tolerance, taken off each program's bound, as a share.
_SAFETY = 1e-6


def free_bound(tables: ControlTables, k: int) -> float:
    """Sum over the control cells of the least error that a count of 0 or at least k has."""
    return float(_least(tables.original, k).sum())


def family_bound(tables: ControlTables, k: int, deadline: Deadline | None = None) -> float:
    """The free bound, tightened by a linear program for each family of tables.

    Where a family is too large, or the deadline passes, its part of the free bound stands.
    """
    deadline = deadline or Deadline.after(None)
    families = _families(tables)
    share = 1.0 / np.bincount(
        np.concatenate([family.tables for family in families]), minlength=len(tables.tables)
    )
    return sum(_of_family(tables, family, share, k, deadline) for family in families)


@dataclass(frozen=True)
class _Family:
    """A table that is in no other, and all tables whose variables are among its own, itself the first."""

    tables: np.ndarray


def _families(tables: ControlTables) -> list[_Family]:
    names = [frozenset(table) for table in tables.tables]
    largest = [t for t, own in enumerate(names) if not any(own < other for other in names)]
    return [
        _Family(np.array([t, *(s for s, own in enumerate(names) if own <= names[t] and s != t)]))
        for t in largest
    ]


def _of_family(
    tables: ControlTables, family: _Family, share: np.ndarray, k: int, deadline: Deadline
) -> float:
    members = [np.flatnonzero(tables.table == t) for t in family.tables]
    weight = np.repeat(share[family.tables], [len(inside) for inside in members])
    cells = np.concatenate(members)
    original = tables.original[cells]
    free = float((weight * _least(original, k)).sum())
    base = len(members[0])
    if len(members) == 1 or base > _MOST_CELLS or deadline.passed:
        return free
    place = np.empty(len(tables.original), np.int64)
    place[cells] = np.arange(len(cells))
    first = np.unique(tables.cells[:, family.tables[0]], return_index=True)[1]
    answer = solve(
        _program(place[tables.cells[np.ix_(first, family.tables)]], original, weight, k),
        Limits(seconds=deadline.remaining),
    )
    if answer.status is not Status.OPTIMAL:
        return free
    return max(free, answer.bound - _SAFETY * abs(answer.bound))


def _program(margins: np.ndarray, original: np.ndarray, weight: np.ndarray, k: int) -> Program:
    """Counts of all cells, then their errors: margins add up, errors lie above every chord of the hull.

    Parameters
    ----------
    margins : (base, tables) cell of each base cell in each table of the family, the base first
    original, weight : (cells,) original counts, and weights of the errors
    """
    base, cells = len(margins), len(original)
    inside = margins[:, 1:].ravel()
    member = sparse.csr_matrix(
        (np.ones(len(inside)), (inside - base, np.repeat(np.arange(base), margins.shape[1] - 1))),
        shape=(cells - base, base),
    )
    adding_up = sparse.hstack(
        [member, -sparse.identity(cells - base), sparse.csr_matrix((cells - base, cells))]
    )
    cell, slope, intercept = _chords(original, k)
    chords = sparse.csr_matrix(
        (
            np.concatenate([-slope, np.ones(len(cell))]),
            (np.tile(np.arange(len(cell)), 2), np.concatenate([cell, cells + cell])),
        ),
        shape=(len(cell), 2 * cells),
    )
    total = sparse.csr_matrix((np.ones(base), (np.zeros(base, int), np.arange(base))), shape=(1, 2 * cells))
    records = float(original[:base].sum())
    return Program(
        costs=np.concatenate([np.zeros(cells), weight]),
        matrix=sparse.vstack([adding_up, chords, total]),
        row_lower=np.concatenate([np.zeros(cells - base), intercept, [records]]),
        row_upper=np.concatenate([np.zeros(cells - base), np.full(len(cell), INFINITY), [records]]),
        lower=np.zeros(2 * cells),
        upper=np.full(2 * cells, INFINITY),
    )


def _chords(original: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lines below (n - o)^2 / o at every n that is 0 or an integer of at least k: cell, slope, intercept."""
    cells, begins, ends = [np.arange(len(original))], [np.zeros(len(original))], [np.full(len(original), k)]
    for distance in _DISTANCES:
        for begin in (original + distance, original - 1 - distance):
            at = np.flatnonzero(begin >= k)
            cells.append(at)
            begins.append(begin[at])
            ends.append(begin[at] + 1)
    small = np.flatnonzero(original < k)
    cells.append(small)
    begins.append(np.full(len(small), k))
    ends.append(np.full(len(small), k + 1))
    cell, begin, end = np.concatenate(cells), np.concatenate(begins), np.concatenate(ends)
    count = original[cell]
    low, high = (begin - count) ** 2 / count, (end - count) ** 2 / count
    slope = (high - low) / (end - begin)
    return cell, slope, low - slope * begin


def _least(original: np.ndarray, k: int) -> np.ndarray:
    """Least error of each cell by itself; cells that did not occur carry none."""
    count = np.maximum(original, 1).astype(float)
    return np.where((original > 0) & (original < k), np.minimum(count, (k - count) ** 2 / count), 0.0)
