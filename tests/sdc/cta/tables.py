"""Small tables for tests: random grids, and a brute force that shares no code with the methods."""

import itertools

import numpy as np
from microguard.sdc.cta import CellTable
from scipy.optimize import linprog


def grid_relations(shape):
    """Return the constraints of a grid with one margin slot per dimension, by definition."""
    full = tuple(n + 1 for n in shape)
    position = np.arange(np.prod(full)).reshape(full)
    constraints = []
    for axis in range(len(shape)):
        for constraint in np.moveaxis(position, axis, -1).reshape(-1, full[axis]):
            row = np.zeros(position.size)
            row[constraint[:-1]], row[constraint[-1]] = 1, -1
            constraints.append(row)
    return np.array(constraints)


def with_margins(internal):
    """Return the cells of a grid, flat, with sums appended along every axis."""
    full = internal
    for axis in range(internal.ndim):
        full = np.concatenate([full, full.sum(axis=axis, keepdims=True)], axis=axis)
    return full.ravel()


def two_cells_and_total(lower_capacity, upper_capacity, costs=None):
    """Return 10 + 20 = 30, where the first cell must move by 3."""
    return CellTable(
        values=[10.0, 20, 30],
        relations=[[1, 1, -1]],
        sensitive=np.array([True, False, False]),
        lower_protection=[3, 0, 0],
        upper_protection=[3, 0, 0],
        lower_capacity=lower_capacity,
        upper_capacity=upper_capacity,
        costs=costs,
    )


def random_grid(shape, seed, *, sensitive=0.4, percent=20, costs=None, whole=False, room=None):
    """Return a small table like those of Cox 2005, section 3."""
    rng = np.random.default_rng(seed)
    internal = rng.integers(5, 200, shape) * 5.0 if whole else rng.uniform(1, 1000, shape)
    flags = np.zeros(tuple(n + 1 for n in shape), dtype=bool)
    chosen = rng.random(shape) < sensitive
    chosen.flat[0] = True
    flags[tuple(slice(0, n) for n in shape)] = chosen
    values = with_margins(internal)
    level = percent / 100 * values
    capacity = level if room is None else room * values
    capacity = np.maximum(capacity, np.where(flags.ravel(), level, 0))
    if whole:
        level, capacity = np.rint(level), np.rint(capacity)
    return CellTable(
        values=values,
        relations=grid_relations(shape),
        sensitive=flags.ravel(),
        lower_protection=level,
        upper_protection=level,
        lower_capacity=capacity,
        upper_capacity=capacity,
        costs=None if costs is None else costs(values),
    )


def brute_force(table, mode):
    """Return the least objective over all directions by scipy's linear program; None if none is feasible."""
    sensitive = np.flatnonzero(table.sensitive)
    cells = table.cells
    best = None
    for signs in itertools.product((-1, 1), repeat=len(sensitive)):
        lower = np.concatenate([np.zeros(2 * cells)])
        upper = np.concatenate([table.upper_capacity, table.lower_capacity])
        for cell, sign in zip(sensitive, signs, strict=True):
            level = table.upper_protection[cell] if sign > 0 else table.lower_protection[cell]
            moved, still = (cell, cells + cell) if sign > 0 else (cells + cell, cell)
            lower[moved], upper[still] = level, 0.0
            if mode == "exact":
                upper[moved] = min(upper[moved], level)
        if np.any(lower > upper):
            continue
        matrix = table.relations.toarray()
        bounds_of_statistics = {}
        if table.quality is not None:
            sums = table.quality.weights.toarray()
            sums = np.hstack([sums, -sums])
            bounds_of_statistics["A_ub"] = np.vstack([sums, -sums])
            bounds_of_statistics["b_ub"] = np.concatenate([table.quality.most, -table.quality.least])
        answer = linprog(
            np.concatenate([table.costs, table.costs]),
            A_eq=np.hstack([matrix, -matrix]),
            b_eq=np.zeros(table.constraints),
            **bounds_of_statistics,
            bounds=np.stack([lower, upper], axis=1),
        )
        if answer.status == 0 and (best is None or answer.fun < best):
            best = answer.fun
    return best
