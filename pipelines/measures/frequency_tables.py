"""Compute frequency tables of a frame, and weighted ones, in one job for any number of records.

A task counts the cells of its records table by table, on codes of their values; Spark adds the cells up. To
let Spark group each record for each table would cost ten times as much.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from microguard.pipelines.engine.column_names import column, map_in_arrow
from microguard.schemas.specification.consistency import FREQUENCY
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

#: Records that a task counts at once.
AT_ONCE = 500_000
_SET = "set"


def weighted_by(position: int) -> str:
    """Column of the counts weighted by the weight at a position; no variable has such a name."""
    return f"__weighted{position}"


def frequency_tables(
    frame: DataFrame, tables: Sequence[tuple[str, ...]], weights: Sequence[str] = ()
) -> dict[tuple[str, ...], pa.Table]:
    """Cells that occur, with their frequencies.

    Parameters
    ----------
    frame : DataFrame
        Records; must have every column that a table names.
    tables : sequence of tuples of column names
    weights : sequence of column names
        Summed over the records of each cell; a missing one counts nothing.

    Returns
    -------
    dict
        Table -> arrow table of its columns, ``frequency`` (int64) and, of the weight at each position,
        `weighted_by` (double), sorted by cell.
    """
    if not tables:
        return {}
    names = list(dict.fromkeys(name for table in tables for name in table))
    aliases = {name: f"v{position}" for position, name in enumerate(names)}
    weighted = [weighted_by(position) for position in range(len(weights))]
    records = frame.select(
        [column(name).alias(alias) for name, alias in aliases.items()]
        + [column(name).cast("double").alias(alias) for name, alias in zip(weights, weighted, strict=True)]
    )
    sets = list(dict.fromkeys(frozenset(table) for table in tables))
    keys = [[aliases[name] for name in names if name in each] for each in sets]
    columns = [(_SET, t.LongType()), *[(each.name, each.dataType) for each in records.schema]]
    columns.append((FREQUENCY, t.LongType()))
    schema = t.StructType([t.StructField(name, kind) for name, kind in columns])
    sums = [f.sum(name).alias(name) for name in (FREQUENCY, *weighted)]
    counted = map_in_arrow(records, _Counting(keys, weighted, to_arrow_schema(schema)), schema)
    cells = counted.groupBy(_SET, *aliases.values()).agg(*sums).toArrow()
    return {
        table: _one_table(
            cells, sets.index(frozenset(table)), {name: aliases[name] for name in table}, weighted
        )
        for table in tables
    }


def _one_table(cells: pa.Table, number: int, aliases: dict[str, str], weighted: list[str]) -> pa.Table:
    chosen = cells.filter(pc.equal(cells[_SET], number))
    # a name may look like a path to Arrow
    ordered = chosen.sort_by([(alias, "ascending") for alias in aliases.values()])
    columns = {name: ordered[alias] for name, alias in aliases.items()}
    return pa.table({**columns, **{name: ordered[name] for name in (FREQUENCY, *weighted)}})


@dataclass(frozen=True)
class _Counting:
    """Count the cells of each table among the records of one task, some records at a time.

    Attributes
    ----------
    tables : list of lists of columns
    weighted : list of columns
        Of weights.
    schema : pyarrow.Schema
        Of cells: the number of the table, all columns (NULL where the table lacks them), and counts.
    """

    tables: list[list[str]]
    weighted: list[str]
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            waiting.append(batch)
            if sum(map(len, waiting)) >= AT_ONCE:
                yield from self._counted(pa.Table.from_batches(waiting))
                waiting.clear()
        if waiting:
            yield from self._counted(pa.Table.from_batches(waiting))

    def _counted(self, records: pa.Table) -> Iterator[pa.RecordBatch]:
        coded = {name: _codes(records[name]) for name in {name for table in self.tables for name in table}}
        weights = {name: records[name].fill_null(0.0).to_numpy() for name in self.weighted}
        for number, table in enumerate(self.tables):
            cell, cells = _cells([coded[name] for name in table])
            counts = np.bincount(cell, minlength=cells)
            occurring = np.flatnonzero(counts)
            a_record = np.empty(cells, np.int64)
            a_record[cell] = np.arange(len(cell))
            columns = {name: records[name].take(pa.array(a_record[occurring])) for name in table}
            for name, weight in weights.items():
                columns[name] = pa.array(np.bincount(cell, weight, cells)[occurring])
            columns |= {_SET: pa.repeat(number, len(occurring)), FREQUENCY: pa.array(counts[occurring])}
            arrays = [
                columns[field.name].cast(field.type)
                if field.name in columns
                else pa.nulls(len(occurring), field.type)
                for field in self.schema
            ]
            yield from pa.table(arrays, schema=self.schema).to_batches()


def _codes(values: pa.ChunkedArray) -> tuple[np.ndarray, int]:
    """Return the code of each value, (n,), NULL included, and the number of codes."""
    coded = values.combine_chunks().dictionary_encode(null_encoding="encode")
    return np.asarray(coded.indices, np.int64), len(coded.dictionary)


def _cells(codes: Sequence[tuple[np.ndarray, int]]) -> tuple[np.ndarray, int]:
    """Return the cell of each record, (n,), and an upper bound on cells, about `AT_ONCE` at most."""
    cell, cells = codes[0]
    for code, size in codes[1:]:
        cell, cells = cell * size + code, cells * size
        if cells > AT_ONCE:
            cell, occurring = pd.factorize(cell)
            cells = len(occurring)
    return cell, cells
