"""Compute additive multiples of the base by an unbiased draw, or by a keyed random walk followed by a
program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from microguard.sdc.cta.controlled_rounding.annealing import annealed_multiples
from microguard.sdc.cta.controlled_rounding.box import Box
from microguard.sdc.cta.controlled_rounding.program import nearest_multiples, nearest_start
from microguard.sdc.cta.controlled_rounding.unbiased_draw import NO_BIAS, draw_rounding, walk_ends_whole
from microguard.sdc.cta.controlled_rounding.walk import random_walk
from microguard.sdc.cta.counts.count_table import totals
from microguard.sdc.cta.program.infeasible import NoSolutionFound
from microguard.sdc.cta.result import Work
from microguard.sdc.cta.rules.keyed_draw import keyed_numbers
from microguard.sdc.cta.table.cell_table import CellTable
from microguard.sdc.cta.table.summation import Summation
from microguard.sdc.errors import ImpossibleProtection
from microguard.sdc.solver import Solution, Status

#: Numbers of bases by which bounds are widened, tried in this order, if the caller allows it.
WIDENINGS = (1, 3)
#: Distance to a multiple, in bases, below which a value counts as equal to it. It is the tolerance of the
#: solver and of the random walk.
WHOLE_TOLERANCE = 1e-6
#: Maximum share of cells left unrounded by the random walk for which an integer program is tried first; with
#: more cells it takes hours. Above it, annealing is tried first if cells may exceed their adjacent multiples.
MOST_UNROUNDED = 1 / 3
#: Maximum number of cells for which the integer program takes at most a second.
FEW_CELLS = 400
#: Names of the steps (`Adjustment.algorithm`): the walk alone rounded all cells, and a rounding was drawn
#: from an unbiased distribution. For both, the expectation of every cell over all keys is its original value.
WALK_ALONE, DRAWN = "unbiased walk", "unbiased draw"
UNBIASED = (WALK_ALONE, DRAWN)
#: Name of the step (`Adjustment.algorithm`) if a rounding was drawn but no unbiased distribution over the
#: additive roundings exists.
_LEAST_BIASED = "draw of least bias"
_FROM_NEAREST = "random walk from the nearest values that agree with cells published before"
_MOVES, _UNROUNDED = b"microguard/cta/rounding-walk", b"microguard/cta/rounding-left"
_SEED, _DRAW = b"microguard/cta/rounding-seed", b"microguard/cta/rounding-draw"


@dataclass(frozen=True, eq=False)
class Draws:
    """Keyed pseudo-random numbers of each cell and a canonical order of the cells.

    Both are independent of the input order of the cells. Walk and annealing are therefore independent of it
    too. If an integer program has several optima, the solver's choice depends on the order of cells and
    constraints, which is canonical in tables of `Tabulation`.

    Attributes
    ----------
    moves : (cells,) numbers that decide the direction of each step of the walk
    unrounded : (cells,) numbers that round the cells which the walk leaves unrounded
    order : (cells,) positions: internal cells first, then totals, each by name
    seed : int, of annealing and of keyed roundings
    draw : float, number that selects the rounding to be drawn
    """

    moves: np.ndarray
    unrounded: np.ndarray
    order: np.ndarray
    seed: int
    draw: float

    @classmethod
    def from_key(cls, table: CellTable, key: bytes, identities: Sequence[str]) -> Draws:
        """Derive the numbers from a key and the names of the cells."""
        order = np.lexsort((np.asarray(identities), totals(table)))
        seed = int(keyed_numbers(key, _SEED, [""])[0] * 2**53)
        draw = float(keyed_numbers(key, _DRAW, [""])[0])
        moves, unrounded = (keyed_numbers(key, context, identities) for context in (_MOVES, _UNROUNDED))
        return cls(moves, unrounded, order, seed, draw)


@dataclass(frozen=True, eq=False)
class Rounded:
    """Rounded values in units of the base, the names of the steps that computed them, and the work of these
    steps.
    """

    multiples: np.ndarray
    algorithm: str
    work: Work

    def then(self, multiples: np.ndarray, step: str, programs: int = 0, nodes: int = 0) -> Rounded:
        """Return the result of a further step, with the steps and the work of both added up."""
        work = replace(self.work, programs=self.work.programs + programs, nodes=nodes)
        return Rounded(multiples, f"{self.algorithm}, {step}", work)


@dataclass(frozen=True, eq=False)
class Rounding:
    """Rounding of one table.

    Attributes
    ----------
    table : CellTable
    shares : (cells,) values in units of the base
    box : Box
    draws : Draws
    effort : str
    """

    table: CellTable
    shares: np.ndarray
    box: Box
    draws: Draws
    effort: str

    def round(self, relax: bool) -> Rounded:
        """Return additive multiples of the base; with `relax`, widen the bounds until a solution exists."""
        drawn = self._drawn()
        if drawn is not None:
            return drawn
        steps = (0, *WIDENINGS) if relax else (0,)
        walk: Rounded | None = None
        for bases in steps:
            try:
                if walk is None or walk.work.programs:  # without widened bounds, `bases` has no effect
                    walk = self._walk(bases)
                return self._finished(walk, bases, relax)
            except (ImpossibleProtection, NoSolutionFound):
                if bases == steps[-1]:
                    raise
        raise AssertionError("the last step returns or raises")

    def _drawn(self) -> Rounded | None:
        """Draw a rounding if the table is small and the random walk may end between multiples; otherwise
        return None.

        Return None if these conditions do not hold, if there is no additive rounding, or if the work limit
        was reached.
        """
        box, relations = self.box, self.table.relations
        inside = np.all((self.shares >= box.lower) & (self.shares <= box.upper))
        if len(self.shares) > FEW_CELLS or not inside:
            return None
        summation = Summation.from_relations(relations)
        if summation is None or walk_ends_whole(summation):
            return None
        moving = self.draws.order[(box.upper > box.lower)[self.draws.order]]
        drawn = draw_rounding(
            relations[:, moving],
            -(relations @ box.lower),
            (self.shares - box.lower)[moving],
            self.draws.seed,
            self.draws.draw,
        )
        if drawn is None:
            return None
        multiples = box.lower.copy()
        multiples[moving] += drawn.raised
        name = DRAWN if drawn.bias <= NO_BIAS else _LEAST_BIASED
        return Rounded(multiples, name, Work(programs=drawn.programs))

    def _walk(self, bases: int) -> Rounded:
        """Return the end point of the random walk. It starts at the true values, or at the nearest values
        that agree with published cells.
        """
        start, programs, name = self.shares, 0, WALK_ALONE
        if np.any(start < self.box.lower) or np.any(start > self.box.upper):
            near = nearest_start(self.table.relations, self.shares, self.box, bases)
            start, programs, name = _checked_values(near, bases)[: self.table.cells], 1, _FROM_NEAREST
        start = _near_whole(start)
        lower, upper = np.floor(start), np.ceil(start)
        order = self.draws.order[(upper > lower)[self.draws.order]]
        ends = random_walk(self.table.relations, start, lower, upper, order, self.draws.moves[order])
        return Rounded(_near_whole(ends), name, Work(programs=programs, moves=len(order)))

    def _finished(self, walk: Rounded, bases: int, relax: bool) -> Rounded:
        """Round the cells that are still unrounded after the random walk."""
        ends, relations = walk.multiples, self.table.relations
        unrounded = ends != np.rint(ends)
        if not unrounded.any() and not np.any(relations @ ends):
            return walk
        targets = np.floor(ends + self.draws.unrounded)
        hard = len(ends) > FEW_CELLS and unrounded.mean() > MOST_UNROUNDED
        if relax and (bases or hard):
            annealed = self._annealed(targets)
            if annealed is not None:
                return walk.then(annealed, "annealing")
        solution = nearest_multiples(relations, targets, self.box, bases, self.effort)
        over = np.rint(_checked_values(solution, bases)).reshape(-1, self.table.cells)
        multiples = self.box.lower + over[0] + (over[2] - over[1] if bases else 0.0)
        return walk.then(multiples, "integer program", 1, solution.nodes)

    def _annealed(self, targets: np.ndarray) -> np.ndarray | None:
        """Return multiples of the base by annealing.

        Return None if internal cells cannot take any values independently, or if a total exceeds its bounds
        by more than the last of `WIDENINGS`.
        """
        published_before = np.any(self.box.fixed & (self.shares != 0))
        summation = None if published_before else Summation.from_relations(self.table.relations)
        if summation is None:
            return None
        annealed = annealed_multiples(
            summation, targets, self.box, self.draws.order, self.draws.seed, self.effort
        )
        return annealed if self.box.violation(annealed).max() <= WIDENINGS[-1] else None


def _near_whole(values: np.ndarray) -> np.ndarray:
    near = np.rint(values)
    return np.where(np.abs(values - near) <= WHOLE_TOLERANCE, near, values)


def _checked_values(solution: Solution, bases: int) -> np.ndarray:
    within = (
        "adjacent multiples"
        if bases == 0
        else (f"multiples within {bases} base(s) of the adjacent multiples")
    )
    if solution.status is Status.INFEASIBLE:
        raise ImpossibleProtection(
            f"no {within} of the rounding base are additive and agree with the cells published before; "
            "allow relaxation, or use another base"
        )
    if solution.values is None:
        raise NoSolutionFound(
            f"found neither additive {within} of the rounding base within the allowed work nor a proof that "
            "none exist; use fewer or coarser dimensions, or protect the table by adjustment"
        )
    return solution.values
