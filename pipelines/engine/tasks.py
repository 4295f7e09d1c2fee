"""Calls of a function of this package in Spark tasks, one task for each of a few items."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import pyarrow as pa
from microguard.pipelines.engine.files import AT_ONCE, in_threads
from microguard.schemas.errors import MicroguardError
from pyspark.sql import SparkSession

Item = TypeVar("Item")


@contextmanager
def without_values() -> Iterator[None]:
    """Replace exceptions of a task by their class names, because executors log them and the text may contain
    a value.

    Exceptions of files and stores, and our own exceptions, are not replaced.
    """
    try:
        yield
    except (OSError, MicroguardError):
        raise
    except Exception as error:
        raise RuntimeError(type(error).__name__) from None


def in_tasks(spark: SparkSession, function: Callable[[Item], Any], items: Sequence[Item]) -> list[Any]:
    """Return the results of `function` in the order of the items; each is computed in a task of its own.

    Items and results are pickled, and the driver has all of them in memory, so they must be small. Exceptions
    lose their text, see `without_values`.
    """
    if not items:
        return []

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number, item in zip(batch["number"], batch["item"], strict=True):
                with without_values():
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


def in_threads_or_tasks(
    spark: SparkSession, function: Callable[[Item], Any], items: Sequence[Item]
) -> list[Any]:
    """Return the results of `function` in the order of the items, computed in threads or in Spark tasks.

    For a few items, threads of the driver finish before Spark could start a job. The results of
    more items are computed in tasks (`in_tasks`), so that the work of the driver does not grow with them.
    """
    return in_threads(function, items) if len(items) <= AT_ONCE else in_tasks(spark, function, items)
