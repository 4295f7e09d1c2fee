"""Describe Spark's jobs by the stage of the run that starts them, for Spark's pages and event log."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

_PROPERTY = "spark.job.description"


@contextmanager
def describe_jobs(stage: str) -> Iterator[None]:
    """Describe the jobs that this thread starts inside; restore the description of a classic session."""
    context = _context()
    before = None
    if context is not None:
        with suppress(Exception):  # a description does not change the result of a run
            before = context.getLocalProperty(_PROPERTY)
            context.setLocalProperty(_PROPERTY, f"microguard: {stage}")
    try:
        yield
    except BaseException:
        raise  # without a call: Java may be in the middle of one, or gone
    else:
        if context is not None:
            with suppress(Exception):
                context.setLocalProperty(_PROPERTY, before)


def _context() -> Any:
    pyspark = sys.modules.get("pyspark")
    return None if pyspark is None else getattr(pyspark.SparkContext, "_active_spark_context", None)
