"""Merge identical cells into one variable: a total equals its part if it has only one part that can change.

Sparse hierarchical tables have many identical cells. One variable has one direction, one level and one secret
factor, so the search does not have to discover that these must be equal.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from microguard.sdc.cta.result import Adjustment
from microguard.sdc.cta.table.cell_table import CellTable
from microguard.sdc.cta.table.check import check
from microguard.sdc.errors import SdcError, SolverFailed
from scipy import sparse
from scipy.sparse.csgraph import connected_components


def identical_cells(table: CellTable, alike: np.ndarray | None = None) -> np.ndarray:
    """Return the number of each cell's variable, (cells,); variables are numbered in the order of their first
    cells.

    Parameters
    ----------
    table : CellTable
    alike : (cells,) integer array, optional
        Cells that are known to be identical have the same number; -1 if nothing is known.
    """
    fixed = (table.values == 0) & (table.lower_capacity == 0) & (table.upper_capacity == 0)
    moving = np.flatnonzero(~fixed)
    lines = sparse.csr_matrix(table.relations[:, moving])
    pairs = np.flatnonzero(np.diff(lines.indptr) == 2)
    entries = lines.indptr[pairs][:, None] + np.arange(2)
    opposite = lines.data[entries].sum(axis=1) == 0
    ends = moving[lines.indices[entries[opposite]]].reshape(-1, 2)
    if alike is not None:
        order = np.argsort(alike, kind="stable")
        known = (alike[order[:-1]] == alike[order[1:]]) & (alike[order[1:]] >= 0)
        ends = np.concatenate([ends, np.column_stack([order[:-1], order[1:]])[known]])
    links = sparse.csr_matrix(
        (np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(table.cells, table.cells)
    )
    _, labels = connected_components(links, directed=False)
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def table_of_variables(table: CellTable, variables: np.ndarray) -> CellTable:
    """Return the table of variables: each has the summed costs, the largest levels and the smallest
    capacities of its cells.

    An adjustment of the table of variables is an adjustment of the whole table at the same cost: every cell
    takes the value of its variable.
    """
    count = int(variables.max()) + 1
    first = np.unique(variables, return_index=True)[1]
    place = sparse.csr_matrix(
        (np.ones(table.cells), (np.arange(table.cells), variables)), shape=(table.cells, count)
    )
    lines = sparse.csr_matrix(table.relations @ place)
    lines.eliminate_zeros()

    def largest(array: np.ndarray) -> np.ndarray:
        found = np.zeros(count)
        np.maximum.at(found, variables, array)
        return found

    def smallest(array: np.ndarray) -> np.ndarray:
        found = np.full(count, np.inf)
        np.minimum.at(found, variables, array)
        return found

    assert table.costs is not None
    return CellTable(
        values=table.values[first],
        relations=lines[np.diff(lines.indptr) > 0],
        sensitive=largest(table.sensitive.astype(float)) > 0,
        lower_protection=largest(table.lower_protection),
        upper_protection=largest(table.upper_protection),
        lower_capacity=smallest(table.lower_capacity),
        upper_capacity=smallest(table.upper_capacity),
        costs=np.bincount(variables, weights=table.costs),
        quality=None if table.quality is None else table.quality.of_variables(place),
    )


def with_variables(table: CellTable, mode: str) -> tuple[CellTable, np.ndarray] | None:
    """Return the table of variables and the variable of each cell; None if variables cannot replace all
    cells.

    The table of variables cannot replace the whole table if all cells differ, or if mode "exact" requires
    identical cells to move by different levels. The same holds if its levels exceed its capacities, because
    the constraints of the whole table must then prove infeasibility.
    """
    variables = identical_cells(table)
    if int(variables.max()) + 1 == table.cells:
        return None
    try:
        by_variable = table_of_variables(table, variables)
    except SdcError:
        return None
    if mode == "exact":
        sensitive = table.sensitive
        for name in ("lower_protection", "upper_protection"):
            if np.any(getattr(by_variable, name)[variables][sensitive] != getattr(table, name)[sensitive]):
                return None
    return by_variable, variables


def of_all_cells(answer: Adjustment, table: CellTable, variables: np.ndarray, mode: str) -> Adjustment:
    """Expand the adjustment of the variables to all cells, at the same cost.

    Raises
    ------
    SolverFailed
        If the adjustment fails the check of the whole table.
    """
    deviations = answer.deviations[variables]
    values = table.values + deviations
    if not check(table, values, mode).sound:
        raise SolverFailed("the adjusted table failed its independent check, so no result is returned")
    directions = np.where(table.sensitive, answer.directions[variables], 0).astype(np.int8)
    return replace(answer, values=values, deviations=deviations, directions=directions)
