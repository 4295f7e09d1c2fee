"""Simulated annealing of directions (up or down) on a model of the linear program that is cheap to evaluate.

A model assigns an energy to the constraint residuals of directions. The change of energy by one flip is
cheap to compute. The schedule is the same for all models: the temperature decreases by a constant factor per
sweep unless the model changes it. The deadline is checked after each segment of sweeps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.stop import Deadline
from scipy import sparse


class Columns(NamedTuple):
    """Compressed columns of the sensitive cells: the entries of cell c are pointers[c]:pointers[c + 1]."""

    pointers: np.ndarray
    constraints: np.ndarray
    entries: np.ndarray


class Segment(NamedTuple):
    """Consecutive sweeps of a run: those in [first, last).

    Attributes
    ----------
    cells : sensitive cells that may have either direction
    hot, cold : first and last temperature of the run
    first, last : int
    sweeps : int, of the whole run
    seed : int, of this segment
    """

    cells: np.ndarray
    hot: float
    cold: float
    first: int
    last: int
    sweeps: int
    seed: int


class State(NamedTuple):
    """State of an annealing run.

    Attributes
    ----------
    directions : (p,) int8, 0 down and 1 up
    residuals : (constraints,) sums of the signed base deviations
    chosen : (p,) int8, the result so far
    least : (1,) energy of the result, for models that keep the best directions
    """

    directions: np.ndarray
    residuals: np.ndarray
    chosen: np.ndarray
    least: np.ndarray


@dataclass(frozen=True, eq=False)
class EnergyModel(ABC):
    """Interface of models that compute the cost of directions (up or down).

    Attributes
    ----------
    problem : Problem
    incidence : sparse (constraints, p)
        Columns of the sensitive cells; the rows are all constraints, or those that contain a sensitive cell.
    """

    problem: Problem
    incidence: sparse.csc_matrix
    #: Number of moves between two checks of the deadline.
    segment_moves: ClassVar[float] = 2e6

    @cached_property
    def columns(self) -> Columns:
        """Return the matrix `incidence` as compressed columns for the kernels."""
        matrix = self.incidence
        return Columns(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data)

    def residuals(self, directions: np.ndarray) -> np.ndarray:
        """Compute the constraint residuals of directions, (constraints,)."""
        return np.asarray(self.incidence @ self.problem.base(directions))

    def anneal(
        self,
        directions: np.ndarray,
        sweeps: int,
        seed: int,
        deadline: Deadline | None = None,
        heat: float = 1.0,
    ) -> np.ndarray:
        """Improve directions by simulated annealing.

        Parameters
        ----------
        directions : (p,) start
        sweeps : int
        seed : int
        deadline : Deadline, optional
        heat : float
            First temperature, relative to the temperature for a random start. With lower values most
            directions of the start are kept.

        Returns
        -------
        (p,) int8 array
        """
        cells = np.flatnonzero(self.problem.forced < 0)
        start = self.problem.admissible(directions)
        # no temperature is needed if all directions have the same energy
        if len(cells) == 0 or sweeps < 1 or self.incidence.nnz == 0:
            return start
        deadline = deadline or Deadline.after(None)
        hot, cold = self.temperatures(cells)
        hot = max(heat * hot, cold)
        state = State(start.copy(), self.residuals(start), start, np.full(1, np.inf))
        step = max(1, int(self.segment_moves / len(cells)))
        for first in range(0, sweeps, step):
            last = min(first + step, sweeps)
            self.run_segment(state, Segment(cells, hot, cold, first, last, sweeps, seed + first))
            if deadline.passed:
                break
        return state.chosen

    @abstractmethod
    def temperatures(self, cells: np.ndarray) -> tuple[float, float]:
        """Return the first and last temperature of a run over these cells, in units of the energy."""

    @abstractmethod
    def run_segment(self, state: State, segment: Segment) -> None:
        """Run one segment of an annealing run; the state changes in place."""


@kernel
def temperature_at(segment: Segment, sweep: int) -> float:
    """Return the temperature of a sweep."""
    return segment.hot * (segment.cold / segment.hot) ** (sweep / max(1, segment.sweeps - 1))


@kernel
def flip_change(swing: np.ndarray, directions: np.ndarray, cell: int) -> float:
    """Return the change of the base deviation of a cell if its direction changes."""
    return -swing[cell] if directions[cell] == 1 else swing[cell]
