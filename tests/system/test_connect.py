"""Tests that records can be protected and published with a session of Spark Connect, whose JVM is
inaccessible.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from microguard.pipelines.audit.release import audit
from microguard.pipelines.engine.java import java_home
from microguard.pipelines.engine.jvm import InputSize, jvm_options

from tests.system.command import TIMEOUT
from tests.system.ports import free_port, wait_for

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
SUBMIT = Path(sys.executable).with_name("spark-submit")
#: Options of a small server.
SETTINGS = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": " ".join(jvm_options(InputSize.TINY)),
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}


@contextmanager
def server(scratch: Path) -> Iterator[str]:
    """Start a Connect server on this machine, and return its address."""
    port = free_port()
    settings = SETTINGS | {"spark.connect.grpc.binding.port": str(port), "spark.local.dir": str(scratch)}
    options = [f"--conf={key}={value}" for key, value in settings.items()]
    process = subprocess.Popen(
        [SUBMIT, "--master=local[2]", "--class", SERVER, *options, "spark-internal"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=scratch,
        env=os.environ | {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable},
    )
    try:
        wait_for(port)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.spark
def test_protection_checks_protects_and_publishes_a_frame_of_spark_connect(tmp_path):
    pytest.importorskip("grpc_status", reason="the packages of pyspark[connect] are not installed")
    folder, scratch = tmp_path / "areas", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    with server(scratch) as url:
        done = subprocess.run(
            [sys.executable, "-m", "tests.system.connect_client", url, str(folder)],
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
