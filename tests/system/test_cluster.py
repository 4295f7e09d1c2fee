"""A run on a cluster of several processes publishes the same records as a run on one machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.dataset as ds
import pytest
from microguard.pipelines.engine.jvm import QUICK
from microguard.pipelines.engine.session import LOG_CONFIGURATION

from tests.system.command import TIMEOUT, microguard, specification
from tests.system.ports import free_port, wait_for

DEPLOY = Path(__file__).parents[2] / "deploy"
#: Secret that the machines of a standalone cluster share for authentication.
SECRET = ("spark.authenticate=true", "spark.authenticate.secret=of-this-test")
VARIABLES = """
region = { role = "region" }
sex = { role = "quasi_identifier", kind = "nominal" }
income = { role = "quasi_identifier", kind = "numeric" }
"""


@contextmanager
def running(scratch: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process of the cluster with a folder for its files, and stop it at the end."""
    process = subprocess.Popen(
        [DEPLOY / "cluster", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=os.environ
        | {
            "TMPDIR": str(scratch),
            "SPARK_DAEMON_JAVA_OPTS": " ".join([*QUICK, *(f"-D{each}" for each in SECRET)]),
        },
    )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


def published(folder: Path) -> pd.DataFrame:
    current = json.loads((folder / "lake" / "current.json").read_text())["release_id"]
    frame = ds.dataset(folder / "lake" / current / "microdata").to_table().to_pandas()
    return frame.sort_values(list(frame.columns), ignore_index=True)


def settings(folder: Path) -> list[str]:
    """Return options of spark-submit: the recommended settings, and the quick compiler.

    The path of the log configuration is replaced by the local one."""
    text = (DEPLOY / "spark-defaults.conf").read_text()
    log = "/opt/microguard/conf/log4j2.properties"
    assert text.count(f"{log}\n") == 2  # for the driver and for the executors
    path = folder / "spark-defaults.conf"
    path.write_text(text.replace(f"{log}\n", f"{LOG_CONFIGURATION} {' '.join(QUICK)}\n"))
    few = "spark.sql.shuffle.partitions=4"  # 400 records need no more tasks
    return ["--properties-file", str(path), *[f"--conf={each}" for each in (*SECRET, few)]]


@pytest.mark.spark
def test_protect_on_a_cluster_publishes_the_records_of_a_run_on_one_machine(tmp_path):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "region": rng.choice(["north", "south"], 400),
            "sex": rng.choice(["f", "m"], 400),
            "income": rng.lognormal(10, 1, 400).round(2),
        }
    )
    paths = []
    for place in ("cluster", "machine"):
        (tmp_path / place).mkdir()
        paths.append(specification(tmp_path / place, frame, VARIABLES, '[method]\neffort = "fast"'))
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with running(scratch, "master", "127.0.0.1", str(port)):
        wait_for(port)
        with running(
            scratch, "worker", master, "4", "9g"
        ):  # resources of an executor in the recommended settings
            job = [DEPLOY.parent / "jobs" / "protect.py", paths[0], "--quiet"]
            done = subprocess.run(
                [
                    DEPLOY / "local",
                    "shell",
                    "--",
                    "spark-submit",
                    "--master",
                    master,
                    *settings(tmp_path),
                    *job,
                ],
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
            )
            logs = [path.read_text() for path in scratch.rglob("stderr")]
    assert logs
    assert not any(" INFO " in log for log in logs)  # the traceback of a task would be logged
    assert not list(scratch.glob("tmp.*"))
    assert done.returncode == 0, done.stderr
    assert microguard("protect", paths[1], "--quiet").code == 0
    pd.testing.assert_frame_equal(published(tmp_path / "cluster"), published(tmp_path / "machine"))
