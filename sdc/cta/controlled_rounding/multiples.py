"""Multiples that add up: a keyed walk, and what finishes it where it ends between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from microguard.sdc.cta.controlled_rounding.annealing import annealed_multiples
from microguard.sdc.cta.controlled_rounding.box import Box
from microguard.sdc.cta.controlled_rounding.program import nearest_multiples, nearest_start
from microguard.sdc.cta.controlled_rounding.walk import walked
from microguard.sdc.cta.counts.count_table import totals
from microguard.sdc.cta.program.infeasible import NoSolutionFound
from microguard.sdc.cta.result import Work
from microguard.sdc.cta.rules.keyed_draw import keyed_numbers
from microguard.sdc.cta.table.cell_table import CellTable
from microguard.sdc.cta.table.summation import Summation
from microguard.sdc.errors import ImpossibleProtection
from microguard.sdc.solver import Solution, Status

#: Bases beyond the next multiples that are tried one after the other where this may give way.
WIDER = (1, 3)
#: Of a base: what is so near to a multiple is one; the tolerance of solver and walk.
WHOLE_TOLERANCE = 1e-6
#: Share of cells that a walk leaves between multiples from which an integer program takes hours, and
#: annealing is tried first where cells may go further.
MOST_OPEN = 1 / 3
#: Cells up to which the program takes a second whatever a walk leaves.
FEW_CELLS = 400
#: `Adjustment.algorithm` where the walk alone decided, so that odds and expectations are exact.
WALK_ALONE = "unbiased walk"
_FROM_NEAR = "walk from the nearest values beside what stands"
_MOVES, _LEFT = b"microguard/cta/rounding-walk", b"microguard/cta/rounding-left"
_SEED = b"microguard/cta/rounding-seed"


@dataclass(frozen=True, eq=False)
class Draws:
    """Numbers of the key for each cell, and the order of the cells, whatever order they are given in.

    Walk and annealing depend on nothing else; where several answers are as good, an integer program depends
    on the order of cells and lines, which is canonical in tables of `Tabulation`.
    """

    moves: np.ndarray
    left: np.ndarray
    order: np.ndarray
    seed: int

    @classmethod
    def of(cls, table: CellTable, key: bytes, identities: Sequence[str]) -> Draws:
        """Parts of totals first, by their names: they give way to each other, and totals move last."""
        order = np.lexsort((np.asarray(identities), totals(table)))
        seed = int(keyed_numbers(key, _SEED, [""])[0] * 2**53)
        return cls(keyed_numbers(key, _MOVES, identities), keyed_numbers(key, _LEFT, identities), order, seed)


@dataclass(frozen=True, eq=False)
class Rounded:
    """Values in units of the base, the steps that led to them, and their work."""

    multiples: np.ndarray
    algorithm: str
    work: Work

    def then(self, multiples: np.ndarray, step: str, programs: int = 0, nodes: int = 0) -> Rounded:
        """The result of a further step."""
        work = replace(self.work, programs=self.work.programs + programs, nodes=nodes)
        return Rounded(multiples, f"{self.algorithm}, {step}", work)


@dataclass(frozen=True, eq=False)
class Rounding:
    """One table to round: values in units of the base, what they may become, draws, and work allowed."""

    table: CellTable
    shares: np.ndarray
    box: Box
    draws: Draws
    effort: str

    def round(self, relax: bool) -> Rounded:
        """Multiples that add up, by a walk and what finishes it."""
        steps = (0, *WIDER) if relax else (0,)
        walk: Rounded | None = None
        for bases in steps:
            try:
                if walk is None or walk.work.programs:  # a walk from the truth is the same at every step
                    walk = self._walk(bases)
                return self._finished(walk, bases, relax)
            except (ImpossibleProtection, NoSolutionFound):
                if bases == steps[-1]:
                    raise
        raise AssertionError("the last step returns or raises")

    def _walk(self, bases: int) -> Rounded:
        """Where the walk ends, from the truth or as near to it as cells that are kept allow."""
        start, programs, name = self.shares, 0, WALK_ALONE
        if np.any(start < self.box.lower) or np.any(start > self.box.upper):
            near = nearest_start(self.table.relations, self.shares, self.box, bases)
            start, programs, name = _solved(near, bases)[: self.table.cells], 1, _FROM_NEAR
        start = _near_whole(start)
        lower, upper = np.floor(start), np.ceil(start)
        order = self.draws.order[(upper > lower)[self.draws.order]]
        ends = walked(self.table.relations, start, lower, upper, order, self.draws.moves[order])
        return Rounded(_near_whole(ends), name, Work(programs=programs, moves=len(order)))

    def _finished(self, walk: Rounded, bases: int, relax: bool) -> Rounded:
        """The walk itself where it ended at multiples, otherwise the nearest ones that were found."""
        ends, relations = walk.multiples, self.table.relations
        between = ends != np.rint(ends)
        if not between.any() and not np.any(relations @ ends):
            return walk
        targets = np.floor(ends + self.draws.left)
        hard = len(ends) > FEW_CELLS and between.mean() > MOST_OPEN
        if relax and (bases or hard):
            annealed = self._annealed(targets)
            if annealed is not None:
                return walk.then(annealed, "annealing")
        solution = nearest_multiples(relations, targets, self.box, bases, self.effort)
        over = np.rint(_solved(solution, bases)).reshape(-1, self.table.cells)
        multiples = self.box.lower + over[0] + (over[2] - over[1] if bases else 0.0)
        return walk.then(multiples, "integer program", 1, solution.nodes)

    def _annealed(self, targets: np.ndarray) -> np.ndarray | None:
        """Multiples by annealing; None where sums of inner cells are not free, or it went too far."""
        standing = np.any(self.box.fixed & (self.shares != 0))
        summation = None if standing else Summation.of(self.table.relations)
        if summation is None:
            return None
        annealed = annealed_multiples(
            summation, targets, self.box, self.draws.order, self.draws.seed, self.effort
        )
        return annealed if self.box.beyond(annealed).max() <= WIDER[-1] else None


def _near_whole(values: np.ndarray) -> np.ndarray:
    near = np.rint(values)
    return np.where(np.abs(values - near) <= WHOLE_TOLERANCE, near, values)


def _solved(solution: Solution, bases: int) -> np.ndarray:
    within = "next to its values" if bases == 0 else f"within {bases} base(s) of those next to its values"
    if solution.status is Status.INFEASIBLE:
        raise ImpossibleProtection(
            f"multiples of the base {within} do not add up, together with the cells that keep a value they "
            "were published with"
        )
    if solution.values is None:
        raise NoSolutionFound(
            f"no multiples of the base {within} were found that add up within the work allowed, and no proof "
            "that there are none; name fewer or coarser dimensions, or protect by adjustment"
        )
    return solution.values
