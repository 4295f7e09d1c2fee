"""Python logging of a run, and descriptions of Spark's jobs: names of stages and keys, no value of a record.

The logger is ``microguard.run``; handlers and levels of ``microguard`` apply to it. The command sets none.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from microguard.schemas.errors import MicroguardError

_PROPERTY = "spark.job.description"
LOGGER = logging.getLogger("microguard.run")
LOGGER.addHandler(logging.NullHandler())  # without handlers, Python would print errors to standard error


def log_failure(stage: str, error: BaseException) -> None:
    """Log the class of an error and, of a refusal, the keys of what is not met; no message.

    A message may be shown to the person who runs a job, but a log is read by others, too.
    """
    failures = error.failures if isinstance(error, MicroguardError) else ()
    keys = ", ".join(failure.key for failure in failures)
    LOGGER.error("%s failed: %s%s", stage, type(error).__name__, f" ({keys})" if keys else "")


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
