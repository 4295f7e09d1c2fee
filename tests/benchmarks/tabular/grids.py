"""Draw random grids as in Cox 2005, section 3, and variants."""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta import CellTable
from microguard.sdc.cta.rules.sensitivity import inverse_costs
from scipy import sparse

#: Protection of a sensitive cell, and capacity of any other cell, as shares of its value.
PERCENT = 20.0


def random_table(
    shape: tuple[int, ...],
    seed: int,
    *,
    sensitive: float = 0.3,
    zeros: float = 0.1,
    room: float = PERCENT,
    fixed_margins: bool = False,
    lognormal: bool = False,
    inverse: bool = False,
) -> CellTable:
    """Draw a grid as in Cox 2005, section 3: uniform to 1000, 10 % zeros, 30 % sensitive, 20 % protection."""
    rng = np.random.default_rng(seed)
    internal = rng.lognormal(5.0, 1.5, shape) if lognormal else rng.uniform(0, 1000, shape)
    count = internal.size
    internal.flat[rng.permutation(count)[: round(zeros * count)]] = 0
    full = internal
    for axis in range(internal.ndim):
        full = np.concatenate([full, full.sum(axis=axis, keepdims=True)], axis=axis)
    inside = tuple(slice(0, n) for n in shape)
    flags = np.zeros(full.shape, dtype=bool)
    chosen = np.zeros(count, dtype=bool)
    chosen[rng.permutation(count)[: round(sensitive * count)]] = True
    flags[inside] = chosen.reshape(shape)
    level = PERCENT / 100 * full
    capacity = np.where(flags, level, room / 100 * full)
    if fixed_margins:
        margin = np.ones(full.shape, dtype=bool)
        margin[inside] = False
        capacity = np.where(margin, 0.0, capacity)
    values = full.ravel()
    return CellTable(
        values=values,
        relations=grid_relations(full.shape),
        sensitive=flags.ravel(),
        lower_protection=level.ravel(),
        upper_protection=level.ravel(),
        lower_capacity=capacity.ravel(),
        upper_capacity=capacity.ravel(),
        costs=inverse_costs(values) if inverse else np.ones(len(values)),
    )


def grid_relations(full: tuple[int, ...]) -> sparse.csr_matrix:
    """Return the relations of a grid whose last position along each axis is the margin."""
    position = np.arange(int(np.prod(full))).reshape(full)
    rows, columns, entries = [], [], []
    lines = 0
    for axis, size in enumerate(full):
        along = np.moveaxis(position, axis, -1).reshape(-1, size)
        rows.append(np.repeat(lines + np.arange(len(along)), size))
        columns.append(along.ravel())
        entries.append(np.tile(np.append(np.ones(size - 1), -1.0), len(along)))
        lines += len(along)
    return sparse.csr_matrix(
        (np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns))),
        shape=(lines, position.size),
    )
