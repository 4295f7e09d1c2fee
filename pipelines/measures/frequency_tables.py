"""Frequency tables of a frame, also weighted ones, computed in one job for any number of records.

A task counts the cells of its records table by table, on codes of their values; further tasks sum the cells.
Grouping the records in Spark for each table would cost ten times as much.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.measures.one_pass import Summary, in_one_pass
from microguard.schemas.specification.consistency import FREQUENCY
from pyspark.sql import Column, DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

#: Number of records that a task counts at a time.
AT_ONCE = 500_000


def weighted_by(position: int) -> str:
    """Return the name of the column of counts weighted by the weight at a position; no variable has such a
    name.
    """
    return f"__weighted{position}"


def frequency_tables(
    frame: DataFrame, tables: Sequence[tuple[str, ...]], weights: Sequence[str] = ()
) -> dict[tuple[str, ...], pa.Table]:
    """Count the records of each non-empty cell.

    Parameters
    ----------
    frame : DataFrame
        Records with every column that a table names.
    tables : sequence of tuples of column names
    weights : sequence of column names
        Weights that are summed over the records of each cell; a missing weight counts as 0.

    Returns
    -------
    dict
        Table -> arrow table of its columns, ``frequency`` (int64) and, for the weight at each position,
        `weighted_by` (double); sorted by cell.
    """
    tabulation = Tabulation.of(frame, tables, weights)
    return tabulation.tables_in(in_one_pass(frame, tabulation.requests)[0]) if tables else {}


@dataclass(frozen=True)
class Tabulation:
    """Frequency tables of the records of a frame, as a summary that one pass computes.

    Attributes
    ----------
    tables : tuple of tuples of column names
    aliases : mapping of column name to plain name
    sets : list of frozensets of column names
        Column sets that are counted: tables that differ only in the order of columns share one.
    columns : mapping of plain name to Column
    schema : pyarrow.Schema
        Schema of the columns.
    """

    tables: tuple[tuple[str, ...], ...]
    aliases: Mapping[str, str]
    sets: Sequence[frozenset[str]]
    columns: Mapping[str, Column]
    schema: pa.Schema

    @classmethod
    def of(
        cls, frame: DataFrame, tables: Sequence[tuple[str, ...]], weights: Sequence[str] = ()
    ) -> Tabulation:
        """Build the summary for the arguments of `frequency_tables`."""
        names = list(dict.fromkeys(name for table in tables for name in table))
        aliases = {name: f"v{position}" for position, name in enumerate(names)}
        columns = {alias: column(name) for name, alias in aliases.items()}
        columns |= {weighted_by(i): column(name).cast("double") for i, name in enumerate(weights)}
        schema = frame.select(*[each.alias(alias) for alias, each in columns.items()]).schema
        sets = list(dict.fromkeys(frozenset(table) for table in tables))
        return cls(tuple(tables), aliases, sets, columns, to_arrow_schema(schema))

    @property
    def requests(self) -> list[tuple[Mapping[str, Column], Summary]]:
        """Return the summaries to request from `in_one_pass`; none without tables."""
        return [(self.columns, self._counting)] if self.tables else []

    def tables_in(self, parts: Mapping[int, pa.Table]) -> dict[tuple[str, ...], pa.Table]:
        """Return the cells of each table from the combined parts; parts are keyed by the position of the
        table's variables.
        """
        found = {}
        for table in self.tables:
            position = self.sets.index(frozenset(table))
            cells = parts.get(position, self._counting.schema_of(position).empty_table())
            # renamed, because Arrow could interpret a column name as a path
            ordered = cells.sort_by([(self.aliases[name], "ascending") for name in table])
            columns = {name: ordered[self.aliases[name]] for name in table}
            further = (FREQUENCY, *self._counting.weighted)
            found[table] = pa.table({**columns, **{name: ordered[name] for name in further}})
        return found

    @property
    def _counting(self) -> _Counting:
        keys = [[alias for name, alias in self.aliases.items() if name in each] for each in self.sets]
        weighted = [name for name in self.columns if name not in self.aliases.values()]
        return _Counting(keys, weighted, self.schema)


@dataclass(frozen=True)
class _Counting:
    """Counts of the cells of each table; a `Summary` whose keys are the positions of the tables.

    Attributes
    ----------
    tables : list of lists of columns
    weighted : list of columns
        Columns of weights.
    schema : pyarrow.Schema
        Schema of the records.
    """

    tables: list[list[str]]
    weighted: list[str]
    schema: pa.Schema

    def begin(self) -> _TaskCounts:
        """Return the empty counts, before any records are added."""
        return _TaskCounts(self)

    def combined(self, parts: pa.Table) -> pa.Table:
        """Sum the cells of one table over its parts."""
        counts = [FREQUENCY, *self.weighted]
        keys = [name for name in parts.column_names if name not in counts]
        summed = parts.group_by(keys, use_threads=False).aggregate([(name, "sum") for name in counts])
        named = summed.rename_columns(
            [*keys, *counts] if summed.column_names[0] in keys else [*counts, *keys]
        )
        return named.select([*keys, *counts])

    def schema_of(self, position: int) -> pa.Schema:
        """Return the schema of the cells of a table."""
        counts = [pa.field(name, pa.float64()) for name in self.weighted]
        keys = [self.schema.field(name) for name in self.tables[position]]
        return pa.schema([*keys, pa.field(FREQUENCY, pa.int64()), *counts])


class _TaskCounts:
    """Counts of the cells over the records of one task, some records at a time."""

    def __init__(self, counting: _Counting) -> None:
        self._counting = counting
        self._waiting: list[pa.Table] = []
        self._cells: list[tuple[int, pa.Table]] = []

    def add(self, records: pa.Table) -> None:
        """Add some records to the counts."""
        self._waiting.append(records)
        if sum(map(len, self._waiting)) >= AT_ONCE:
            self._count()

    def parts(self) -> Iterator[tuple[int, pa.Table]]:
        """Return the cells of each table for the added records."""
        self._count()
        yield from self._cells

    def _count(self) -> None:
        if not sum(map(len, self._waiting)):
            return
        records, counting = pa.concat_tables(self._waiting), self._counting
        self._waiting.clear()
        coded = {name: _codes(records[name]) for name in {name for each in counting.tables for name in each}}
        weights = {name: records[name].fill_null(0.0).to_numpy() for name in counting.weighted}
        for number, table in enumerate(counting.tables):
            cell, cells = _cells([coded[name] for name in table])
            counts = np.bincount(cell, minlength=cells)
            occurring = np.flatnonzero(counts)
            a_record = np.empty(cells, np.int64)
            a_record[cell] = np.arange(len(cell))
            columns = [records[name].take(pa.array(a_record[occurring])) for name in table]
            columns.append(pa.array(counts[occurring]))
            columns += [pa.array(np.bincount(cell, each, cells)[occurring]) for each in weights.values()]
            schema = counting.schema_of(number)
            cast = [each.cast(field.type) for each, field in zip(columns, schema, strict=True)]
            self._cells.append((number, pa.table(cast, schema=schema)))


def _codes(values: pa.ChunkedArray) -> tuple[np.ndarray, int]:
    """Return the code of each value, including NULL, (n,), and the number of codes."""
    coded = values.combine_chunks().dictionary_encode(null_encoding="encode")
    return np.asarray(coded.indices, np.int64), len(coded.dictionary)


def _cells(codes: Sequence[tuple[np.ndarray, int]]) -> tuple[np.ndarray, int]:
    """Return the cell of each record, (n,), and an upper bound on the number of cells, about `AT_ONCE` at
    most.
    """
    cell, cells = codes[0]
    for code, size in codes[1:]:
        cell, cells = cell * size + code, cells * size
        if cells > AT_ONCE:
            cell, occurring = pd.factorize(cell)
            cells = len(occurring)
    return cell, cells
