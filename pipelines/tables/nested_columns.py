"""Refuse columns whose codes are unions or parts of codes of an earlier table.

Example: the branches of a section, published before, add up to the section. A later table that publishes the
section changes its value independently. The difference between the section and the sum of its branches then
discloses by how much a branch was changed. A table with both columns keeps its cells consistent. Combinations
of several columns are not compared.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from microguard.pipelines.tables.cells.contributions import label
from microguard.pipelines.tables.hierarchy import families
from microguard.pipelines.tables.published_before import PublishedCell
from microguard.schemas.errors import GateRefused
from microguard.schemas.specification.table import Table
from pyspark.sql import DataFrame
from scipy import sparse
from scipy.sparse.csgraph import connected_components


def refuse_nested_columns(
    records: DataFrame, table: Table, before: Iterable[PublishedCell], *, known: bool
) -> None:
    """Refuse a table if its codes have the same records as sets of codes of an earlier table's column.

    Parameters
    ----------
    records : DataFrame
        Records with every column of the input.
    before : cells of the same records, of every table that is or was published
    known : whether cells of the same records are recognised as one cell under any codes

    Raises
    ------
    GateRefused
    """
    columns: dict[str, set[str]] = {}
    for cell in before:
        columns.setdefault(cell.release_id, set()).update(name for name, _ in cell.codes)
    for release_id, theirs in columns.items():
        for here in families(table):
            if here[0] in table.parts:
                continue
            for other in sorted((theirs - set(table.columns)) & set(records.columns)):
                shared = [name for name in here if name in theirs]
                if any(_determines(_pairs(records, table, name, other)) for name in shared):
                    continue  # the cells that both tables have add up to cells of the other column
                for name in (name for name in here if name not in theirs):
                    if add_up(_pairs(records, table, name, other), known=known):
                        raise GateRefused(
                            f"Codes of {name} add up to the same records as codes of {other}, a column of "
                            f"the published table {release_id} that this table lacks. The difference of "
                            "their sums would disclose the adjustment of cells. Give this table both "
                            f'columns (table.hierarchies with "{other}" and "{name}", the coarser one '
                            'first), or set publish.successive to "accept" if a steward has decided that '
                            "both tables may be published."
                        )


def add_up(pairs: pd.DataFrame, *, known: bool) -> bool:
    """Return whether some codes of one column have the same records as several codes of the other.

    Parameters
    ----------
    pairs : frame of two columns
        Each pair of codes that a record has.
    known : bool
        Whether tables are compared by contributors, too. That comparison finds pairs of single codes with the
        same records, so they do not count here.
    """
    left, right = (pd.factorize(pairs[name])[0] for name in pairs)
    count = int(left.max(initial=-1)) + 1
    codes = count + int(right.max(initial=-1)) + 1
    links = sparse.csr_matrix((np.ones(len(pairs)), (left, count + right)), shape=(codes, codes))
    number, of_code = connected_components(links, directed=False)
    return bool(number > 1 and np.bincount(of_code).max() > (2 if known else 1))


def _determines(pairs: pd.DataFrame) -> bool:
    first, second = pairs.columns
    return bool(pairs.groupby(first)[second].nunique().max() == 1)


def _pairs(records: DataFrame, table: Table, name: str, other: str) -> pd.DataFrame:
    codes = [label(name, table).alias("here"), label(other, table).alias("there")]
    return records.select(*codes).distinct().toPandas()
