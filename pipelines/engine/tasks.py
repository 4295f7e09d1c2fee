"""A function of this package called in Spark's tasks, once for each of a few items: each travels alone."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

Item = TypeVar("Item")


def in_tasks(spark: SparkSession, function: Callable[[Item], Any], items: Sequence[Item]) -> list[Any]:
    """Answers of `function` in the order of the items, each computed in a task of its own.

    Items and answers are pickled; they are held by the driver all at once, so they are to be small.
    """
    if not items:
        return []

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number, item in zip(batch["number"], batch["item"], strict=True):
                answer = pickle.dumps(function(pickle.loads(item.as_py())))
                yield pa.record_batch(
                    {
                        "number": pa.array([number.as_py()], pa.int64()),
                        "answer": pa.array([answer], pa.binary()),
                    }
                )

    packed = {
        "number": pa.array(range(len(items)), pa.int64()),
        "item": pa.array([pickle.dumps(item) for item in items], pa.binary()),
    }
    answers = (
        spark.createDataFrame(pa.table(packed))
        .repartition(len(items))
        .mapInArrow(task, "number long, answer binary")
        .toArrow()
        .sort_by("number")
    )
    return [pickle.loads(answer) for answer in answers["answer"].to_pylist()]
