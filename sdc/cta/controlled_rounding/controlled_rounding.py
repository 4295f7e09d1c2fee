"""Controlled rounding: every cell of a table of counts to a multiple of a base, additive, by a keyed walk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sdc.cta.controlled_rounding.annealing import annealed_multiples
from sdc.cta.controlled_rounding.box import Box
from sdc.cta.controlled_rounding.program import nearest_multiples, nearest_start
from sdc.cta.controlled_rounding.walk import walked
from sdc.cta.counts.count_table import totals
from sdc.cta.effort import EFFORTS
from sdc.cta.program.infeasible import NoSolutionFound
from sdc.cta.program.relaxation import Relaxation
from sdc.cta.result import Adjustment, Work
from sdc.cta.rules.keyed_draw import keyed_numbers
from sdc.cta.table.cell_table import CellTable
from sdc.cta.table.check import check
from sdc.cta.table.summation import Summation
from sdc.errors import ImpossibleProtection, InvalidParameter, ShapeMismatch, SolverFailed
from sdc.solver import Solution, Status

#: Bases beyond the next multiples that are tried one after the other where this may give way.
WIDER = (1, 3)
#: Of a base: what is so near to a multiple is one; the tolerance of solver and walk.
WHOLE_TOLERANCE = 1e-6
#: Share of cells that a walk leaves between multiples from which an integer program takes hours, and
#: annealing is tried first where cells may go further.
MOST_OPEN = 1 / 3
#: `Adjustment.algorithm` where the walk alone decided, so that odds and expectations are exact.
WALK_ALONE = "unbiased walk"
_FROM_NEAR = "walk from the nearest values beside what stands"
_MOVES, _LEFT = b"microguard/cta/rounding-walk", b"microguard/cta/rounding-left"
_SEED = b"microguard/cta/rounding-seed"


def controlled_rounding(
    table: CellTable,
    base: int,
    key: bytes,
    identities: Sequence[str],
    held: np.ndarray | None = None,
    *,
    relax: bool = False,
    effort: str = "standard",
) -> Adjustment:
    """Round every cell to a multiple of the base next to it so that every line still adds up.

    Multiples of the base stay, and with them zeros. The expectation of a cell over all keys is its value
    where the walk alone decides (`Adjustment.algorithm` is `WALK_ALONE`): in two dimensions of which one is
    hierarchical always, unless cells stand published; otherwise about.

    Parameters
    ----------
    table : CellTable
        Of `with_adjacent_multiples`. Values are counts; the result is checked against levels and
        capacities, and priced by the costs.
    base : int
    key, identities : of `keyed_numbers`; (cells,) names, in whose order cells are moved
    held : (cells,) array, optional
        What a cell stands published with, NaN where it does not.
    relax : bool
        Whether cells may go beyond the next multiples, as few and as little as is found, where these cannot
        add up, or where an integer program would take hours to tell.
    effort : {"fast", "standard", "thorough", "exact"}
        Work of what finishes a walk that ends between multiples: an integer program, or annealing.

    Raises
    ------
    InvalidParameter, ShapeMismatch
        Where values are no counts, held ones no multiples, or names are missing or stand twice.
    ImpossibleProtection
        Where no multiples add up.
    NoSolutionFound
        Where none were found, and no proof that there are none.
    SolverFailed
        Where the rounded table failed its check.

    References
    ----------
    Cox 1987 (unbiased controlled rounding); Salazar-Gonzalez 2006, Controlled rounding and cell perturbation
    (the programs, and zero-restricted rounding with its relaxation).
    """
    held = np.full(table.cells, np.nan) if held is None else np.asarray(held, dtype=float)
    _check_arguments(table, base, identities, held, effort)
    shares = table.values / base
    box = Box.around(shares, held / base)
    draws = _Draws.of(table, key, identities)
    found = _Rounding(table, shares, box, draws, effort).found(relax)
    return _result(table, base, found, held)


def with_adjacent_multiples(table: CellTable, base: int) -> CellTable:
    """The table with room up to the next multiple either way, and none where a value is one."""
    return replace(table, lower_capacity=table.values % base, upper_capacity=-table.values % base)


def room_beyond(table: CellTable, deviations: np.ndarray) -> Relaxation | None:
    """Room that rounding took beyond the capacities of a table, None where it took none."""
    lower = np.maximum(-deviations - table.lower_capacity, 0.0)
    upper = np.maximum(deviations - table.upper_capacity, 0.0)
    cells = int(np.sum((lower > 0) | (upper > 0)))
    if not cells:
        return None
    added = float(np.sum(lower + upper))
    lower, upper = table.lower_capacity + lower, table.upper_capacity + upper
    return Relaxation(lower, upper, {"adjacent": cells}, added, least=False)


def _check_arguments(
    table: CellTable, base: int, identities: Sequence[str], held: np.ndarray, effort: str
) -> None:
    if base < 2:
        raise InvalidParameter("a base below 2 changes no count")
    if effort not in EFFORTS:
        raise InvalidParameter(f"unknown effort {effort!r}; expected one of {', '.join(EFFORTS)}")
    if len(identities) != table.cells or held.shape != (table.cells,):
        raise ShapeMismatch(f"expected a name and a held value for each of {table.cells} cells")
    if len(set(identities)) < len(identities):
        raise InvalidParameter("two cells have the same name; their order would not be known")
    counts = table.values
    if np.any(counts < 0) or np.any(counts != np.rint(counts)):
        raise InvalidParameter("a value is no count; controlled rounding is for whole numbers from 0 on")
    odd = np.isfinite(held) & ((held < 0) | (held % base != 0))
    if odd.any():
        raise InvalidParameter(
            f"{int(odd.sum())} cell(s) stand published at values that are no multiples of the base {base}; "
            "publish with the base of then, or by another method",
            variable=int(np.argmax(odd)),
        )


@dataclass(frozen=True, eq=False)
class _Draws:
    """Numbers of the key for each cell, and the order of the cells, whatever order they are given in.

    Walk and annealing depend on nothing else; where several answers are as good, an integer program depends
    on the order of cells and lines, which is canonical in tables of `Tabulation`.
    """

    moves: np.ndarray
    left: np.ndarray
    order: np.ndarray
    seed: int

    @classmethod
    def of(cls, table: CellTable, key: bytes, identities: Sequence[str]) -> _Draws:
        """Parts of totals first, by their names: they give way to each other, and totals move last."""
        order = np.lexsort((np.asarray(identities), totals(table)))
        seed = int(keyed_numbers(key, _SEED, [""])[0] * 2**53)
        return cls(keyed_numbers(key, _MOVES, identities), keyed_numbers(key, _LEFT, identities), order, seed)


@dataclass(frozen=True, eq=False)
class _Found:
    """Values in units of the base, what found them, and its work."""

    multiples: np.ndarray
    algorithm: str
    work: Work

    def then(self, multiples: np.ndarray, step: str, programs: int = 0, nodes: int = 0) -> _Found:
        """What another step made of it."""
        work = replace(self.work, programs=self.work.programs + programs, nodes=nodes)
        return _Found(multiples, f"{self.algorithm}, {step}", work)


@dataclass(frozen=True, eq=False)
class _Rounding:
    """One table to round: values in units of the base, what they may become, draws, and work allowed."""

    table: CellTable
    shares: np.ndarray
    box: Box
    draws: _Draws
    effort: str

    def found(self, relax: bool) -> _Found:
        """Multiples that add up, by a walk and what finishes it."""
        steps = (0, *WIDER) if relax else (0,)
        walk: _Found | None = None
        for bases in steps:
            try:
                if walk is None or walk.work.programs:  # a walk from the truth is the same at every step
                    walk = self._walk(bases)
                return self._finished(walk, bases, relax)
            except (ImpossibleProtection, NoSolutionFound):
                if bases == steps[-1]:
                    raise
        raise AssertionError("the last step returns or raises")

    def _walk(self, bases: int) -> _Found:
        """Where the walk ends, from the truth or as near to it as cells that are kept allow."""
        start, programs, name = self.shares, 0, WALK_ALONE
        if np.any(start < self.box.lower) or np.any(start > self.box.upper):
            near = nearest_start(self.table.relations, self.shares, self.box, bases)
            start, programs, name = _solved(near, bases)[: self.table.cells], 1, _FROM_NEAR
        start = _near_whole(start)
        lower, upper = np.floor(start), np.ceil(start)
        order = self.draws.order[(upper > lower)[self.draws.order]]
        ends = walked(self.table.relations, start, lower, upper, order, self.draws.moves[order])
        return _Found(_near_whole(ends), name, Work(programs=programs, moves=len(order)))

    def _finished(self, walk: _Found, bases: int, relax: bool) -> _Found:
        """The walk itself where it ended at multiples, otherwise the nearest ones that were found."""
        ends, relations = walk.multiples, self.table.relations
        between = ends != np.rint(ends)
        if not between.any() and not np.any(relations @ ends):
            return walk
        targets = np.floor(ends + self.draws.left)
        if relax and (bases or between.mean() > MOST_OPEN):
            annealed = self._annealed(targets)
            if annealed is not None:
                return walk.then(annealed, "annealing")
        solution = nearest_multiples(relations, targets, self.box, bases, self.effort)
        over = np.rint(_solved(solution, bases)).reshape(-1, self.table.cells)
        multiples = self.box.lower + over[0] + (over[2] - over[1] if bases else 0.0)
        return walk.then(multiples, "integer program", 1, solution.nodes)

    def _annealed(self, targets: np.ndarray) -> np.ndarray | None:
        """Multiples by annealing; None where sums of inner cells are not free, or it went too far."""
        standing = np.any(self.box.kept & (self.shares != 0))
        summation = None if standing else Summation.of(self.table.relations)
        if summation is None:
            return None
        found = annealed_multiples(
            summation, targets, self.box, self.draws.order, self.draws.seed, self.effort
        )
        return found if self.box.beyond(found).max() <= WIDER[-1] else None


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
    if solution.values is None or solution.timed_out:
        raise NoSolutionFound(
            f"no multiples of the base {within} were found that add up within the work allowed, and no proof "
            "that there are none; name fewer or coarser dimensions, or protect by adjustment"
        )
    return solution.values


def _result(table: CellTable, base: int, found: _Found, held: np.ndarray) -> Adjustment:
    values = base * found.multiples
    deviations = values - table.values
    relaxed = room_beyond(table, deviations)
    if np.any(values % base) or not check(table if relaxed is None else relaxed.of(table), values).sound:
        raise SolverFailed("the rounded table failed its independent check; nothing is returned")
    rest = table.values % base
    nearest = np.where(np.isfinite(held), np.abs(held - table.values), np.minimum(rest, -table.values % base))
    directions = np.where(table.sensitive, np.sign(deviations), 0).astype(np.int8)
    return Adjustment(
        values=values,
        deviations=deviations,
        directions=directions,
        objective=float(table.costs @ np.abs(deviations)),
        lower_bound=float(table.costs @ nearest),
        bound_kind="nearest multiples",
        unavoidable=float((table.costs * nearest)[table.sensitive].sum()),
        algorithm=found.algorithm,
        stopped_by="work",
        work=found.work,
        history=(),
        whole=True,
    )
