"""Cells of combinations that no table has, as attackers of suppressed tables use them.

Tables of activity by region, region by size and activity by size add up the same cells of activity by region
by size. Nobody published those, but everybody knows that none of them is negative. This narrows intervals of
the published tables although no sum of theirs does: whatever the firms of an activity in a region have in
excess of all firms of the region outside of a size, they have in this size.

It matters only if the column sets of the tables form a cycle, as above. Otherwise every table whose sums are
right and that has no negative cell is a sum of cells that are not negative (the column sets are those of a
decomposable model). Columns outside of the cycle do not matter either.

References
----------
Dobra, Fienberg 2000, PNAS 97(22), 11885-11892: bounds for cell entries given marginal totals, and why they
have a closed form in decomposable models.
Beeri, Fagin, Maier, Yannakakis 1983, Journal of the ACM 30(3): reduction of acyclic sets of columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from microguard.pipelines.tables.cells.identity import CellCodes
from microguard.pipelines.tables.hierarchy import families
from microguard.schemas.specification.table import Table
from microguard.sdc.solver.program import INFINITY, Program
from microguard.sdc.solver.solving import solve
from microguard.sdc.suppression import SuppressionProblem
from scipy import sparse
from scipy.sparse.csgraph import connected_components

#: Maximum product of sensitive cells and combinations that are counted. 142 sensitive cells and 1,016
#: combinations take 10 CPU seconds, in the audit of the method and in the count of the guarantee together.
MOST_WORK = 1_000_000
#: Maximum number of combinations: 2,744 take 0.1 CPU seconds to find a table, and 21,952 take 15.
MOST = 5_000
#: Maximum size of a join before the last one, as a multiple of the limit.
_INTERMEDIATE = 10
_CELL = "__cell"
_Columns = frozenset[str]


class NotCounted(Exception):
    """The combinations cannot be counted: too many, or the cells are no sums of combinations that are not
    negative (finished cells that were rounded).
    """


@dataclass(frozen=True, eq=False)
class Combinations:
    """Cells that no table has, whose sums are cells of tables.

    Attributes
    ----------
    values : (m,) array
        A table without negative cells that has the given sums. The true cells are unknown; intervals do not
        depend on which of the possible tables this is.
    most : (m,) array
        Upper bounds of the cells.
    lines : sparse (lines, cells of the problem and these)
        -1 for a cell of a table and 1 for each of its parts.
    """

    values: np.ndarray
    most: np.ndarray
    lines: sparse.csr_matrix


def combinations_of(
    codes: Sequence[tuple[int, CellCodes]], problem: SuppressionProblem, nested: Iterable[pd.DataFrame]
) -> Combinations | None:
    """Return the combinations of the columns in which tables form a cycle; None if there is no cycle or no
    sensitive cell, or if a cell is negative, so that combinations may be, too.

    Parameters
    ----------
    codes : position of a cell in the problem, and its finest codes; a cell may have several
    problem : SuppressionProblem
        Its relations have -1 for a total and 1 for each of its parts.
    nested : frames of the codes of a hierarchy, one column for each level

    Raises
    ------
    NotCounted
    """
    sensitive, values = int(problem.primary.sum()), problem.values
    edges = _edges(codes, problem.relations) if sensitive else {}
    bridges = [frame.drop_duplicates() for frame in nested if len(frame.columns) > 1]
    core = _cycle([*edges, *(frozenset(frame.columns) for frame in bridges)])
    if not (sensitive and core):
        return None
    parts = [_projected(edges, bridges, columns) for columns in core]
    whole = _joined(parts, min(MOST, MOST_WORK // sensitive))
    lines = [
        np.unique(whole[f"{_CELL}{number}"].to_numpy(np.int64), return_inverse=True)
        for number, part in enumerate(parts)
        if _CELL in part
    ]
    if not lines:
        return None
    every = np.concatenate([totals for totals, _ in lines])
    if np.any(values[every] < 0):
        return None
    upper = np.min([problem.upper_bound[totals][line] for totals, line in lines], axis=0)
    here = upper > 0
    sums = sparse.vstack([_indicators(line[here], len(totals)) for totals, line in lines], format="csr")
    found = _table_with(sums, values[every])
    own = sparse.csr_matrix((-np.ones(len(every)), (np.arange(len(every)), every)), (len(every), len(values)))
    return Combinations(found, np.maximum(upper[here], found), sparse.hstack([own, sums], format="csr"))


def _indicators(line: np.ndarray, lines: int) -> sparse.csr_matrix:
    return sparse.csr_matrix((np.ones(len(line)), (line, np.arange(len(line)))), (lines, len(line)))


def nested_codes(codes: pd.DataFrame, table: Table) -> list[pd.DataFrame]:
    """Return the codes of each hierarchy of a table that occur together, one column for each level."""
    found = []
    for columns in families(table):
        given = codes[list(columns)]
        found.append(given[(given != table.total).all(axis=1)].drop_duplicates())
    return found


def may_form_cycle(table: Table, earlier: Iterable[Iterable[str]]) -> bool:
    """Return whether the columns of a table and of earlier cells may form a cycle, levels of one hierarchy
    taken as one column.
    """
    finest = {name: columns[-1] for columns in families(table) for name in columns}
    finest |= {name: finer for finer, coarser in table.groupings for name in coarser}
    sets = {frozenset(dimensions) for dimensions in table.tables} | {frozenset(each) for each in earlier}
    return bool(_cycle({frozenset(finest.get(name, name) for name in each) for each in sets}))


def same_cells(
    identity: np.ndarray, codes: Sequence[CellCodes], relations: sparse.csr_matrix
) -> sparse.csr_matrix:
    """Return (lines, cells) that state which cells of one release are one cell under several codes: those of
    a section with a single branch, and of this branch, in two tables.

    Cells that have the same contributors by chance get no line: nobody knows that they are equal.

    Parameters
    ----------
    identity : (cells,) array
        A number for each cell, equal for cells of the same contributors and value; -1 if unknown.
    codes : finest codes of each cell
    relations : sparse (lines, cells)
        Cells that a line already states to be equal get no further line.
    """
    names: dict[int, tuple[str, str]] = {}
    alike = {
        each[0]: names.setdefault(int(identity[cell]), each[0])
        for cell, each in enumerate(codes)
        if len(each) == 1 and identity[cell] >= 0
    }
    matrix = sparse.csr_matrix(relations)
    pairs = matrix[np.diff(matrix.indptr) == 2].indices.reshape(-1, 2)
    links = sparse.csr_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), (len(identity),) * 2)
    linked = connected_components(links, directed=False)[1]
    first: dict[tuple[int, frozenset[tuple[str, str]]], int] = {}
    added: dict[tuple[int, int], tuple[int, int]] = {}
    for cell in np.flatnonzero(identity >= 0).tolist():
        under = frozenset(alike.get(each, each) for each in codes[cell])
        other = first.setdefault((int(identity[cell]), under), cell)
        if linked[other] != linked[cell]:
            added.setdefault((int(linked[other]), int(linked[cell])), (other, cell))
    ends = np.array(list(added.values()), np.int64).reshape(-1, 2)
    lines = np.arange(len(ends)).repeat(2)
    entries = np.tile([-1.0, 1.0], len(ends))
    return sparse.csr_matrix((entries, (lines, ends.ravel())), (len(ends), matrix.shape[1]))


def _edges(
    codes: Sequence[tuple[int, CellCodes]], relations: sparse.csr_matrix
) -> dict[_Columns, pd.DataFrame]:
    """Return the cells with the finest codes of each set of columns.

    A cell is not among them if one of its parts has no further column: its parts have finer codes.
    """
    columns: dict[int, list[_Columns]] = {}
    for position, each in codes:
        columns.setdefault(position, []).append(frozenset(name for name, _ in each))
    matrix = sparse.csr_matrix(relations)
    parts_of: dict[int, set[_Columns]] = {}
    for line in range(matrix.shape[0]):
        inside = slice(matrix.indptr[line], matrix.indptr[line + 1])
        cells, signs = matrix.indices[inside], matrix.data[inside]
        parts = {name for cell in cells[signs > 0].tolist() for name in columns.get(cell, ())}
        for total in cells[signs < 0].tolist():
            parts_of.setdefault(total, set()).update(parts)
    rows: dict[_Columns, list[dict[str, object]]] = {}
    for position, each in codes:
        own = frozenset(name for name, _ in each)
        if each and all(own < part for part in parts_of.get(position, ())):
            rows.setdefault(own, []).append({**dict(each), _CELL: position})
    return {
        each: pd.DataFrame(found).drop_duplicates(sorted(each), ignore_index=True)
        for each, found in rows.items()
    }


def _cycle(sets: Iterable[_Columns]) -> list[_Columns]:
    """Return what remains of some sets of columns after the reduction of acyclic ones; empty if nothing."""
    left = set(sets)
    while True:
        often = pd.Series([name for each in left for name in each], dtype=object).value_counts()
        alone = set(often.index[often == 1])
        fewer = {each - alone for each in left}
        fewer = {each for each in fewer if each and not any(each < other for other in fewer)}
        if fewer == left:
            return sorted(left, key=sorted) if len(left) > 1 else []
        left = fewer


def _projected(
    edges: Mapping[_Columns, pd.DataFrame], bridges: Iterable[pd.DataFrame], columns: _Columns
) -> pd.DataFrame:
    """Return the cells of a set of columns, or the codes of hierarchies that have all these columns."""
    if columns in edges:
        return edges[columns]
    wider = [frame for frame in bridges if columns <= set(frame.columns)]
    wider += [frame.drop(columns=_CELL) for each, frame in edges.items() if columns <= each]
    return wider[0][sorted(columns)].drop_duplicates(ignore_index=True)


def _joined(parts: Iterable[pd.DataFrame], limit: int) -> pd.DataFrame:
    """Return the combinations whose codes occur in every part, with the cell of each part."""
    left = [
        part.rename(columns={_CELL: f"{_CELL}{number}"}).astype(
            {name: str for name in part.columns if name != _CELL}
        )
        for number, part in enumerate(parts)
    ]
    whole = left.pop(0)
    while left:
        shared = [len([name for name in part if name in whole]) for part in left]
        part = left.pop(int(np.argmax(shared)))
        on = [name for name in part if name in whole]
        if on:
            number = whole.groupby(on).size().rename("n").reset_index().merge(part[on], on=on)["n"].sum()
        else:
            number = len(whole) * len(part)
        if number > _INTERMEDIATE * limit:
            raise NotCounted
        whole = whole.merge(part, on=on) if on else whole.merge(part, how="cross")
    if len(whole) > limit:
        raise NotCounted
    return whole


def _table_with(sums: sparse.csr_matrix, totals: np.ndarray) -> np.ndarray:
    """Return cells that are not negative and have some sums."""
    count = sums.shape[1]
    program = Program(np.zeros(count), sums, totals, totals, np.zeros(count), np.full(count, INFINITY))
    values = solve(program).values
    if values is None:
        raise NotCounted
    return np.maximum(values, 0.0)
