"""Small count rounding: counts below a base become 0 or the base, chosen jointly; larger counts do not
change.

Every cell below the base that is not a total is rounded, and totals are recomputed. Each published count is
therefore 0 or at least the base, and totals are the sums of their parts. A local search chooses the cells to
round up. It minimises the chi-square distance of all cells, totals included. It starts from draws by the
secret key, and changes single cells and pairs of cells as long as the distance decreases.

References
----------
Langsrud, Heldal 2018, An Algorithm for Small Count Rounding of Tabular Data (only inner cells that small
published counts need are rounded; published totals stay close). The search is specific to this package.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from microguard.sdc.cta.counts.count_table import totals
from microguard.sdc.cta.result import Adjustment, Work
from microguard.sdc.cta.rules.keyed_draw import keyed_numbers
from microguard.sdc.cta.table.cell_table import CellTable
from microguard.sdc.cta.table.check import check
from microguard.sdc.cta.table.summation import Summation
from microguard.sdc.errors import ImpossibleProtection, InvalidParameter, ShapeMismatch, SolverFailed
from scipy import sparse

ALGORITHM = "small count rounding"
_CONTEXT, _ORDER = b"small counts", b"order of small counts"
#: Maximum number of small counts for which pairs are changed together: a square matrix of this size is
#: stored.
MOST_PAIRED = 3000
#: Number of draws that start a search if pairs are tried.
STARTS = 8
#: Minimum gain of a change; smaller gains are rounding errors of floating-point sums.
_LEAST_GAIN = 1e-9


def small_count_rounding(
    table: CellTable, base: int, key: bytes, identities: Sequence[str], held: np.ndarray | None = None
) -> Adjustment:
    """Round the small counts of a table to 0 or a base.

    Parameters
    ----------
    table : CellTable
        Whole numbers of 0 or more, from `with_room_for_small_counts`.
    base : int
        At least 2. No published count is strictly between 0 and the base.
    key : bytes
        Secret key of the initial draws and of the order of the search steps.
    identities : (cells,) distinct names of the cells
    held : (cells,) array, optional
        Value of each cell that was published before, NaN for other cells.

    Returns
    -------
    Adjustment
        ``objective`` is the sum of absolute changes times costs; its lower bound is the sum of the cheapest
        change of each small count alone.

    Raises
    ------
    InvalidParameter
        If a value is not a count, or the cells that are not totals do not determine the others (linked
        tables).
    ImpossibleProtection
        If values that were published before cannot be kept.
    """
    if base < 2:
        raise InvalidParameter(f"rounding base: expected at least 2, found {base}")
    if len(identities) != table.cells:
        raise ShapeMismatch(f"names of cells: expected {table.cells}, found {len(identities)}")
    counts = table.values
    if np.any(counts < 0) or np.any(counts != np.rint(counts)):
        raise InvalidParameter(
            "values: expected whole numbers of at least 0 (counts), found others; small count rounding "
            "needs counts"
        )
    summation = _summation(table)
    held = np.full(table.cells, np.nan) if held is None else np.asarray(held, dtype=float)
    small = _small(table, base)
    up, work = _chosen(counts, summation, small, base, key, identities, held)
    internal = counts[summation.internal].copy()
    internal[np.searchsorted(summation.internal, small)] = np.where(up, float(base), 0.0)
    values = np.asarray(summation.matrix @ internal)
    lost = np.isfinite(held) & (held != values)
    if lost.any():
        raise ImpossibleProtection(
            f"{int(lost.sum())} cell(s) were published before with values that no joint rounding of the "
            "small counts can reproduce; publish both tables as one, or exclude their common cells",
            variable=int(np.argmax(lost)),
        )
    if not check(table, values).sound:
        raise SolverFailed("the rounded table failed its independent check, so no result is returned")
    nearest = np.zeros(table.cells)
    nearest[small] = np.minimum(counts[small], base - counts[small])
    deviations = values - counts
    return Adjustment(
        values=values,
        deviations=deviations,
        directions=np.where(table.sensitive, np.sign(deviations), 0).astype(np.int8),
        objective=float(table.costs @ np.abs(deviations)),
        lower_bound=float(table.costs @ nearest),
        bound_kind="nearest multiples",
        unavoidable=float(table.costs[small] @ nearest[small]),
        algorithm=ALGORITHM,
        stopped_by="work",
        work=Work(moves=work),
        history=(),
        whole=True,
    )


def with_room_for_small_counts(table: CellTable, base: int) -> CellTable:
    """Return the table with capacities that allow small counts to become 0 or the base, and totals to change
    accordingly.

    Raises
    ------
    InvalidParameter
        If the cells that are not totals do not determine the others.
    """
    summation, small = _summation(table), _small(table, base)
    fall, rise = np.zeros(table.cells), np.zeros(table.cells)
    fall[small], rise[small] = table.values[small], base - table.values[small]
    return replace(
        table,
        lower_capacity=summation.matrix @ fall[summation.internal],
        upper_capacity=summation.matrix @ rise[summation.internal],
    )


def as_known_to_readers(table: CellTable, published: np.ndarray, base: int) -> CellTable:
    """Describe the counts that are possible for an attacker who knows the method.

    A published 0 was less than the base. A published base was 1 to the base. A larger count that is not a
    total is the true count.

    Parameters
    ----------
    published : (cells,) rounded counts
    """
    summation = _summation(table)
    inside = ~totals(table)
    fall = np.where(inside & (published == 0), base - 1.0, 0.0)
    rise = np.where(inside & (published == base), base - 1.0, 0.0)
    small = np.zeros(table.cells, bool)
    small[_small(table, base)] = True
    level = np.where(small, base - 1.0, 0.0)
    return replace(
        table,
        sensitive=small,
        lower_protection=level,
        upper_protection=level,
        lower_capacity=summation.matrix @ fall[summation.internal],
        upper_capacity=summation.matrix @ rise[summation.internal],
    )


def small_count_odds(base: int) -> np.ndarray:
    """Return the probabilities (2 base, 3) of 0, base and 2 base for the counts 0 to 2 base - 1.

    Below the base the probabilities are those of unbiased rounding. The base itself does not change. Larger
    counts are never published as 0 or as the base; their probability is entered at 2 base.
    """
    counts = np.arange(2 * base)
    excess = np.where(counts < base, counts / base, 0.0)
    odds = np.zeros((2 * base, 3))
    odds[:, 0], odds[:, 1] = np.where(counts < base, 1 - excess, 0.0), excess
    odds[base, 1] = 1.0
    odds[base + 1 :, 2] = 1.0
    return odds


def _summation(table: CellTable) -> Summation:
    summation = Summation.from_relations(table.relations)
    if summation is None:
        raise InvalidParameter(
            "two breakdowns have a common total, so the cells that are no totals do not determine it; "
            "small count rounding needs one table, with any hierarchies: name only one breakdown"
        )
    return summation


def _small(table: CellTable, base: int) -> np.ndarray:
    """Return the positions of small counts that are not totals."""
    return np.flatnonzero(~totals(table) & (table.values > 0) & (table.values < base))


def _chosen(
    counts: np.ndarray,
    summation: Summation,
    small: np.ndarray,
    base: int,
    key: bytes,
    identities: Sequence[str],
    held: np.ndarray,
) -> tuple[np.ndarray, int]:
    """Return which small counts are rounded up to the base, and the number of changes made by the search."""
    names = [identities[cell] for cell in small.tolist()]
    fixed = np.isfinite(held[small])
    sums = sparse.csr_matrix(summation.matrix[:, np.searchsorted(summation.internal, small)])
    kept = np.isfinite(held)
    # totals published before have priority
    weights = 1.0 / np.maximum(counts, 1.0) + np.where(kept, 1e6, 0.0)
    goal = np.where(kept, held - counts, 0.0)
    order = np.lexsort((names, keyed_numbers(key, _ORDER, names)))
    order = order[~fixed[order]]
    best, least, moves = np.zeros(len(small), bool), np.inf, 0
    for start in range(STARTS if len(small) <= MOST_PAIRED else 1):
        up = keyed_numbers(key, _CONTEXT + b" %d" % start, names) < counts[small] / base
        up = np.where(fixed, held[small] > 0, up)
        up, made = _search(up, sums, weights, goal, counts[small], base, order)
        residual = sums @ np.where(up, base - counts[small], -counts[small]) - goal
        found, moves = float(weights @ residual**2), moves + made
        if found < least - _LEAST_GAIN:
            best, least = up, found
    return best, moves


def _search(
    up: np.ndarray,
    sums: sparse.csr_matrix,
    weights: np.ndarray,
    goal: np.ndarray,
    small: np.ndarray,
    base: int,
    order: np.ndarray,
) -> tuple[np.ndarray, int]:
    """Change single small counts and pairs of them as long as the weighted sum of squares over all cells
    decreases.
    """
    up, moves = up.copy(), 0
    weighted = sparse.csr_matrix(sums.T.multiply(weights))
    residual = np.asarray(sums @ np.where(up, base - small, -small)) - goal
    slope = np.asarray(weighted @ residual)
    own = np.asarray(weighted.multiply(sums.T).sum(axis=1)).ravel()
    paired = np.asarray((weighted @ sums).todense()) if len(small) <= MOST_PAIRED else None
    cells = sparse.csr_matrix(sums.T)

    def flip(position: int) -> None:
        nonlocal moves, slope
        step = -base if up[position] else base
        up[position] = not up[position]
        if paired is not None:
            slope += step * paired[position]
        else:
            inside = cells.indices[cells.indptr[position] : cells.indptr[position + 1]]
            slope += step * np.asarray(weighted[:, inside].sum(axis=1)).ravel()
        moves += 1

    improved = True
    while improved:
        improved = False
        for position in order.tolist():
            step = np.where(up, -base, base).astype(float)
            gain = 2 * step * slope + step**2 * own  # change of the objective for each single cell
            if gain[position] < -_LEAST_GAIN:
                flip(position)
                improved = True
                continue
            if paired is None:
                continue
            both = gain[order] + gain[position] + 2 * step[position] * step[order] * paired[position, order]
            both[order == position] = 0.0
            best = int(np.argmin(both))
            if both[best] < -_LEAST_GAIN:
                flip(position)
                flip(int(order[best]))
                improved = True
    return up, moves
