"""Functions of complete equivalence classes: a shuffle brings all records of a class into one task.

This is for statistics that need all records of a class, not only sums over the records. Classes are compared
by a 64-bit hash: with ten million records, two classes collide once in a million runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from microguard.pipelines.engine.frames import tasks_at_once
from microguard.pipelines.engine.row_hash import content_of
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

#: Maximum number of records that one task holds in memory.
TASK_RECORDS = 1_000_000
CLASS, WEIGHT = "class", "weight"


def class_hash(names: Sequence[str], *of: Column) -> Column:
    """Return the column `CLASS`: a hash of the named columns and of the columns in `of`."""
    return f.xxhash64(*of, *content_of(names)).alias(CLASS)


def by_class(
    frame: DataFrame,
    records: int,
    work: Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]],
    schema: str,
) -> DataFrame:
    """Apply a function to the records of each task, which contain complete classes.

    Parameters
    ----------
    frame : DataFrame
        `CLASS`, and numbers without NULL.
    records : int
        Number of records of the frame; it determines the number of tasks.
    work : callable
        Function from the columns, (n,) each, to the columns of `schema`. Not called if a task has no record.
    schema : str
        Schema of the result.
    """
    tasks = max(tasks_at_once(frame.sparkSession), math.ceil(records / TASK_RECORDS))

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = [batch for batch in batches if batch.num_rows]
        if parts:
            table = pa.Table.from_batches(parts)
            made = work({name: table[name].to_numpy() for name in table.column_names})
            yield pa.RecordBatch.from_pydict({name: pa.array(column) for name, column in made.items()})

    return frame.repartition(tasks, CLASS).mapInArrow(task, schema)
