"""Several summaries of a frame, computed in one pass over its records.

A task adds the records that it reads to every summary, and returns the parts of each summary by key. A
shuffle groups the parts by key, and a second task combines the parts of a key. The driver receives combined
parts only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import pyarrow as pa
from microguard.pipelines.engine.column_names import map_in_arrow
from microguard.pipelines.engine.frames import tasks_at_once
from pyspark.sql import Column, DataFrame
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

_PART = t.StructType(
    [
        t.StructField("summary", t.IntegerType()),
        t.StructField("key", t.IntegerType()),
        t.StructField("content", t.BinaryType()),
    ]
)


class TaskSummary(Protocol):
    """Summary of the records that one task has read so far."""

    def add(self, records: pa.Table) -> None:
        """Add some records to the summary."""
        ...

    def parts(self) -> Iterator[tuple[int, pa.Table]]:
        """Return the parts of the summary, each with its key; a key may have several parts."""
        ...


class Summary(Protocol):
    """Statistic of records that tasks compute; it can be pickled."""

    def begin(self) -> TaskSummary:
        """Return the empty summary, before any records are added."""
        ...

    def combined(self, parts: pa.Table) -> pa.Table:
        """Combine the parts of one key, which may arrive in any order."""
        ...


def in_one_pass(
    frame: DataFrame, summaries: Sequence[tuple[Mapping[str, Column], Summary]]
) -> list[dict[int, pa.Table]]:
    """Compute several summaries of the records of a frame in one pass.

    Parameters
    ----------
    summaries : sequence of (columns, summary)
        Each summary with the columns of its records, by name.

    Returns
    -------
    list of dict
        The combined part of each key, for each summary.
    """
    columns = [value.alias(name) for each, _ in summaries for name, value in each.items()]
    names = [list(each) for each, _ in summaries]
    work = [summary for _, summary in summaries]

    def add(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begun = [summary.begin() for summary in work]
        for batch in batches:
            place = 0
            for summary, of_summary in zip(begun, names, strict=True):
                part = batch.columns[place : place + len(of_summary)]
                place += len(of_summary)
                summary.add(pa.table(part, names=of_summary))
        parts = [
            {"summary": i, "key": key, "content": _written(part)}
            for i, summary in enumerate(begun)
            for key, part in summary.parts()
        ]
        yield pa.RecordBatch.from_pylist(parts, to_arrow_schema(_PART))

    def combine(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = defaultdict[tuple[int, int], list[pa.Table]](list)
        for batch in batches:
            for part in batch.to_pylist():
                found[part["summary"], part["key"]].append(_read(part["content"]))
        combined = [
            {"summary": i, "key": key, "content": _written(work[i].combined(pa.concat_tables(parts)))}
            for (i, key), parts in found.items()
        ]
        yield pa.RecordBatch.from_pylist(combined, to_arrow_schema(_PART))

    tasks = tasks_at_once(frame.sparkSession)
    of_tasks = map_in_arrow(frame.select(*columns), add, _PART).repartition(tasks, "summary", "key")
    results: list[dict[int, pa.Table]] = [{} for _ in summaries]
    for row in map_in_arrow(of_tasks, combine, _PART).collect():
        results[row["summary"]][row["key"]] = _read(row["content"])
    return results


def _written(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def _read(content: bytes) -> pa.Table:
    return pa.ipc.open_stream(pa.BufferReader(content)).read_all()
