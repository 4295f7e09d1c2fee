"""Classifications of a table: the position of a code in its dimension, as a path from the total down."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.table import Table
from microguard.sdc.cta.table.relations import Dimension

#: Separator of the codes of a path; codes from text files never contain it.
_STEP = "\x1f"


def families(table: Table) -> list[tuple[str, ...]]:
    """Return the columns of each dimension, coarse to fine: its deepest hierarchy, or one column."""
    deepest: dict[str, tuple[str, ...]] = {}
    for dimension in table.dimensions:
        levels = table.levels_of(dimension)
        if len(levels) > len(deepest.get(levels[0], ())):
            deepest[levels[0]] = levels
    return list(deepest.values())


def paths(codes: pd.DataFrame, table: Table) -> tuple[list[Dimension], list[np.ndarray]]:
    """Return the dimensions as trees, and the position of each cell in them.

    Returns
    -------
    list of Dimension
        The dimensions in the order of `families`; the code of a node is its path.
    list of (cells,) arrays
        The path of each cell.
    """
    dimensions, placed = [], []
    for columns in families(table):
        if len(columns) == 1 and columns[0] in table.parents:
            path = _by_parents(codes[columns[0]], table.parents[columns[0]], table.total)
        else:
            path = _by_levels(codes, columns, table.total)
        dimensions.append(_tree(columns[-1], path))
        placed.append(path.to_numpy(str))
    return dimensions, placed


def refuse_bad_codes(codes: pd.DataFrame, table: Table) -> None:
    """Refuse levels that do not nest, codes below a total, and parents that are not cells.

    Raises
    ------
    InputRejected
    """
    for columns in families(table):
        summed = [(codes[name] == table.total).to_numpy() for name in columns]
        for depth in range(1, len(columns)):
            if np.any(summed[depth - 1] & ~summed[depth]):
                raise InputRejected(
                    f"Cells have a code of {columns[depth]} below a total of {columns[depth - 1]}: "
                    f"{int(np.sum(summed[depth - 1] & ~summed[depth]))} cell(s). Name the coarser code, or "
                    "correct table.hierarchies."
                )
            pairs = codes.loc[~summed[depth], list(columns[: depth + 1])].drop_duplicates()
            repeated = len(pairs) - pairs[columns[depth]].nunique()
            if repeated:
                raise InputRejected(
                    f"{columns[depth]} does not nest in {columns[depth - 1]}: {repeated} code(s) lie under "
                    "more than one. Correct the data, or table.hierarchies."
                )
    for name, parents in table.parents.items():
        occurring = set(codes[name])
        absent = {parents[code] for code in occurring & set(parents)} - occurring - {table.total}
        if absent:
            raise InputRejected(
                f"table.parents names {len(absent)} parent(s) in {name} without a cell in the table. Add "
                "their cells, or correct table.parents."
            )


def _by_levels(codes: pd.DataFrame, columns: tuple[str, ...], total: str) -> pd.Series:
    path = pd.Series("", index=codes.index, dtype=object)
    for name in columns:
        path = path.where(codes[name] == total, path + _STEP + codes[name])
    return path


def _by_parents(codes: pd.Series, parents: Mapping[str, str], total: str) -> pd.Series:
    known: dict[str, str] = {total: ""}

    def path(code: str) -> str:
        if code not in known:
            known[code] = path(parents.get(code, total)) + _STEP + code
        return known[code]

    return codes.map({code: path(code) for code in sorted(codes.unique())})


def _tree(name: str, path: pd.Series) -> Dimension:
    nodes = {prefix for each in path.unique() for prefix in _prefixes(each)}
    ordered = sorted(nodes, key=lambda each: (each.count(_STEP), each))
    position = {each: number for number, each in enumerate(ordered)}
    above = [position[each.rpartition(_STEP)[0]] if each else -1 for each in ordered]
    return Dimension(name, tuple(ordered), np.array(above))


def _prefixes(path: str) -> list[str]:
    steps = path.split(_STEP)
    return [_STEP.join(steps[:length]) for length in range(1, len(steps) + 1)]
