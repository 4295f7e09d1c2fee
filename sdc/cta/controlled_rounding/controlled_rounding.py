"""Controlled rounding: every cell of a table of counts to a multiple of a base, additive, by a keyed walk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from microguard.sdc.cta.controlled_rounding.box import Box
from microguard.sdc.cta.controlled_rounding.multiples import Draws, Rounded, Rounding
from microguard.sdc.cta.effort import EFFORTS
from microguard.sdc.cta.program.relaxation import Relaxation
from microguard.sdc.cta.result import Adjustment
from microguard.sdc.cta.table.cell_table import CellTable
from microguard.sdc.cta.table.check import check
from microguard.sdc.errors import InvalidParameter, ShapeMismatch, SolverFailed


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
    where the walk alone decides (`Adjustment.algorithm` is `WALK_ALONE`), which it always does in two
    dimensions of which at most one is hierarchical, unless cells stand published; elsewhere it is near it.

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
    draws = Draws.of(table, key, identities)
    rounded = Rounding(table, shares, box, draws, effort).round(relax)
    return _result(table, base, rounded, held)


def with_adjacent_multiples(table: CellTable, base: int) -> CellTable:
    """The table with room up to the next multiple either way, and none where the value is a multiple."""
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
    if table.quality is not None:
        raise InvalidParameter("controlled rounding keeps totals and no other statistics; leave them out")
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


def _result(table: CellTable, base: int, rounded: Rounded, held: np.ndarray) -> Adjustment:
    values = base * rounded.multiples
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
        algorithm=rounded.algorithm,
        stopped_by="work",
        work=rounded.work,
        history=(),
        whole=True,
    )
