"""Refusal of columns whose codes are unions or parts of codes of another column, of an earlier table or of
another table of the same release.

Example: the branches of a section, published before, add up to the section. A later table that publishes the
section changes its value independently. The difference between the section and the sum of its branches then
discloses by how much a branch was changed. A table with both columns keeps its cells consistent. Combinations
of several columns are not compared.

Within one release, two such columns are safe in one table, whose cells have both codes, or with a hierarchy
that has both. In two tables without a hierarchy nothing keeps their cells consistent: a suppressed branch
follows from the section and the other branches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations, product

import numpy as np
import pandas as pd
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.cells.contributions import label
from microguard.pipelines.tables.hierarchy import families
from microguard.pipelines.tables.independent_columns import cannot_add_up
from microguard.pipelines.tables.published_before import Places, PublishedCell
from microguard.schemas.errors import GateRefused
from microguard.schemas.specification.table import Table
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from scipy import sparse
from scipy.sparse.csgraph import connected_components

#: Records by code above which two columns do not nest by chance. 100 records with 16 and 88 codes in
#: unrelated columns fall into several parts, but neither column determines the other.
_RECORDS = 2


def refuse_nested_columns(
    records: DataFrame, table: Table, before: Iterable[PublishedCell], *, known: bool
) -> None:
    """Refuse a table if some of its codes have the same records as sets of codes of a column of an earlier
    table.

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
    here = [names for names in families(table) if names[0] not in table.parts]
    compared = [
        (release_id, theirs, names, other)
        for release_id, theirs in columns.items()
        for names in here
        if not theirs.issuperset(names)
        for other in sorted((theirs - set(table.columns)) & set(records.columns))
    ]
    wanted = [(name, other) for _, _, names, other in compared for name in names]
    pairs = _pairs(records, table, wanted)
    for release_id, theirs, names, other in compared:
        if any(_determines(pairs[name, other]) for name in names if name in theirs):
            continue  # the cells that both tables contain add up to cells of the other column
        for name in (name for name in names if name not in theirs):
            if add_up(pairs[name, other], known=known):
                raise GateRefused(
                    f"Codes of {name} add up to the same records as codes of {other}, a column of the "
                    f"published table {release_id} that this table does not contain. The difference of "
                    "their sums would disclose by how much cells were changed. Include both columns in this "
                    f'table (table.hierarchies with "{other}" and "{name}", the coarser one first), or set '
                    'publish.successive to "accept" if a steward has decided that both tables may be '
                    "published."
                )


def refuse_unknown_columns(
    known: Iterable[str],
    table: Table,
    cells: Cells,
    before: Iterable[PublishedCell],
    source: Mapping[str, str],
) -> None:
    """Refuse a table if it has other columns than an earlier table whose columns the input lacks: their
    codes may add up to each other, and this cannot be compared.

    A column is no other one if each of its codes is a code of the earlier table under another name. The
    earlier table has the same source and period, or a cell in common that is not the total. True values may
    prove that no codes add up (`independent_columns`).

    Parameters
    ----------
    known : names of the columns of the records; none for a finished table, whose columns have no records
    before : cells of the same records, of every table that is or was published
    source : ``source`` and ``period`` of this table

    Raises
    ------
    GateRefused
    """
    before = list(before)
    if not before:
        return
    places = Places(cells, table)
    columns: dict[str, set[str]] = {}
    found: dict[str, set[int]] = {}
    same: set[str] = set()
    for cell in before:
        rows = places.of(cell)
        columns.setdefault(cell.release_id, set()).update(name for name, _ in cell.codes)
        found.setdefault(cell.release_id, set()).update(rows)
        if (rows and cell.codes) or (cell.source, cell.period) == (source["source"], source["period"]):
            same.add(cell.release_id)
    given, instead = "records", "" if table.counts else ", or a variable of role unit"
    if table.source == "cells":
        given, instead = "cells", ", protect both tables together (table.tables)"
    for release_id, theirs in columns.items():
        if release_id not in same:
            continue
        missing = theirs - set(table.columns) - set(known)
        new = {
            codes[0][0]: None
            for row, (_, codes) in enumerate(places.identities)
            if len(codes) == 1 and codes[0][0] not in theirs and row not in found[release_id]
        }
        for column in new:
            unknown = [
                other for other in sorted(missing) if not cannot_add_up(cells, table, before, column, other)
            ]
            if unknown:
                raise GateRefused(
                    f"The {given} lack {', '.join(unknown)}, column(s) of the published table "
                    f"{release_id} of the same amounts, so it is not known whether codes of {column} "
                    "add up to theirs. Their sums would disclose cells. Add the column(s) to the "
                    f"input{instead}, or set publish.successive to "
                    '"accept" if a steward has decided that both tables may be published.'
                )


def refuse_unrelated_columns(records: DataFrame, table: Table, *, tied: bool) -> None:
    """Refuse tables of one release if each code of a column belongs to one code of a column of another table,
    and neither a hierarchy nor a table has both.

    Parameters
    ----------
    records : DataFrame
        Records with the columns of the tables.
    tied : bool
        Whether cells of the same records are published as one cell under any codes.

    Raises
    ------
    GateRefused
    """
    for (one, other), pairs in _pairs(records, table, unrelated(table)).items():
        untied = int(np.sum(_sizes(pairs) > (2 if tied else 1)))
        # a single one follows from the total and the tied ones
        if untied > 1 and _nest(pairs, records):
            raise GateRefused(
                f"Codes of {one} add up to the same records as codes of {other}, and they are columns of two "
                "tables (table.tables) without a hierarchy: sums of the one would disclose cells of the "
                f'other. State how they nest (table.hierarchies with "{one}" and "{other}", the coarser one '
                "first), put both into one table, or set publish.successive to "
                '"accept" if a steward has decided that nobody knows how they are related.'
            )


def unrelated(table: Table) -> list[tuple[str, str]]:
    """Return the pairs of columns that are in two tables, but neither in one hierarchy nor with all common
    columns of the two tables in one table.
    """
    placed = [set(dimensions) for dimensions in table.tables]
    hierarchies = [set(each) for each in table.hierarchies]
    found: dict[tuple[str, str], None] = {}
    for first, second in combinations(placed, 2):
        for one, other in product(sorted(first - second), sorted(second - first)):
            beside = {one, other} | (first & second)
            together = any(beside <= each for each in placed)
            nested = any({one, other} <= each for each in hierarchies)
            if not (together or nested or {one, other} & set(table.parts)):
                for pair in product(table.levels_of(one), table.levels_of(other)):
                    found[min(pair), max(pair)] = None
    return [pair for pair in found if pair[0] != pair[1]]


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
    sizes = _sizes(pairs)
    return bool(len(sizes) > 1 and sizes.max() > (2 if known else 1))


def _sizes(pairs: pd.DataFrame) -> np.ndarray:
    """Return the numbers of codes in the smallest sets of codes of both columns with the same records."""
    left, right = (pd.factorize(pairs[name])[0] for name in pairs)
    count = int(left.max(initial=-1)) + 1
    codes = count + int(right.max(initial=-1)) + 1
    links = sparse.csr_matrix((np.ones(len(pairs)), (left, count + right)), shape=(codes, codes))
    return np.bincount(connected_components(links, directed=False)[1])


def _nest(pairs: pd.DataFrame, records: DataFrame) -> bool:
    """Return whether one column determines the other, and not because most of its codes have one record."""
    finer = [name for name in pairs if _determines(pairs[[name, *(each for each in pairs if each != name)]])]
    codes = max((pairs[name].nunique() for name in finer), default=0)
    return bool(finer) and records.count() >= _RECORDS * codes


def _determines(pairs: pd.DataFrame) -> bool:
    first, second = pairs.columns
    return bool(pairs.groupby(first)[second].nunique().max() == 1)


def _pairs(
    records: DataFrame, table: Table, wanted: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], pd.DataFrame]:
    """Return the pairs of codes that records have in each two columns, as hashes, in one pass over the
    records.
    """
    columns = list(dict.fromkeys(wanted))
    if not columns:
        return {}
    codes = [
        f.struct(
            f.lit(number).alias("columns"),
            f.xxhash64(label(one, table)).alias("here"),
            f.xxhash64(label(other, table)).alias("there"),
        )
        for number, (one, other) in enumerate(columns)
    ]
    rows = records.select(f.inline(f.array(*codes))).distinct().toPandas()
    found = dict(list(rows.groupby("columns")[["here", "there"]]))
    return {each: found.get(number, rows[:0][["here", "there"]]) for number, each in enumerate(columns)}
