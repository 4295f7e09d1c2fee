"""Result of an adjustment: values, objective, lower bound, work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from microguard.sdc.stop import StoppedBy

BoundKind = Literal[
    "unavoidable part",
    "constraint cuts",
    "linear relaxation with constraint cuts",
    "linear relaxation with plane cuts",
    "linear relaxation with cell cuts",
    "branch and bound",
    "nearest multiples",
    "nothing to protect",
]
#: Maximum relative gap of an optimal solution: about the error caused by the solver's tolerances.
OPTIMALITY_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Work:
    """Work of an adjustment: linear programs solved, branch-and-bound nodes, moves proposed by annealing."""

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
        Proved lower bound on the objective in the requested mode.
    bound_kind : str
        Method that proved the bound.
    unavoidable : float
        Sum over sensitive cells of cost times the smaller level: a lower bound on every solution.
    algorithm : str
        Method that found the solution.
    stopped_by : "work", "proof" or "time"
    work : Work
    history : tuple of (linear programs solved, objective)
        Improvements, in the order in which they were found.
    whole : bool
        Whether the adjusted values are whole numbers; attempted only if the original values are whole
        numbers.
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
        """Return objective / lower bound - 1; 0 if the objective is 0."""
        if self.objective <= 0:
            return 0.0
        return max(0.0, self.objective / self.lower_bound - 1.0) if self.lower_bound > 0 else float("inf")

    @property
    def optimal(self) -> bool:
        """Return whether the gap is at most `OPTIMALITY_TOLERANCE`."""
        return self.gap <= OPTIMALITY_TOLERANCE

    @property
    def excess(self) -> float:
        """Return the avoidable part of the objective: its excess over the unavoidable cost."""
        return self.objective - self.unavoidable
