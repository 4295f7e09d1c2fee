"""Spark's Python workers on this machine: forked from one process that has the methods loaded already.

A worker that starts from nothing imports the methods and loads their compiled code, seconds in each, while
the run waits. Spark starts the process that workers are forked from by the name of a module
(``spark.python.daemon.module``): `pipelines.records.daemon` loads everything once, beside the first stages of
the run.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress

import pyarrow as pa
from pyspark.sql import SparkSession

_SETTING = "spark.python.daemon.module"
#: Settings of a session whose workers have the methods loaded.
PRELOADED = {_SETTING: "microguard.pipelines.records.daemon"}


def start_ahead(spark: SparkSession) -> None:
    """Let Spark start that process, beside what else is starting, where the session has one.

    Where it cannot start, the first stage that needs a worker fails, and says so.
    """
    if spark.conf.get(_SETTING, None) != PRELOADED[_SETTING]:
        return
    threading.Thread(target=_first_worker, args=[spark], daemon=True).start()


def _first_worker(spark: SparkSession) -> None:
    def nothing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    with suppress(Exception):  # a run that ends early takes the session away, in whatever state it is
        spark.range(1, numPartitions=1).mapInArrow(nothing, "id long").collect()
