"""Empty combinations of occurring codes, added to a table of counts as cells of 0.

A combination that is left out discloses that it has no records. If the table has both true zeros and small
counts published as 0 (or neither: `table.zeros`), a reader cannot tell them apart. But a code is listed only
if it occurs in the records. So a code whose cells are all 0 is not published.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.table import Table

MOST_CELLS = 3_000_000
"""Maximum number of cells of a table with all its zeros, which fits into the memory of one machine and into
the solver."""


def absent_codes(codes: pd.DataFrame, table: Table) -> pd.DataFrame:
    """Return the codes of the combinations that the table does not contain, (absent cells, columns).

    Raises
    ------
    InputRejected
        If the cross product is too large.
    """
    crossed = [_crossed(codes, table, dimensions) for dimensions in table.tables]
    every = pd.concat(crossed).drop_duplicates()
    marked = every.merge(codes.drop_duplicates(), how="left", on=list(codes.columns), indicator=True)
    return marked.loc[marked["_merge"] == "left_only", list(codes.columns)]


def _crossed(codes: pd.DataFrame, table: Table, dimensions: tuple[str, ...]) -> pd.DataFrame:
    """Return all combinations of the nodes of each dimension; columns of other tables contain the
    total mark.
    """
    size, nodes = 1, []
    for dimension in dimensions:
        levels = list(table.levels_of(dimension))
        others = [name for name in codes.columns if name not in levels]
        alone = codes.loc[(codes[others] == table.total).all(axis=1), levels]
        nodes.append(pd.concat([alone, codes[levels]]).drop_duplicates())
        size *= len(nodes[-1])
    if size > MOST_CELLS:
        raise InputRejected(
            f"A table of counts with all its zeros: found {size} cells, expected at most {MOST_CELLS}. Set "
            'table.zeros to "omit", or name fewer or coarser dimensions.'
        )
    crossed = nodes[0]
    for each in nodes[1:]:
        crossed = crossed.merge(each, how="cross")
    return crossed.reindex(columns=list(codes.columns), fill_value=table.total)


def of_nothing_but_zeros(
    codes: pd.DataFrame, units: np.ndarray, table: Table, dimensions: tuple[str, ...]
) -> np.ndarray:
    """Return whether a cell has a code for which all cells, including those of its parts, have count 0."""
    hidden = np.zeros(len(codes), dtype=bool)
    for dimension in dimensions:
        levels = list(table.levels_of(dimension))
        for depth, level in enumerate(levels):
            inside = (codes[level] != table.total).to_numpy()
            keys = [codes.loc[inside, name] for name in levels[: depth + 1]]
            largest = pd.Series(units[inside], index=codes.index[inside]).groupby(keys).transform("max")
            hidden[inside] |= (largest == 0).to_numpy()
    return hidden
