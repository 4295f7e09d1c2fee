"""Annealing of directions on a stand-in for the linear program: one run, exchangeable costs.

A stand-in prices directions by the residuals they leave on the constraints, so that a change of one direction
costs a few additions. What the residuals cost, and how a change is proposed, is the stand-in's own; the
run is the same for all: from hot to cold, by equal factors where nothing else is said, in stretches between
two looks at the clock, cells with only one admissible direction left alone.
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
    """Compressed columns of the sensitive cells: those of cell c are pointers[c]:pointers[c + 1]."""

    pointers: np.ndarray
    constraints: np.ndarray
    entries: np.ndarray


class Stretch(NamedTuple):
    """Sweeps from `first` to before `last` of a run.

    Attributes
    ----------
    cells : sensitive cells that may go either way
    hot, cold : first and last temperature of the run
    first, last, sweeps : int, `sweeps` those of the whole run
    seed : of this stretch
    """

    cells: np.ndarray
    hot: float
    cold: float
    first: int
    last: int
    sweeps: int
    seed: int


class Walk(NamedTuple):
    """Where a run stands.

    Attributes
    ----------
    directions : (p,) int8, 0 down and 1 up
    residuals : (constraints,) signed base deviations summed per constraint
    chosen : (p,) int8, the answer so far
    least : (1,) its energy, for the stand-ins that keep the best directions met
    """

    directions: np.ndarray
    residuals: np.ndarray
    chosen: np.ndarray
    least: np.ndarray


@dataclass(frozen=True, eq=False)
class StandIn(ABC):
    """What directions are annealed on.

    Attributes
    ----------
    problem : Problem
    incidence : sparse (constraints, p)
        Relations of the sensitive cells, over all constraints or those they touch.
    """

    problem: Problem
    incidence: sparse.csc_matrix
    #: Moves between two looks at the clock.
    stretch_moves: ClassVar[float] = 2e6
    #: First temperature of a run that refines directions, relative to that from random ones.
    warmth: ClassVar[float] = 1.0

    @cached_property
    def columns(self) -> Columns:
        """`incidence` as the kernels read it."""
        matrix = self.incidence
        return Columns(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data)

    def residuals(self, directions: np.ndarray) -> np.ndarray:
        """(constraints,) signed base deviations summed per constraint."""
        return np.asarray(self.incidence @ self.problem.base(directions))

    def anneal(
        self,
        directions: np.ndarray,
        sweeps: int,
        seed: int,
        deadline: Deadline | None = None,
        heat: float = 1.0,
    ) -> np.ndarray:
        """Directions (p,) after annealing from the given ones; sweeps times p proposals.

        `heat` is the first temperature relative to the one that leaves nothing of them.
        """
        cells = np.flatnonzero(self.problem.forced < 0)
        start = self.problem.admissible(directions)
        if (
            len(cells) == 0 or sweeps < 1 or self.incidence.nnz == 0
        ):  # no constraint has a cell: all cost the same
            return start
        deadline = deadline or Deadline.after(None)
        hot, cold = self.temperatures(cells)
        hot = max(heat * hot, cold)
        walk = Walk(start.copy(), self.residuals(start), start, np.full(1, np.inf))
        step = max(1, int(self.stretch_moves / len(cells)))
        for first in range(0, sweeps, step):
            last = min(first + step, sweeps)
            self.cool(walk, Stretch(cells, hot, cold, first, last, sweeps, seed + first))
            if deadline.passed:
                break
        return walk.chosen

    def refine(self, directions: np.ndarray, sweeps: int, seed: int, deadline: Deadline) -> np.ndarray:
        """Directions (p,) after annealing from good ones, of which most stay."""
        return self.anneal(directions, sweeps, seed, deadline, self.warmth)

    @abstractmethod
    def temperatures(self, cells: np.ndarray) -> tuple[float, float]:
        """First and last temperature for a run over these cells, in units of the energy."""

    @abstractmethod
    def cool(self, walk: Walk, stretch: Stretch) -> None:
        """Run one stretch: directions, residuals and the answer so far change in place."""


@kernel
def temperature_at(stretch: Stretch, sweep: int) -> float:
    """Temperature of a sweep of the run."""
    return stretch.hot * (stretch.cold / stretch.hot) ** (sweep / max(1, stretch.sweeps - 1))


@kernel
def turn(swing: np.ndarray, directions: np.ndarray, cell: int) -> float:
    """How far a change of direction moves the cell's base deviation."""
    return -swing[cell] if directions[cell] == 1 else swing[cell]
