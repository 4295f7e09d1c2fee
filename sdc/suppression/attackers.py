"""Attackers who contribute to the table, and what each knows of its cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from microguard.sdc.suppression.problem import Contributions, SuppressionProblem
from scipy import sparse

#: Weight of a cell that some attacker knows in a table of deviations, which few should be able to exclude;
#: others weigh 1.
WATCHED = 10.0


@dataclass(frozen=True, eq=False)
class Attacker:
    """What a coalition of at most two units knows beyond the published table.

    Attributes
    ----------
    kind : str
    units : tuple of int
    cells : (k,) cells that it contributes to
    amounts : (k,) its own amounts in them
    known : (k,) whether nobody else contributes to them
    """

    kind: str
    units: tuple[int, ...]
    cells: np.ndarray
    amounts: np.ndarray
    known: np.ndarray


@dataclass(frozen=True, eq=False)
class Bounds:
    """Deviations that an attacker considers possible beforehand: decreases and increases by cell."""

    fall: np.ndarray
    rise: np.ndarray


class Contributors:
    """Units by cell and cells by unit."""

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
        """Return what units, given as positions in `units`, know together."""
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
    """Return all attackers of some kinds, without the outsider.

    Parameters
    ----------
    problem : SuppressionProblem
    suppressed : (cells,) boolean array
        Who contributes to none of these cells is left out.
    kinds : some of "single", "pair", "unit"
        Units that are the only contributor of some cell of the table, two units that are the only ones of
        some cell, all units.
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
    """Return what an attacker considers possible; None is the outsider.

    Own amounts are a lower bound of a cell whose lower bound is not negative: the other contributors do not
    contribute less than 0. A cell without other contributors is known.
    """
    fall, rise = problem.values - problem.lower_bound, problem.upper_bound - problem.values
    if attacker is not None:
        own = bounds_of_contributed(problem, attacker.cells, attacker.amounts, attacker.known)
        fall[attacker.cells], rise[attacker.cells] = own.fall, own.rise
    return Bounds(fall, rise)


def bounds_of_contributed(
    problem: SuppressionProblem, cells: np.ndarray, amounts: np.ndarray, known: np.ndarray
) -> Bounds:
    """Return what attackers consider possible of cells that they contribute to, as (k,) arrays."""
    values, lower = problem.values[cells], problem.lower_bound[cells]
    others = np.maximum(values - amounts, 0.0)
    fall = np.where(lower < 0, values - lower, np.minimum(values - lower, others))
    rise = problem.upper_bound[cells] - values
    return Bounds(np.where(known, 0.0, fall), np.where(known, 0.0, rise))
