"""Annealing on the constraint residuals of a two-way table, the cells of a constraint at a time.

Constraints are grouped into classes of disjoint constraints (the rows of a table, its columns, ...). Disjoint
constraints each need at least |r| of adjustments, so the largest class sum of |r| bounds the excess from
below, and in a 2-D table whose capacities do not bind it *is* the excess.

A flip moves its constraints by twice a level, where good directions leave a few hundredths of one: cold,
hardly any is accepted. So of all directions of a constraint's cells one below a level drawn above the present
energy is taken: slice sampling (Neal 2003), of which the Boltzmann distribution is the stationary one as it
is of flips. Most are above by the residual of the constraint alone, and are never looked at (`line_blocks`).
Of two random constraints that with the larger residual is turned, as faults are sought out first in focused
search (Papadimitriou 1991).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from microguard.sdc.cta.annealing.annealing import StandIn, Stretch, Walk, temperature_at
from microguard.sdc.cta.annealing.line_blocks import MOST_TURNED, Blocks, blocks_of
from microguard.sdc.cta.program.constraint_classes import disjoint_classes
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.kernels.compile import embedded, kernel
from microguard.sdc.kernels.random import integer_below, new_stream, uniform

#: First and last temperature relative to the mean protection level: below, hardly a constraint turns any
#: more.
HOT, COLD = 0.3, 0.12
#: How much colder a run begins that refines directions: at 25x25 from 0.4 to 0.7 all end alike.
WARMTH = 0.5
#: Weight of the mean class beside the largest: breaks the ties between classes that are not the largest.
MEAN_CLASS_WEIGHT = 0.1
#: Flips that a constraint takes as long as.
LINE_FLIPS = 3


class _Sums(NamedTuple):
    """Sums of |r| of each class (2,), and what every pattern of half of a block's cells adds across."""

    classes: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True, eq=False)
class LineClasses(StandIn):
    """The larger class sum of |r|, and a little of the mean one; the best directions met are the answer.

    Attributes
    ----------
    problem, incidence : of `StandIn`, over all constraints
    classes : (constraints,) class of each constraint, 0 or 1, and -1 where no sensitive cell lies in it
    """

    classes: np.ndarray
    warmth: ClassVar[float] = WARMTH

    @classmethod
    def of(cls, problem: Problem) -> LineClasses | None:
        """First-fit colouring of the constraints in their order; None where two classes do not hold them."""
        classes = disjoint_classes(problem)
        if classes.max(initial=-1) > 1:
            return None
        incidence = problem.incidence
        incidence.sort_indices()
        return cls(problem, incidence, classes)

    def temperatures(self, cells: np.ndarray) -> tuple[float, float]:
        """By the mean protection level."""
        level = float(np.mean(self.problem.swing)) / 2
        return HOT * level, COLD * level

    def cool(self, walk: Walk, stretch: Stretch) -> None:
        """The cells of one constraint at a time."""
        rng = np.random.default_rng(stretch.seed)
        blocks = blocks_of(self.incidence, self.problem.swing, stretch.cells, rng)
        _cool(blocks, self.classes, walk, stretch, new_stream(stretch.seed))


@kernel
def _cool(blocks: Blocks, classes: np.ndarray, walk: Walk, stretch: Stretch, stream: np.ndarray) -> None:
    half = 1 << ((MOST_TURNED + 1) // 2)
    sums = _Sums(np.zeros(2), np.zeros(half), np.zeros(half))
    for constraint in range(len(classes)):
        if classes[constraint] >= 0:
            sums.classes[classes[constraint]] += abs(walk.residuals[constraint])
    energy = _energy(sums.classes[0], sums.classes[1])
    if energy < walk.least[0]:
        walk.least[0] = energy
        walk.chosen[:] = walk.directions
    for sweep in range(stretch.first, stretch.last):
        temperature = temperature_at(stretch, sweep)
        for _ in range(max(1, len(stretch.cells) // LINE_FLIPS)):
            block = integer_below(stream, len(blocks.constraints))
            other = integer_below(stream, len(blocks.constraints))
            if abs(walk.residuals[blocks.constraints[other]]) > abs(
                walk.residuals[blocks.constraints[block]]
            ):
                block = other
            turned = _drawn(blocks, classes, walk, sums, block, energy, temperature, stream)
            if turned:
                _turn(blocks, classes, walk, sums, block, turned)
                energy = _energy(sums.classes[0], sums.classes[1])
                if energy < walk.least[0]:
                    walk.least[0] = energy
                    walk.chosen[:] = walk.directions


@embedded
def _energy(one: float, other: float) -> float:
    return max(one, other) + MEAN_CLASS_WEIGHT / 2 * (one + other)


@embedded
def _drawn(
    blocks: Blocks,
    classes: np.ndarray,
    walk: Walk,
    sums: _Sums,
    block: int,
    energy: float,
    temperature: float,
    stream: np.ndarray,
) -> int:
    """Cells of the block to turn, a bit for each: evenly drawn from all that end below a level."""
    limit = energy - temperature * np.log(1.0 - uniform(stream))
    first, constraint = blocks.pointers[block], blocks.constraints[block]
    cells = blocks.pointers[block + 1] - first
    low_cells = cells // 2
    own = sums.classes[classes[constraint]] - abs(walk.residuals[constraint])  # of all but this constraint
    present, rest = 0, walk.residuals[constraint]
    sums.low[0] = sums.classes[1 - classes[constraint]]
    for k in range(cells):
        turn = 1.0
        if walk.directions[blocks.cells[first + k]] == 1:
            present |= 1 << k
            rest -= blocks.steps[first + k]
            turn = -1.0
        gain, crossing = 0.0, blocks.crossing[first + k]
        if crossing >= 0:
            before = walk.residuals[crossing]
            gain = abs(before + turn * blocks.crossing_steps[first + k]) - abs(before)
        if k < low_cells:
            for pattern in range(1 << k):
                sums.low[(1 << k) + pattern] = sums.low[pattern] + gain
        else:
            bit = 1 << (k - low_cells)
            for pattern in range(bit):
                sums.high[bit + pattern] = sums.high[pattern] + gain
    room = limit / (1.0 + MEAN_CLASS_WEIGHT / 2) - own
    at, end = blocks.pattern_pointers[block], blocks.pattern_pointers[block + 1]
    last = end
    while at < last:
        middle = (at + last) // 2
        if blocks.sums[middle] < -rest - room:
            at = middle + 1
        else:
            last = middle
    below, drawn, cheapest, best = 1, 0, energy, 0
    while at < end and blocks.sums[at] <= room - rest:
        turned = blocks.codes[at] ^ present
        across = sums.low[turned & ((1 << low_cells) - 1)] + sums.high[turned >> low_cells]
        changed = _energy(own + abs(rest + blocks.sums[at]), across)
        if changed <= limit and turned:
            below += 1
            if uniform(stream) * below < 1.0:
                drawn = turned
            if changed < cheapest:
                cheapest, best = changed, turned
        at += 1
    return best if cheapest < walk.least[0] else drawn  # what is cheaper than all before is taken


@embedded
def _turn(blocks: Blocks, classes: np.ndarray, walk: Walk, sums: _Sums, block: int, turned: int) -> None:
    first, constraint = blocks.pointers[block], blocks.constraints[block]
    own, before = classes[constraint], walk.residuals[constraint]
    for k in range(blocks.pointers[block + 1] - first):
        if turned >> k & 1:
            cell, crossing = blocks.cells[first + k], blocks.crossing[first + k]
            turn = -1.0 if walk.directions[cell] == 1 else 1.0
            walk.residuals[constraint] += turn * blocks.steps[first + k]
            if crossing >= 0:
                across = walk.residuals[crossing]
                walk.residuals[crossing] += turn * blocks.crossing_steps[first + k]
                sums.classes[1 - own] += abs(walk.residuals[crossing]) - abs(across)
            walk.directions[cell] = 1 - walk.directions[cell]
    sums.classes[own] += abs(walk.residuals[constraint]) - abs(before)
