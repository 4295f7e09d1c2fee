"""Tests that records are protected by Python workers that were started as on another machine of a cluster.

A session of this machine has a daemon that imports the methods before it forks workers. Executors of a
cluster have Spark's own daemon, which imports nothing: each worker gets the functions of a task, and imports
what these name. `tests/system/test_cluster.py` (long) runs the command on such a cluster.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pandas as pd
import pyarrow as pa
import pytest

from tests.pipelines.microdata import published, run
from tests.pipelines.standard import MIXED, mixed_persons, written

DAEMON = "spark.python.daemon.module"


def imported(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the modules of microguard that a worker has imported."""
    list(batches)
    names = [name for name in sys.modules if name.startswith("microguard.")]
    yield pa.RecordBatch.from_pydict({"name": names}, schema=pa.schema([("name", pa.string())]))


def modules_of_a_worker(spark) -> list[str]:
    # a function of this module would be imported by the worker, and this module imports microguard
    alone = type(imported)(imported.__code__, {"sys": sys, "pa": pa, "list": list}, "alone")
    return [row.name for row in spark.range(1).mapInArrow(alone, "name string").collect()]


@pytest.fixture
def plain_workers(spark) -> Iterator[None]:
    """Start the Python workers of the shared session with Spark's own daemon."""
    settings = spark.sparkContext._jvm.org.apache.spark.SparkEnv.get().conf()
    ours = settings.get(DAEMON)
    assert "microguard.pipelines.records.cluster_blocks" in modules_of_a_worker(spark)
    settings.set(DAEMON, "pyspark.daemon")
    try:
        assert modules_of_a_worker(spark) == []
        yield
    finally:
        settings.set(DAEMON, ours)


@pytest.mark.usefixtures("plain_workers")
def test_workers_that_preload_nothing_publish_the_records_of_workers_that_do(spark, mixed_release, tmp_path):
    _, areas = run(spark, written(tmp_path, mixed_persons(), MIXED), ())
    pd.testing.assert_frame_equal(published(areas), mixed_release.frame)
