"""Coalitions of contributors, and what they know about the cells of a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from microguard.pipelines.guarantees.deviations import TOLERANCE, Coalition, Deviations, Knowledge
from microguard.pipelines.guarantees.original_cells import Contributed
from scipy import sparse


class Coalitions:
    """All coalitions of some kinds that contribute to suppressed cells.

    A fact is the knowledge of one coalition about one of its cells.

    Parameters
    ----------
    contributed : Contributed
    suppressed : (cells,) boolean array
    kinds : tuple of str
        "single", "pair" and "unit"; other kinds have no coalitions.
    everybody : Knowledge
        Knowledge of readers.
    units : (cells,) array
        True values.

    Attributes
    ----------
    kinds : list of tuple of str
        Kinds of each coalition; a unit can be of two kinds.
    cells : list of int arrays
        Suppressed cells of each coalition.
    known : list of Knowledge
        Its knowledge about them.
    """

    def __init__(
        self,
        contributed: Contributed,
        suppressed: np.ndarray,
        kinds: tuple[str, ...],
        everybody: Knowledge,
        units: np.ndarray,
    ) -> None:
        kinds_of: dict[tuple[int, ...], list[str]] = defaultdict(list)
        found: list[Coalition] = []
        for kind, members, coalition in _coalitions(contributed, suppressed, kinds):
            if members not in kinds_of:
                found.append(coalition)
            kinds_of[members].append(kind)
        self.kinds = [tuple(each) for each in kinds_of.values()]
        self.cells = [each.cells for each in found]
        self.known = [everybody.of(each, units) for each in found]
        self._who = np.repeat(np.arange(len(found)), [len(each) for each in self.cells])
        self._where = _joined(self.cells).astype(np.int64)
        self._alone = _joined([each.alone for each in found]).astype(bool)
        self._fall, self._rise = _joined([k.fall for k in self.known]), _joined([k.rise for k in self.known])
        self._lower = _joined([k.lower for k in self.known])
        self._upper = _joined([k.upper for k in self.known])
        self._facts = sparse.csr_matrix(
            (np.arange(len(self._who)), (self._where, self._who)), shape=(len(suppressed), len(found))
        )

    def uncertain(self, cell: int) -> np.ndarray:
        """Return, as a (coalitions,) boolean array, which coalitions do not contribute alone to a cell."""
        uncertain = np.ones(len(self.cells), bool)
        facts = self._facts[cell].data
        uncertain[self._who[facts[self._alone[facts]]]] = False
        return uncertain

    def shares(self, cell: int, targets: tuple[float, float]) -> np.ndarray:
        """Return the shares of two targets of a cell that each coalition must consider possible.

        Returns
        -------
        shares : (2, coalitions) array
            Below 1 for coalitions that contribute to the cell, because their levels are reduced.
        """
        shares = np.ones((2, len(self.cells)))
        facts = self._facts[cell].data
        for side, levels in enumerate((self._lower, self._upper)):
            size = max(abs(targets[side]), 1e-300)
            shares[side, self._who[facts]] = np.minimum(1.0, levels[facts] / size)
        return shares

    def excluding(self, witness: Deviations, shares: np.ndarray) -> np.ndarray:
        """Return, as a (coalitions,) boolean array, who can exclude its share of a witness.

        Parameters
        ----------
        shares : (coalitions,) array
        """
        facts = self._facts[witness.cells]
        moved = np.repeat(witness.deviations, np.diff(facts.indptr)) * shares[facts.indices]
        slack = TOLERANCE * np.abs(moved)
        outside = (moved < -self._fall[facts.data] - slack) | (moved > self._rise[facts.data] + slack)
        excluding = np.zeros(len(self.cells), bool)
        excluding[facts.indices[outside]] = True
        return excluding

    def narrowest(self, among: np.ndarray, everybody: Knowledge) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the narrowest bounds of each cell that any of some coalitions knows, and their number.

        Parameters
        ----------
        among : (coalitions,) boolean array

        Returns
        -------
        fall, rise, number : (cells,) arrays
        """
        facts = among[self._who]
        where = self._where[facts]
        fall, rise = everybody.fall.copy(), everybody.rise.copy()
        np.minimum.at(fall, where, self._fall[facts])
        np.minimum.at(rise, where, self._rise[facts])
        return fall, rise, np.bincount(where, minlength=len(fall))


def _joined(arrays: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0), *arrays])


def _coalitions(
    contributed: Contributed, suppressed: np.ndarray, kinds: tuple[str, ...]
) -> Iterator[tuple[str, tuple[int, ...], Coalition]]:
    """Return the coalitions of each kind that contribute to suppressed cells.

    A contributor that is alone in a cell, or one of two, is considered in all cells, published or not.
    """
    units_of: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    cells_of: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    number = np.bincount(contributed.cell, minlength=len(suppressed))
    here = suppressed[contributed.cell] | (number[contributed.cell] <= 2)
    for cell, unit, amount in zip(
        contributed.cell[here].tolist(),
        contributed.unit[here].tolist(),
        contributed.amount[here].tolist(),
        strict=True,
    ):
        units_of[cell][unit] += amount
        if suppressed[cell]:
            cells_of[unit][cell] += amount
    alone = sorted({tuple(units) for units in units_of.values() if len(units) == 1})
    pairs = sorted({tuple(sorted(units)) for units in units_of.values() if len(units) == 2})
    every: dict[str, list[tuple[int, ...]]] = {
        "single": alone,
        "pair": pairs,
        "unit": sorted((unit,) for unit in cells_of),
    }
    for kind in kinds:
        for units in every.get(kind, ()):
            cells = sorted({cell for unit in units for cell in cells_of.get(unit, ())})
            if not cells:
                continue
            amounts = [sum(units_of[cell].get(unit, 0.0) for unit in units) for cell in cells]
            only = [set(units_of[cell]) <= set(units) for cell in cells]
            yield kind, units, Coalition(np.array(cells), np.array(amounts), np.array(only))
