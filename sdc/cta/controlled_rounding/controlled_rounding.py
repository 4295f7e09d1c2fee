"""Controlled rounding: every cell of a table of counts to a multiple of a base, additive, by a keyed walk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

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
from sdc.errors import ImpossibleProtection, InvalidParameter, ShapeMismatch, SolverFailed
from sdc.solver import Solution, Status

#: Bases beyond the next multiples that are tried one after the other where this may give way.
WIDER = (1, 3)
#: Of a base: what is so near to a multiple is one; the tolerance of solver and walk.
WHOLE_TOLERANCE = 1e-6
_MOVES, _LEFT = b"microguard/cta/rounding-walk", b"microguard/cta/rounding-left"


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
    wherever the walk alone decides (`Adjustment.work.programs` is 0): in two dimensions of which one is
    hierarchical always, otherwise for most cells.

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
        Whether cells may go beyond the next multiples, as few and as little as needed, where these cannot
        add up.
    effort : {"fast", "standard", "thorough", "exact"}
        Work of the integer program that finishes what a walk leaves open.

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
    steps = (0, *WIDER) if relax else (0,)
    for bases in steps:
        try:
            multiples, work = _rounded(table, shares, box, bases, draws, effort)
            return _result(table, base, multiples, held, work)
        except (ImpossibleProtection, NoSolutionFound):
            if bases == steps[-1]:
                raise
    raise AssertionError("the last step returns or raises")


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
    """Numbers of the key for each cell, and the order of the cells, whatever order they are given in."""

    moves: np.ndarray
    left: np.ndarray
    order: np.ndarray

    @classmethod
    def of(cls, table: CellTable, key: bytes, identities: Sequence[str]) -> _Draws:
        """Parts of totals first, by their names: they give way to each other, and totals move last."""
        order = np.lexsort((np.asarray(identities), totals(table)))
        return cls(keyed_numbers(key, _MOVES, identities), keyed_numbers(key, _LEFT, identities), order)


def _rounded(
    table: CellTable, shares: np.ndarray, box: Box, bases: int, draws: _Draws, effort: str
) -> tuple[np.ndarray, Work]:
    """(cells,) multiples in units of the base, and what they took."""
    relations, start, programs = table.relations, shares, 0
    if np.any(shares < box.lower) or np.any(shares > box.upper):
        start, programs = _solved(nearest_start(relations, shares, box, bases), bases)[: table.cells], 1
    near = np.rint(start)
    start = np.where(np.abs(start - near) <= WHOLE_TOLERANCE, near, start)
    lower, upper = np.floor(start), np.ceil(start)
    order = draws.order[(upper > lower)[draws.order]]
    ends = walked(relations, start, lower, upper, order, draws.moves[order])
    near = np.rint(ends)
    ends = np.where(np.abs(ends - near) <= WHOLE_TOLERANCE, near, ends)
    if np.array_equal(ends, near) and not np.any(relations @ ends):
        return ends, Work(programs=programs, moves=len(order))
    solution = nearest_multiples(relations, np.floor(ends + draws.left), box, bases, effort)
    over = np.rint(_solved(solution, bases)).reshape(-1, table.cells)
    multiples = box.lower + over[0] + (over[2] - over[1] if bases else 0.0)
    return multiples, Work(programs=programs + 1, nodes=solution.nodes, moves=len(order))


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


def _result(table: CellTable, base: int, multiples: np.ndarray, held: np.ndarray, work: Work) -> Adjustment:
    values = base * multiples
    deviations = values - table.values
    relaxed = room_beyond(table, deviations)
    whole = np.array_equal(values % base, np.zeros(table.cells))
    if not whole or not check(table if relaxed is None else relaxed.of(table), values).sound:
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
        algorithm="controlled-rounding",
        stopped_by="work",
        work=work,
        history=(),
        whole=True,
    )
