"""An adjusted table, and what was proved about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from microguard.sdc.stop import StoppedBy

BoundKind = Literal[
    "unavoidable part",
    "line cuts",
    "linear relaxation with line cuts",
    "linear relaxation with plane cuts",
    "linear relaxation with cell cuts",
    "branch and bound",
    "nearest multiples",
    "nothing to protect",
]
#: Relative difference of objective and bound below which optimality counts as proved: the solver's own
#: tolerances leave about this much.
OPTIMALITY_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Work:
    """Work counted: linear programs solved, branch-and-bound nodes, moves proposed by annealing."""

    programs: int = 0
    nodes: int = 0
    moves: int = 0


@dataclass(frozen=True, eq=False)
class Adjustment:
    """An adjusted table.

    Attributes
    ----------
    values : (cells,) array
        Adjusted values.
    deviations : (cells,) array
        ``values`` minus the original.
    directions : (cells,) int8 array
        1 up, -1 down for sensitive cells, 0 elsewhere.
    objective : float
        Sum of cost times absolute deviation.
    lower_bound : float
        Proved for the model of the mode asked for.
    bound_kind : str
        What proved it.
    unavoidable : float
        Sum over sensitive cells of cost times the smaller level: in no solution less.
    algorithm : str
        The method that found it.
    stopped_by : "work", "proof" or "time"
    work : Work
    history : tuple of (linear programs solved, objective)
        Every improvement on the way, first one first.
    whole : bool
        Whether the adjusted values are whole numbers, promised only where the table's were.
    """

    values: np.ndarray
    deviations: np.ndarray
    directions: np.ndarray
    objective: float
    lower_bound: float
    bound_kind: BoundKind
    unavoidable: float
    algorithm: str
    stopped_by: StoppedBy
    work: Work
    history: tuple[tuple[int, float], ...]
    whole: bool

    @property
    def gap(self) -> float:
        """Objective over lower bound, minus one; 0 where nothing had to change."""
        if self.objective <= 0:
            return 0.0
        return max(0.0, self.objective / self.lower_bound - 1.0) if self.lower_bound > 0 else float("inf")

    @property
    def optimal(self) -> bool:
        """Whether no solution is better, up to `OPTIMALITY_TOLERANCE`."""
        return self.gap <= OPTIMALITY_TOLERANCE

    @property
    def excess(self) -> float:
        """Objective beyond the unavoidable part."""
        return self.objective - self.unavoidable
