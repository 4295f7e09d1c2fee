"""Controlled rounding: round all counts of a table to multiples of a base and keep it additive."""

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
    """Round every cell to an adjacent multiple of the base so that all constraints still hold.

    Multiples of the base, zeros included, do not change. If `Adjustment.algorithm` is one of `UNBIASED`, the
    expectation of a cell over all keys is its value. If no cell was published before, this holds in two
    dimensions, at most one of them hierarchical. It also holds in tables of up to `FEW_CELLS` cells if any
    distribution over additive roundings has these expectations. Otherwise the bias of a single cell can
    exceed a fifth of the base.

    Parameters
    ----------
    table : CellTable
        From `with_adjacent_multiples`. Values are counts. The result is checked against protection levels
        and capacities; costs define the reported objective.
    base : int
    key : bytes
    identities : (cells,) distinct names, which define the order in which cells are moved; see `keyed_numbers`
    held : (cells,) array, optional
        Value with which a cell was published before, NaN if it was not.
    relax : bool
        Whether cells may exceed their adjacent multiples if no additive adjacent multiples exist, or if an
        integer program would take hours to decide whether they exist.
    effort : {"fast", "standard", "thorough", "exact"}
        Work of the integer program or annealing that rounds the cells that the walk leaves unrounded.

    Raises
    ------
    InvalidParameter, ShapeMismatch
        If values are not counts, held values are not multiples, or names are missing or not distinct.
    ImpossibleProtection
        If no additive multiples exist.
    NoSolutionFound
        If no additive multiples were found and it was not proved that none exist.
    SolverFailed
        If the rounded table failed its independent check.

    References
    ----------
    Cox 1987, A constructive procedure for unbiased controlled rounding; Salazar-Gonzalez 2006, Controlled
    rounding and cell perturbation (integer programs, zero-restricted rounding and its relaxation).
    """
    held = np.full(table.cells, np.nan) if held is None else np.asarray(held, dtype=float)
    _check_arguments(table, base, identities, held, effort)
    shares = table.values / base
    box = Box.from_values(shares, held / base)
    draws = Draws.from_key(table, key, identities)
    rounded = Rounding(table, shares, box, draws, effort).round(relax)
    return _result(table, base, rounded, held)


def with_adjacent_multiples(table: CellTable, base: int) -> CellTable:
    """Set the capacities of a table so that each cell can reach only the adjacent multiples of the base."""
    return replace(table, lower_capacity=table.values % base, upper_capacity=-table.values % base)


def room_beyond(table: CellTable, deviations: np.ndarray) -> Relaxation | None:
    """Return by how much rounding exceeded the capacities of a table; None if it did not."""
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
        raise InvalidParameter(f"rounding base: expected at least 2, found {base}")
    if effort not in EFFORTS:
        raise InvalidParameter(f"effort: found {effort!r}, expected one of {', '.join(EFFORTS)}")
    if len(identities) != table.cells or held.shape != (table.cells,):
        raise ShapeMismatch(
            f"names and fixed values: expected one of each for the {table.cells} cells, found "
            f"{len(identities)} names and fixed values of shape {held.shape}"
        )
    if len(set(identities)) < len(identities):
        raise InvalidParameter("names of the cells: expected distinct names, found repeated ones")
    if table.quality is not None:
        raise InvalidParameter(
            "controlled rounding preserves only totals; remove the other preserved statistics"
        )
    counts = table.values
    if np.any(counts < 0) or np.any(counts != np.rint(counts)):
        raise InvalidParameter("values: expected whole numbers of at least 0 (counts), found others")
    odd = np.isfinite(held) & ((held < 0) | (held % base != 0))
    if odd.any():
        raise InvalidParameter(
            f"{int(odd.sum())} cell(s) were published before with values that are not multiples of the "
            f"base {base}; use the base of that release, or another method",
            variable=int(np.argmax(odd)),
        )


def _result(table: CellTable, base: int, rounded: Rounded, held: np.ndarray) -> Adjustment:
    values = base * rounded.multiples
    deviations = values - table.values
    relaxed = room_beyond(table, deviations)
    if np.any(values % base) or not check(table if relaxed is None else relaxed.apply(table), values).sound:
        raise SolverFailed("the rounded table failed its independent check, so no result is returned")
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
