"""Compute the intervals of large suppressed tables in Spark tasks, one chunk of cells in each task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from microguard.pipelines.engine.tasks import in_tasks
from microguard.pipelines.guarantees.chunks import Mapper, in_turn
from microguard.sdc.errors import SdcError
from pyspark.sql import SparkSession


def mapper_of(spark: SparkSession) -> Mapper:
    """Return a function that computes the results of several chunks in tasks, and of one in this process.

    An error of `sdc` is raised in this process with its text, which names positions of cells.
    """

    def mapper(function: Callable[[Any], Any], chunks: Sequence[Any]) -> list[Any]:
        if len(chunks) < 2:
            return in_turn(function, chunks)
        answers = in_tasks(spark, partial(_answer, function), chunks)
        for answer in answers:
            if isinstance(answer, SdcError):
                raise answer
        return answers

    return mapper


def _answer(function: Callable[[Any], Any], chunk: Any) -> Any:
    try:
        return function(chunk)
    except SdcError as error:
        return error
