"""A pattern of suppressed cells, and the tables of deviations (witnesses) that protect its primary cells."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False, slots=True)
class Witness:
    """Deviations of some cells that satisfy all relations; all other cells keep their values."""

    cells: np.ndarray
    deviations: np.ndarray


@dataclass(eq=False)
class Pattern:
    """Suppressed cells, and the witnesses of each primary cell for each attacker.

    Attributes
    ----------
    suppressed : (cells,) boolean array
    witnesses : witnesses by primary and attacker
    users : for each cell, the primaries with a witness that uses the cell
    """

    suppressed: np.ndarray
    witnesses: dict[int, dict[int, tuple[Witness, ...]]] = field(default_factory=dict)
    users: dict[int, set[int]] = field(default_factory=dict)

    def put(self, primary: int, found: dict[int, tuple[Witness, ...]]) -> None:
        """Replace the witnesses of a primary cell."""
        if found == self.witnesses.get(primary):
            return
        for cell in self._cells_of(self.witnesses.get(primary, {})):
            self.users[cell].discard(primary)
        self.witnesses[primary] = found
        for cell in self._cells_of(found):
            self.users.setdefault(cell, set()).add(primary)

    def users_of(self, cells: np.ndarray) -> list[int]:
        """Return the primary cells with a witness that uses some of the given cells."""
        return sorted(set().union(*(self.users.get(cell, ()) for cell in cells.tolist())))

    @staticmethod
    def _cells_of(found: dict[int, tuple[Witness, ...]]) -> set[int]:
        return {cell for group in found.values() for one in group for cell in one.cells.tolist()}
