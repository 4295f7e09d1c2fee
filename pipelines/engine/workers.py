"""Spark's Python workers on this machine: forked from one daemon that has loaded the methods.

A worker that starts from nothing imports the methods and loads their compiled code, which takes each of them
seconds. Spark starts the daemon by the name of a module (``spark.python.daemon.module``):
`pipelines.records.daemon` loads everything once, during the first stages of the run.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress

import pyarrow as pa
from pyspark.sql import SparkSession

_SETTING = "spark.python.daemon.module"
#: Settings of a session whose workers preload the methods.
PRELOADED = {_SETTING: "microguard.pipelines.records.daemon"}


def prestart(spark: SparkSession) -> None:
    """Start the daemon in a thread if the session uses ours.

    If it cannot start, the first stage that needs a worker fails and reports it.
    """
    if spark.conf.get(_SETTING, None) != PRELOADED[_SETTING]:
        return
    threading.Thread(target=_first_worker, args=[spark], daemon=True).start()


def _first_worker(spark: SparkSession) -> None:
    def nothing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    with suppress(Exception):  # a run that ends early stops the session
        spark.range(1, numPartitions=1).mapInArrow(nothing, "id long").collect()
