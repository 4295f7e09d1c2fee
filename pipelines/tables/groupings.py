"""Constraints of further hierarchies over a column: a coarse cell is the sum of the cells of its codes.

Activities belong to sections, and to branches that cross sections; regions belong to provinces, and to urban
and rural areas. The first hierarchy with a column determines the position of its codes in the table. A later
hierarchy that ends in the same column is a further grouping of these codes. Its coarser columns are
dimensions of other tables. Each of their cells is the sum of the cells of its codes if both are published.
Without these constraints a table would be protected as if attackers did not know the classification.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from microguard.pipelines.tables.hierarchy import families
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.table import Table
from scipy import sparse

_POSITION = "__position"
#: Type: for a column and the columns above it in a further hierarchy, its codes with their ancestors.
CodeGroups = Mapping[tuple[str, tuple[str, ...]], pd.DataFrame]


@dataclass(frozen=True, eq=False)
class Grouping:
    """Codes of a column that belong to each code of another hierarchy.

    Attributes
    ----------
    finer : str
        The column whose codes are grouped.
    coarser : tuple of str
        Columns above `finer` in the other hierarchy, coarse to fine.
    codes : frame of text with these columns
        One row for each code of `finer`.

    Raises
    ------
    InputRejected
        If a code is in more than one group.
    """

    finer: str
    coarser: tuple[str, ...]
    codes: pd.DataFrame

    def __post_init__(self) -> None:
        repeated = len(self.codes) - self.codes[self.finer].nunique()
        if repeated:
            raise InputRejected(
                f"{self.finer} is not nested in {self.coarser[-1]}: {repeated} code(s) belong to more than "
                "one coarser code. Correct the data, or table.hierarchies."
            )


def grouping_lines(codes: pd.DataFrame, table: Table, groupings: Sequence[Grouping]) -> sparse.csr_matrix:
    """Return the (constraints, cells) matrix that expresses cells of coarser columns as sums of finer cells.

    Parameters
    ----------
    codes : (cells, columns) frame
        Codes of all cells, in the order of the cells.
    """
    columns = list(table.columns)
    position = codes[columns].assign(**{_POSITION: np.arange(len(codes))})
    lines = [sparse.csr_matrix((0, len(codes)))]
    for grouping in groupings:
        finer = grouping.finer
        family = next(each for each in families(table) if finer in each)
        summed = [*family[family.index(finer) + 1 :], *grouping.coarser]
        parts = position[(codes[finer] != table.total) & (codes[summed] == table.total).all(axis=1)]
        others = [name for name in family if name != finer]
        above = parts.drop(columns=list(grouping.coarser)).merge(grouping.codes, on=finer)
        above = above.assign(**dict.fromkeys([finer, *others], table.total))
        pairs = above.merge(position, on=columns, suffixes=("", "_above"))
        totals, line = np.unique(pairs[f"{_POSITION}_above"].to_numpy(np.int64), return_inverse=True)
        rows = np.concatenate([line, np.arange(len(totals))])
        cells = np.concatenate([pairs[_POSITION].to_numpy(np.int64), totals])
        entries = np.concatenate([np.ones(len(line)), -np.ones(len(totals))])
        lines.append(sparse.csr_matrix((entries, (rows, cells)), shape=(len(totals), len(codes))))
    return sparse.vstack(lines).tocsr()
