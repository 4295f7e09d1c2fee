"""Attackers who contribute to the table, and the cells that each of them knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from microguard.sdc.suppression.problem import Contributions, SuppressionProblem
from scipy import sparse

#: Weight of a cell that some attacker knows, in the search for a table of deviations; other cells have weight
#: 1. A high weight means that few attackers can exclude the found table.
WATCHED = 10.0


@dataclass(frozen=True, eq=False)
class Attacker:
    """Attackers: a coalition of at most two units that know their own amounts and the published table.

    Attributes
    ----------
    kind : str
    units : tuple of int
    cells : (k,) cells to which the coalition contributes
    amounts : (k,) amounts of the coalition in these cells
    known : (k,) whether nobody else contributes to a cell, so that the coalition knows its value
    """

    kind: str
    units: tuple[int, ...]
    cells: np.ndarray
    amounts: np.ndarray
    known: np.ndarray


@dataclass(frozen=True, eq=False)
class Bounds:
    """Deviations that an attacker considers possible before publication: largest decrease and increase of
    each cell.
    """

    fall: np.ndarray
    rise: np.ndarray


class Contributors:
    """Units that contribute to each cell, and cells of each unit."""

    def __init__(self, problem: SuppressionProblem) -> None:
        given = problem.contributions or Contributions(np.empty(0), np.empty(0), np.empty(0))
        self.units, unit = np.unique(given.unit, return_inverse=True)
        shape = (len(self.units), problem.cells)
        ones = np.ones(len(unit))
        self._occurs = sparse.csr_matrix((ones, (unit, given.cell)), shape=shape)
        self._occurs.sum_duplicates()
        # a row of amounts has the same positions as the row of occurrences, zero amounts included
        order = np.lexsort((given.cell, unit))
        key = unit[order] * np.int64(problem.cells) + given.cell[order]
        starts = np.flatnonzero(np.diff(key, prepend=-1))
        self._amounts = np.add.reduceat(given.amount[order], starts) if len(key) else np.empty(0)
        self.by_cell = self._occurs.tocsc()
        self.number = np.diff(self.by_cell.indptr)

    def contributors_of(self, cell: int) -> np.ndarray:
        """Return the units of a cell, as positions in `units`."""
        return self.by_cell.indices[self.by_cell.indptr[cell] : self.by_cell.indptr[cell + 1]]

    def coalition(self, kind: str, members: tuple[int, ...]) -> Attacker:
        """Return the joint knowledge of several units, given as positions in `units`."""
        cells, amounts, seen = self._row(members[0])
        if len(members) == 2:
            other, more, _ = self._row(members[1])
            both, place = np.unique(np.concatenate([cells, other]), return_inverse=True)
            amounts = np.bincount(place, np.concatenate([amounts, more]), minlength=len(both))
            seen = np.bincount(place, minlength=len(both))
            cells = both
        units = tuple(int(self.units[member]) for member in members)
        return Attacker(kind, units, cells, amounts, seen == self.number[cells])

    def _row(self, unit: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        part = slice(self._occurs.indptr[unit], self._occurs.indptr[unit + 1])
        cells = self._occurs.indices[part].astype(np.int64)
        return cells, self._amounts[part], np.ones(len(cells), dtype=np.int64)


def attackers_of(
    problem: SuppressionProblem,
    suppressed: np.ndarray,
    kinds: Sequence[str],
    contributors: Contributors | None = None,
) -> list[Attacker]:
    """Return all attackers of the given kinds, without the outsider.

    Parameters
    ----------
    problem : SuppressionProblem
    suppressed : (cells,) boolean array
        Suppressed cells. Units that contribute to none of them are not attackers.
    kinds : some of "single", "pair", "unit"
        "single": units that are the only contributor of some cell. "pair": two units that are the only two
        contributors of some cell. "unit": all units.
    """
    contributors = contributors or Contributors(problem)
    found: list[Attacker] = []
    number = contributors.number
    if "single" in kinds:
        units = {int(contributors.contributors_of(cell)[0]) for cell in np.flatnonzero(number == 1).tolist()}
        found += [contributors.coalition("single", (unit,)) for unit in sorted(units)]
    if "pair" in kinds:
        pairs = {
            (int(pair[0]), int(pair[1]))
            for pair in (
                np.sort(contributors.contributors_of(cell)) for cell in np.flatnonzero(number == 2).tolist()
            )
        }
        found += [contributors.coalition("pair", pair) for pair in sorted(pairs)]
    if "unit" in kinds:
        members = range(len(contributors.units))
        found += [contributors.coalition("unit", (unit,)) for unit in members]
    return [one for one in found if suppressed[one.cells].any()]


def bounds_of(problem: SuppressionProblem, attacker: Attacker | None = None) -> Bounds:
    """Return the deviations that an attacker considers possible; None represents the outsider.

    If the lower bound of a cell is not negative, the attacker's own amount is a lower bound on its value,
    because no other contribution is negative. The attacker knows the value of a cell without other
    contributors.
    """
    fall, rise = problem.values - problem.lower_bound, problem.upper_bound - problem.values
    if attacker is not None:
        own = bounds_of_contributed(problem, attacker.cells, attacker.amounts, attacker.known)
        fall[attacker.cells], rise[attacker.cells] = own.fall, own.rise
    return Bounds(fall, rise)


def bounds_of_contributed(
    problem: SuppressionProblem, cells: np.ndarray, amounts: np.ndarray, known: np.ndarray
) -> Bounds:
    """Return the deviations that attackers consider possible in cells to which they contribute, as arrays of
    shape (k,).
    """
    values, lower = problem.values[cells], problem.lower_bound[cells]
    others = np.maximum(values - amounts, 0.0)
    fall = np.where(lower < 0, values - lower, np.minimum(values - lower, others))
    rise = problem.upper_bound[cells] - values
    return Bounds(np.where(known, 0.0, fall), np.where(known, 0.0, rise))
