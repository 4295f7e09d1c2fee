"""Tests that records can be protected and published with a session of Spark Connect, whose JVM is
inaccessible.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from microguard.pipelines.audit.release import audit

from tests.system.command import TIMEOUT


@contextmanager
def server(spark) -> Iterator[str]:
    """Start a Connect server in the JVM of the shared session, which is warm, and return its address."""
    jvm = spark.sparkContext._jvm
    settings = jvm.org.apache.spark.SparkEnv.get().conf()
    settings.set("spark.connect.grpc.binding.address", "127.0.0.1")
    settings.set("spark.connect.grpc.binding.port", "0")  # any free port
    service = getattr(getattr(jvm.org.apache.spark.sql.connect.service, "SparkConnectService$"), "MODULE$")
    service.start(spark.sparkContext._jsc.sc())
    try:
        yield f"sc://127.0.0.1:{service.localPort()}"
    finally:
        service.stop(jvm.scala.Option.empty(), jvm.scala.Option.empty())


def test_protection_checks_protects_and_publishes_a_frame_of_spark_connect(spark, tmp_path):
    pytest.importorskip("grpc_status", reason="the packages of pyspark[connect] are not installed")
    folder = tmp_path / "areas"
    folder.mkdir()
    with server(spark) as url:
        done = subprocess.run(
            [sys.executable, "-m", "tests.pipelines.connect_client", url, str(folder)],
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    release = Path(answer.pop("release"))
    assert answer == {"checked": 70, "passed": True, "records": 70, "goes_on": 3}
    assert audit(release).passed
    records = ds.dataset(release / "microdata").to_table().to_pandas()
    assert len(records) == 70
    assert records.groupby(["region", "sex", "age"]).size().min() >= 3
