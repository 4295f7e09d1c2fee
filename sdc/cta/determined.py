"""Directions that follow from what is published: every world that an attacker holds possible has the same.

A world gives every sensitive cell one of its two bands so that all lines still add up. One integer program
turns as many cells as it can at once; each cell it turns is safe. The others are tried again until no world
turns any of them.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.feasible_range import Reach
from microguard.sdc.cta.table.cell_table import CellTable
from microguard.sdc.cta.table.rows import kept_rows
from microguard.sdc.solver import INFINITY, Limits, Program, Status, solve
from scipy import sparse

#: Nodes of one program. A cell that no world turned within them counts as determined: fail closed.
NODES = 20
#: Programs at most; each but the last turns at least one cell, usually nearly all.
MAX_WORLDS = 12
#: A world turns a cell where its binary says so by more than this.
_TURNED = 0.5


def determined_directions(
    table: CellTable,
    deviations: np.ndarray,
    reach: Reach,
    cells: np.ndarray,
    least: np.ndarray,
    most: np.ndarray,
) -> np.ndarray:
    """(k,) whether the direction of each of `cells` is the only possible one.

    Parameters
    ----------
    table : CellTable
    deviations : (cells of the table,) as published
    reach : Reach
    cells : (k,) positions
    least, most : (k,) deviations that the lines leave possible over hulls of bands
    """
    up = deviations[cells] > 0
    other_least = np.where(up, reach.down_least[cells], reach.up_least[cells])
    other_most = np.where(up, reach.down_most[cells], reach.up_most[cells])
    room = np.where(up, -least, most)  # how far the other way the lines let the cell go
    open_cells = (other_most > 0) & (other_least <= other_most) & (room >= other_least * (1 - 1e-9))
    undecided = set(cells[open_cells].tolist())
    sensitive = np.flatnonzero(table.sensitive & ((reach.up_most > 0) | (reach.down_most > 0)))
    place = {int(cell): position for position, cell in enumerate(sensitive)}
    for _ in range(MAX_WORLDS):
        if not undecided:
            break
        candidates = np.array([place[cell] for cell in undecided if cell in place], dtype=np.int64)
        turned = _world(table, deviations, reach, sensitive, candidates)
        gained = undecided & set(sensitive[turned].tolist())
        if not gained:
            break
        undecided -= gained
    determined = np.ones(len(cells), dtype=bool)
    determined[open_cells] = np.isin(cells[open_cells], list(undecided))
    return determined


def _world(
    table: CellTable, deviations: np.ndarray, reach: Reach, sensitive: np.ndarray, candidates: np.ndarray
) -> np.ndarray:
    """(p,) cells turned by a world that turns as many of the candidates as it can."""
    cells, size = table.cells, len(sensitive)
    up_now = deviations[sensitive] > 0
    # y = band ends by B: (up_least B - down_most (1 - B)) <= y <= (up_most B - down_least (1 - B))
    up_least, up_most = reach.up_least[sensitive], reach.up_most[sensitive]
    down_least, down_most = reach.down_least[sensitive], reach.down_most[sensitive]
    unit = float(2.0 ** np.round(np.log2(max(np.median(np.maximum(up_most, down_most)), 1e-12)))) / 64
    pick = sparse.csr_array((np.ones(size), (np.arange(size), sensitive)), shape=(size, cells))
    rows = kept_rows(table)
    lines = sparse.hstack([sparse.csr_array(rows.matrix), sparse.csr_array((len(rows.least), size))])
    below = sparse.hstack([pick, -sparse.diags_array((up_least + down_most) / unit)])
    above = sparse.hstack([pick, -sparse.diags_array((up_most + down_least) / unit)])
    reward = np.zeros(size)
    reward[candidates] = np.where(up_now[candidates], 1.0, -1.0)
    only_up, only_down = down_most <= 0, up_most <= 0
    program = Program(
        costs=np.concatenate([np.zeros(cells), reward]),
        matrix=sparse.vstack([lines, below, above]).tocsr(),
        row_lower=np.concatenate([rows.least / unit, -down_most / unit, np.full(size, -INFINITY)]),
        row_upper=np.concatenate([rows.most / unit, np.full(size, INFINITY), -down_least / unit]),
        lower=np.concatenate([-_finite(reach.down_most / unit), np.where(only_up, 1.0, 0.0)]),
        upper=np.concatenate([_finite(reach.up_most / unit), np.where(only_down, 0.0, 1.0)]),
        integer=np.concatenate([np.zeros(cells, dtype=bool), np.ones(size, dtype=bool)]),
    )
    start = np.concatenate([deviations / unit, up_now.astype(float)])
    solution = solve(program, Limits(nodes=NODES, relative_gap=0.2), start=start)
    if solution.values is None or solution.status not in (Status.OPTIMAL, Status.FEASIBLE):
        return np.zeros(size, dtype=bool)
    return (solution.values[cells:] > _TURNED) != up_now


def _finite(bounds: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(bounds), bounds, INFINITY)
