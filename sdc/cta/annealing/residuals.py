"""Annealing on line residuals, all cells of a line at a time.

Lines are grouped into classes of disjoint lines (the rows of a table, its columns, ...). Disjoint lines
each need at least |r| of adjustments, so the largest class sum of |r| bounds the excess from below, and in
a 2-D table whose capacities do not bind it *is* the excess. For tables too large for a linear program the
sum over all cells that a residual reaches is annealed instead, which is what re-summing margins costs.

A flip moves its lines by twice a level, where good directions leave a few hundredths of one: cold, hardly any
is accepted. So all directions of a line are gone through, one flip after the other (Gray code), a few
additions each, and one of those below a level drawn above the present energy is taken: slice sampling (Neal
2003), of which the Boltzmann distribution is the stationary one as it is of flips. At 25x25 it finds in 0.03
seconds what flips of one and two cells find in 0.4, and in 0.3 what they find in 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from sdc.cta.annealing.annealing import Columns, StandIn, Stretch, Walk, temperature_at, turn
from sdc.cta.program.line_classes import disjoint_classes
from sdc.cta.program.problem import Problem
from sdc.kernels.compile import kernel

#: First and last temperature relative to the mean protection level.
HOT, COLD = 0.4, 0.02
#: Weight of the mean class beside the largest: breaks the ties between classes that are not the largest.
MEAN_CLASS_WEIGHT = 0.1
#: Cells of a line that are turned together at most, at random among more: their directions are all gone
#: through.
MOST_TURNED = 10
#: Flips that a line of six or seven cells, the usual ones of a grid, takes as long as.
LINE_FLIPS = 8


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

    @property
    def two_way(self) -> bool:
        """Whether lines fall into two classes: then the largest sum is the excess, but for capacities."""
        return int(self.classes.max(initial=-1)) == 1

    def temperatures(self, cells: np.ndarray) -> tuple[float, float]:
        """By the mean protection level."""
        level = float(np.mean(self.problem.swing)) / 2
        return HOT * level, COLD * level

    def cool(self, walk: Walk, stretch: Stretch) -> None:
        """The cells of one line at a time."""
        _cool(self._rows, self.columns, self.problem.swing, self.classes, walk, stretch)

    @cached_property
    def _rows(self) -> Columns:
        """The cells of each line."""
        rows = sparse.csr_matrix(self.incidence)
        rows.sort_indices()
        return Columns(rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data)


@kernel
def _cool(
    rows: Columns, columns: Columns, swing: np.ndarray, classes: np.ndarray, walk: Walk, stretch: Stretch
) -> None:
    np.random.seed(stretch.seed)
    pointers, members, _ = rows
    directions, residuals, chosen, least = walk
    count = classes.max() + 1
    sums = _class_sums(classes, residuals, count)
    weight = MEAN_CLASS_WEIGHT / count
    energy = sums.max() + weight * sums.sum()
    if energy < least[0]:
        least[0] = energy
        chosen[:] = directions
    may_turn = np.zeros(len(directions), dtype=np.bool_)
    may_turn[stretch.cells] = True
    cells = np.empty(np.diff(pointers).max(), dtype=np.int64)
    moves, gains = np.empty(MOST_TURNED), np.empty((MOST_TURNED, count))
    after = np.empty(count)
    for sweep in range(stretch.first, stretch.last):
        temperature = temperature_at(stretch, sweep)
        for _ in range(max(1, len(stretch.cells) // LINE_FLIPS)):
            line = np.random.randint(len(classes))
            turned = 0
            for a in range(pointers[line], pointers[line + 1]):
                if may_turn[members[a]]:
                    cells[turned] = members[a]
                    turned += 1
            if turned == 0:
                continue
            turned = _some(cells, turned)
            for k in range(turned):
                moves[k] = _gains(columns, swing, classes, directions, residuals, line, cells[k], gains[k])
            # directions are drawn evenly from those below a level above the energy (slice sampling)
            limit = energy - temperature * np.log(1.0 - np.random.random())
            own, residual, turn_set = classes[line], residuals[line], 0
            after[:] = sums
            after[own] -= abs(residual)  # the sums of all but this line
            below, drawn, cheapest, best = 1, 0, energy, 0
            for code in range(1, 1 << turned):
                k = 0
                while not code >> k & 1:
                    k += 1
                turn_set ^= 1 << k
                if turn_set >> k & 1:
                    residual += moves[k]
                    for number in range(count):
                        after[number] += gains[k, number]
                else:
                    residual -= moves[k]
                    for number in range(count):
                        after[number] -= gains[k, number]
                largest, total = 0.0, 0.0
                for number in range(count):
                    value = after[number] + (abs(residual) if number == own else 0.0)
                    total += value
                    if value > largest:
                        largest = value
                changed = largest + weight * total
                if changed <= limit:
                    below += 1
                    if np.random.random() * below < 1.0:
                        drawn = turn_set
                    if changed < cheapest:
                        cheapest, best = changed, turn_set
            if cheapest < least[0]:  # what is cheaper than all before is taken
                drawn = best
            if drawn:
                for k in range(turned):
                    if drawn >> k & 1:
                        _turn(columns, swing, directions, residuals, cells[k])
                sums = _class_sums(classes, residuals, count)
                energy = sums.max() + weight * sums.sum()
                if energy < least[0]:
                    least[0] = energy
                    chosen[:] = directions


@kernel
def _class_sums(classes: np.ndarray, residuals: np.ndarray, count: int) -> np.ndarray:
    """(count,) sum of |r| of each class."""
    sums = np.zeros(count)
    for line in range(len(classes)):
        if classes[line] >= 0:
            sums[classes[line]] += abs(residuals[line])
    return sums


@kernel
def _some(cells: np.ndarray, count: int) -> int:
    """Move a random few to the front where there are too many; how many."""
    few = min(count, MOST_TURNED)
    if few < count:
        for k in range(few):
            other = k + np.random.randint(count - k)
            cells[k], cells[other] = cells[other], cells[k]
    return few


@kernel
def _gains(
    columns: Columns,
    swing: np.ndarray,
    classes: np.ndarray,
    directions: np.ndarray,
    residuals: np.ndarray,
    line: int,
    cell: int,
    gains: np.ndarray,
) -> float:
    """How far turning a cell moves the residual of a line; gains: what it adds to the sums of the others."""
    pointers, lines, entries = columns
    move, own = turn(swing, directions, cell), 0.0
    gains[:] = 0.0
    for a in range(pointers[cell], pointers[cell + 1]):
        if lines[a] == line:
            own = move * entries[a]
        else:
            before = residuals[lines[a]]
            gains[classes[lines[a]]] += abs(before + move * entries[a]) - abs(before)
    return own


@kernel
def _turn(
    columns: Columns, swing: np.ndarray, directions: np.ndarray, residuals: np.ndarray, cell: int
) -> None:
    """Turn a cell."""
    pointers, lines, entries = columns
    move = turn(swing, directions, cell)
    for a in range(pointers[cell], pointers[cell + 1]):
        residuals[lines[a]] += move * entries[a]
    directions[cell] = 1 - directions[cell]
