"""Annealing on line residuals: a flip touches only the lines its cell lies in.

Lines are grouped into classes of disjoint lines (the rows of a table, its columns, ...). Disjoint lines
each need at least |r| of adjustments, so the largest class sum of |r| bounds the excess from below, and in
a 2-D table whose capacities do not bind it *is* the excess. For tables too large for a linear program the
sum over all cells that a residual reaches is annealed instead, which is what re-summing margins costs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sdc.cta.annealing.annealing import Columns, StandIn, Stretch, Walk, temperature_at, turn
from sdc.cta.program.line_classes import disjoint_classes
from sdc.cta.program.problem import Problem
from sdc.kernels.compile import kernel

#: First and last temperature relative to the mean protection level.
HOT, COLD = 1.0, 1e-3
#: Weight of the mean class beside the largest: breaks the ties between classes that are not the largest.
MEAN_CLASS_WEIGHT = 0.1


@dataclass(frozen=True, eq=False)
class LineClasses(StandIn):
    """The largest class sum of |r|, and a little of the mean one; the best directions met are the answer.

    Attributes
    ----------
    problem, incidence : of `StandIn`, over all lines
    classes : (lines,) class of each line, -1 where no sensitive cell lies in it
    """

    classes: np.ndarray

    @classmethod
    def of(cls, problem: Problem) -> LineClasses:
        """First-fit colouring of the lines in their order."""
        incidence = problem.incidence
        incidence.sort_indices()
        return cls(problem, incidence, disjoint_classes(problem))

    def temperatures(self, cells: np.ndarray) -> tuple[float, float]:
        """By the mean protection level."""
        level = float(np.mean(self.problem.swing)) / 2
        return HOT * level, COLD * level

    def cool(self, walk: Walk, stretch: Stretch) -> None:
        """One cell, or two that swap their directions, at a time."""
        _cool(self.columns, self.problem.swing, self.classes, walk, stretch)


@kernel
def _cool(columns: Columns, swing: np.ndarray, classes: np.ndarray, walk: Walk, stretch: Stretch) -> None:
    np.random.seed(stretch.seed)
    pointers, lines, entries = columns
    directions, residuals, chosen, least = walk
    cells = stretch.cells
    count = classes.max() + 1
    sums = np.zeros(count)
    for line in range(len(classes)):
        if classes[line] >= 0:
            sums[classes[line]] += abs(residuals[line])
    weight = MEAN_CLASS_WEIGHT / count
    energy = sums.max() + weight * sums.sum()
    if energy < least[0]:
        least[0] = energy
        chosen[:] = directions
    after = np.empty(count)
    for sweep in range(stretch.first, stretch.last):
        temperature = temperature_at(stretch, sweep)
        for _ in range(len(cells)):
            cell = cells[np.random.randint(len(cells))]
            move = turn(swing, directions, cell)
            other, second = -1, 0.0
            if np.random.random() < 0.5:  # together with a cell that goes the other way
                other = cells[np.random.randint(len(cells))]
                if directions[other] == directions[cell]:
                    other = -1
            after[:] = sums
            _shift(pointers, lines, entries, classes, residuals, after, cell, move)
            if other >= 0:
                second = turn(swing, directions, other)
                _shift(pointers, lines, entries, classes, residuals, after, other, second)
            changed = after.max() + weight * after.sum()
            if changed <= energy or np.random.random() < np.exp((energy - changed) / temperature):
                energy = changed
                directions[cell] = 1 - directions[cell]
                if other >= 0:
                    directions[other] = 1 - directions[other]
                sums[:] = after
                if energy < least[0]:
                    least[0] = energy
                    chosen[:] = directions
            else:
                for a in range(pointers[cell], pointers[cell + 1]):
                    residuals[lines[a]] -= move * entries[a]
                if other >= 0:
                    for a in range(pointers[other], pointers[other + 1]):
                        residuals[lines[a]] -= second * entries[a]


@kernel
def _shift(
    pointers: np.ndarray,
    lines: np.ndarray,
    entries: np.ndarray,
    classes: np.ndarray,
    residuals: np.ndarray,
    sums: np.ndarray,
    cell: int,
    move: float,
) -> None:
    """Move a cell: the residuals of its lines, and the sums of their classes."""
    for a in range(pointers[cell], pointers[cell + 1]):
        line = lines[a]
        sums[classes[line]] -= abs(residuals[line])
        residuals[line] += move * entries[a]
        sums[classes[line]] += abs(residuals[line])
