"""Blocks of the sensitive cells of each constraint of a two-way table, with all patterns of directions.

A block of m cells has 2^m patterns. In the order of what they add to the residual of their constraint, those
that leave it near zero stand together, so that a few of them are looked at where all would be gone through.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

#: Cells of a block at most; those of a longer constraint are dealt out at random.
MOST_TURNED = 10


class Blocks(NamedTuple):
    """Blocks b, their cells from pointers[b] and their patterns from pattern_pointers[b] to before the next.

    Attributes
    ----------
    constraints : constraint of each block
    pointers, pattern_pointers : (blocks + 1,)
    cells, steps : each cell, and how far the constraint's residual moves when it turns from down to up
    crossing, crossing_steps : its other constraint, -1 where it has none, and how far that one's moves
    sums : sum of the steps of the cells that a pattern has up, ascending within each block
    codes : these patterns, a bit for each cell in the order of the block, 1 for up
    """

    constraints: np.ndarray
    pointers: np.ndarray
    cells: np.ndarray
    steps: np.ndarray
    crossing: np.ndarray
    crossing_steps: np.ndarray
    pattern_pointers: np.ndarray
    sums: np.ndarray
    codes: np.ndarray


def blocks_of(
    incidence: sparse.csc_matrix, swing: np.ndarray, turning: np.ndarray, rng: np.random.Generator
) -> Blocks:
    """Build blocks of cells that occur in at most two constraints; incidence is (constraints, cells)."""
    steps = sparse.csc_matrix(incidence @ sparse.diags_array(swing))
    may_turn = np.zeros(len(swing), dtype=bool)
    may_turn[turning] = True
    rows = sparse.csr_matrix(steps)
    constraints, cells, sums, codes = [], [], [], []
    for constraint in range(rows.shape[0]):
        members = rows.indices[rows.indptr[constraint] : rows.indptr[constraint + 1]]
        members = rng.permutation(members[may_turn[members]])
        if len(members) == 0:
            continue
        for block in np.array_split(members, -(-len(members) // MOST_TURNED)):
            of_patterns = _pattern_sums(steps[[constraint]][:, block].toarray().ravel())
            order = np.argsort(of_patterns, kind="stable")
            constraints.append(constraint)
            cells.append(block)
            sums.append(of_patterns[order])
            codes.append(order.astype(np.int16))
    all_cells = np.concatenate(cells)
    owner = np.repeat(np.array(constraints), [len(block) for block in cells])
    own_steps, crossing, crossing_steps = _by_constraint(steps, all_cells, owner)
    return Blocks(
        np.array(constraints),
        _pointers(cells),
        all_cells.astype(np.int64),
        own_steps,
        crossing,
        crossing_steps,
        _pointers(sums),
        np.concatenate(sums),
        np.concatenate(codes),
    )


def _pattern_sums(steps: np.ndarray) -> np.ndarray:
    """(2^cells,) sum of the steps of the cells that each pattern has up."""
    sums = np.zeros(1)
    for step in steps:
        sums = np.concatenate([sums, sums + step])
    return sums


def _by_constraint(
    steps: sparse.csc_matrix, cells: np.ndarray, owner: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Step of each cell in its owner, its other constraint or -1, and its step there."""
    own_steps, crossing_steps = np.zeros((2, len(cells)))
    crossing = np.full(len(cells), -1, dtype=np.int64)
    for place, (cell, constraint) in enumerate(zip(cells, owner, strict=True)):
        for entry in range(steps.indptr[cell], steps.indptr[cell + 1]):
            if steps.indices[entry] == constraint:
                own_steps[place] = steps.data[entry]
            else:
                crossing[place], crossing_steps[place] = steps.indices[entry], steps.data[entry]
    return own_steps, crossing, crossing_steps


def _pointers(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.cumsum([0, *(len(part) for part in parts)])
