"""Find sensitive cells whose direction an attacker can infer from the published table.

The direction of a cell is determined if it is the same in every solution that is consistent with the
published table and the known bounds. A solution assigns each sensitive cell one of its two intervals of
deviations, such that all constraints hold. One integer program finds a solution in which as many directions
as possible differ from the published ones. A cell is safe if its direction differs in some solution. The
program is repeated for the remaining cells until no further direction differs.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.feasible_range import DeviationIntervals
from microguard.sdc.cta.table.cell_table import CellTable
from microguard.sdc.cta.table.rows import kept_rows
from microguard.sdc.solver import INFINITY, Limits, Program, Status, solve
from scipy import sparse

#: Node limit of one program. If no solution with the opposite direction is found within the limit, the cell
#: counts as determined (fail closed).
NODES = 20
#: Maximum number of programs. Usually the first program decides nearly all cells.
MAX_PROGRAMS = 12
#: Value of a binary variable above which it counts as 1.
_ROUNDED_UP = 0.5


def determined_directions(
    table: CellTable,
    deviations: np.ndarray,
    intervals: DeviationIntervals,
    cells: np.ndarray,
    least: np.ndarray,
    most: np.ndarray,
) -> np.ndarray:
    """Return for each of `cells` whether an attacker can infer its direction, (k,).

    Parameters
    ----------
    table : CellTable
    deviations : (cells of the table,) deviations of the published values
    intervals : DeviationIntervals
    cells : (k,) positions
    least, most : (k,)
        Bounds on the deviations if each sensitive cell may take any value in the convex hull of its two
        intervals.
    """
    up = deviations[cells] > 0
    other_least = np.where(up, intervals.down_least[cells], intervals.up_least[cells])
    other_most = np.where(up, intervals.down_most[cells], intervals.up_most[cells])
    opposite = np.where(up, -least, most)  # maximum deviation in the opposite direction
    possible = (other_most > 0) & (other_least <= other_most) & (opposite >= other_least * (1 - 1e-9))
    undecided = set(cells[possible].tolist())
    sensitive = np.flatnonzero(table.sensitive & ((intervals.up_most > 0) | (intervals.down_most > 0)))
    place = {int(cell): position for position, cell in enumerate(sensitive)}
    for _ in range(MAX_PROGRAMS):
        if not undecided:
            break
        candidates = np.array([place[cell] for cell in undecided if cell in place], dtype=np.int64)
        reversed_cells = _reversible(table, deviations, intervals, sensitive, candidates)
        safe = undecided & set(sensitive[reversed_cells].tolist())
        if not safe:
            break
        undecided -= safe
    determined = np.ones(len(cells), dtype=bool)
    determined[possible] = np.isin(cells[possible], list(undecided))
    return determined


def _reversible(
    table: CellTable,
    deviations: np.ndarray,
    intervals: DeviationIntervals,
    sensitive: np.ndarray,
    candidates: np.ndarray,
) -> np.ndarray:
    """Return for each sensitive cell whether it has the opposite direction in one consistent solution, (p,).

    The solution reverses the directions of as many `candidates` (positions in `sensitive`) as possible.
    """
    cells, size = table.cells, len(sensitive)
    published_up = deviations[sensitive] > 0
    # binary variable B selects the interval: up_least B - down_most (1 - B) <= y <= up_most B - down_least (1
    # - B)
    up_least, up_most = intervals.up_least[sensitive], intervals.up_most[sensitive]
    down_least, down_most = intervals.down_least[sensitive], intervals.down_most[sensitive]
    unit = float(2.0 ** np.round(np.log2(max(np.median(np.maximum(up_most, down_most)), 1e-12)))) / 64
    pick = sparse.csr_array((np.ones(size), (np.arange(size), sensitive)), shape=(size, cells))
    rows = kept_rows(table)
    constraints = sparse.hstack([sparse.csr_array(rows.matrix), sparse.csr_array((len(rows.least), size))])
    below = sparse.hstack([pick, -sparse.diags_array((up_least + down_most) / unit)])
    above = sparse.hstack([pick, -sparse.diags_array((up_most + down_least) / unit)])
    reward = np.zeros(size)
    reward[candidates] = np.where(published_up[candidates], 1.0, -1.0)
    only_up, only_down = down_most <= 0, up_most <= 0
    program = Program(
        costs=np.concatenate([np.zeros(cells), reward]),
        matrix=sparse.vstack([constraints, below, above]).tocsr(),
        row_lower=np.concatenate([rows.least / unit, -down_most / unit, np.full(size, -INFINITY)]),
        row_upper=np.concatenate([rows.most / unit, np.full(size, INFINITY), -down_least / unit]),
        lower=np.concatenate([-_finite(intervals.down_most / unit), np.where(only_up, 1.0, 0.0)]),
        upper=np.concatenate([_finite(intervals.up_most / unit), np.where(only_down, 0.0, 1.0)]),
        integer=np.concatenate([np.zeros(cells, dtype=bool), np.ones(size, dtype=bool)]),
    )
    start = np.concatenate([deviations / unit, published_up.astype(float)])
    solution = solve(program, Limits(nodes=NODES, relative_gap=0.2), start=start)
    if solution.values is None or solution.status not in (Status.OPTIMAL, Status.FEASIBLE):
        return np.zeros(size, dtype=bool)
    return (solution.values[cells:] > _ROUNDED_UP) != published_up


def _finite(bounds: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(bounds), bounds, INFINITY)
