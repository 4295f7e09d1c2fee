"""Frames that tasks write directly to the staging area, so that their records do not return to Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.engine.column_names import map_in_arrow
from microguard.pipelines.engine.tasks import without_values
from microguard.pipelines.publication.staging.staging_area import PART_COLUMNS, Part, StagingArea, part_file
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

#: Number of records in a row group.
ROW_GROUP = 131_072

#: Type of a function of a partition's records. It returns tables of one schema, each with a text for the
#: caller (or ""); if it returns no table, no part is written.
Task = Callable[[Iterable[pa.RecordBatch]], Iterator[tuple[pa.Table, str]]]
#: The same type for several parts, each with its path in the frame; no other task may use the same path.
TaskOfParts = Callable[[Iterable[pa.RecordBatch]], Iterator[tuple[str, Iterator[tuple[pa.Table, str]]]]]


@dataclass(frozen=True)
class WrittenParts:
    """Result of tasks that write a frame.

    Attributes
    ----------
    parts : tuple of Part
        The parts, with the checksums of their content.
    texts : list of str
        The texts that the tasks return in addition to tables, in the order of the partitions.
    """

    parts: tuple[Part, ...]
    texts: list[str]


_ANSWER = t.StructType(
    [
        t.StructField("number", t.LongType()),
        *PART_COLUMNS,
        t.StructField("said", t.ArrayType(t.StringType())),
    ]
)


def write_in_tasks(
    place: StagingArea,
    frame: DataFrame,
    name: str,
    task: Task,
    schema: t.StructType,
    compression: str = "snappy",
) -> WrittenParts:
    """Apply a function to each partition of a frame and write the result; an existing frame of this name is
    replaced.

    Parameters
    ----------
    place : StagingArea
    frame : DataFrame
    name : str
        Name of the frame that is written.
    task : Task
        The function; its exceptions lose their text (`engine.tasks.without_values`).
    schema : StructType
        Schema of the written frame, as Spark reads it.
    compression : str
    """

    def one(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, Iterator[tuple[pa.Table, str]]]]:
        yield part_file(_number()), task(batches)

    return write_parts_in_tasks(place, frame, name, one, schema, compression)


def write_parts_in_tasks(
    place: StagingArea,
    frame: DataFrame,
    name: str,
    task: TaskOfParts,
    schema: t.StructType,
    compression: str = "snappy",
) -> WrittenParts:
    """Write several parts of each partition of a frame; see `write_in_tasks`."""

    def put(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        written = []
        with without_values():
            for path, tables in task(batches):
                said = list[str]()
                made = _heard(tables, said)
                first = next(made, None)
                if first is not None:
                    write = partial(_write, chain([first], made), compression=compression)
                    part = place.write_part(name, path, write)
                    written.append({"number": _number(), **asdict(part), "said": said})
        if written:
            yield pa.RecordBatch.from_pylist(written)

    answers = map_in_arrow(frame, put, _ANSWER).collect()
    rows = sorted(answers, key=lambda row: (int(row["number"]), row["path"]))
    parts = [Part(*(row[each.name] for each in PART_COLUMNS)) for row in rows]
    if not parts:  # a frame without records must still have columns
        nothing = to_arrow_schema(schema).empty_table()
        parts = [place.write_part(name, part_file(0), partial(pq.write_table, nothing))]
    place.commit_parts(name, parts, schema)
    return WrittenParts(tuple(parts), [each for row in rows for each in row["said"]])


def _number() -> int:
    """Return the partition number of this task."""
    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


def _heard(made: Iterator[tuple[pa.Table, str]], said: list[str]) -> Iterator[pa.Table]:
    for table, words in made:
        if words:
            said.append(words)
        yield table


def _write(made: Iterator[pa.Table], file: BinaryIO, compression: str) -> None:
    waiting = [next(made)]
    with pq.ParquetWriter(file, waiting[0].schema, compression=compression) as writer:
        for table in made:
            if sum(map(len, waiting)) >= ROW_GROUP:
                writer.write_table(pa.concat_tables(waiting), row_group_size=ROW_GROUP)
                waiting.clear()
            waiting.append(table)
        writer.write_table(pa.concat_tables(waiting), row_group_size=ROW_GROUP)
