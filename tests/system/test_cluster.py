"""Tests that a run on a cluster of several processes publishes the same records as a run on one machine.

This includes executors that start and stop, tasks that run twice, and an executor lost with its shuffle
files. `tests/pipelines/records/test_plain_workers.py` has the workers of a cluster in the shared session.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.dataset as ds
import pytest
from microguard.pipelines.engine import session
from microguard.pipelines.engine.jvm import QUICK
from microguard.pipelines.engine.session import LOG_CONFIGURATION

from tests.system.command import TIMEOUT, microguard, specification
from tests.system.ports import free_port, wait_for

DEPLOY = Path(__file__).parents[2] / "deploy"
#: Secret that the machines of a standalone cluster share for authentication.
SECRET = ("spark.authenticate=true", "spark.authenticate.secret=of-this-test")
JOB = DEPLOY.parent / "jobs" / "protect.py"
VARIABLES = """
region = { role = "region" }
sex = { role = "quasi_identifier", kind = "nominal" }
income = { role = "quasi_identifier", kind = "numeric" }
"""
#: Two small executors, of which an idle one is returned; a task that takes longer than 50 ms runs twice.
#: Shuffle files are read over the network, as between machines.
UNSTEADY = {
    "spark.executor.cores": "2",
    "spark.executor.memory": "1g",
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.timeout": "2s",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.initialExecutors": "2",
    "spark.dynamicAllocation.maxExecutors": "2",
    "spark.dynamicAllocation.executorIdleTimeout": "2s",
    "spark.speculation": "true",
    "spark.speculation.interval": "10ms",
    "spark.speculation.minTaskRuntime": "0ms",
    "spark.speculation.task.duration.threshold": "50ms",
    "spark.shuffle.readHostLocalDisk": "false",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}
#: The executor that completes one of these stages with shuffle files is killed, counted from 1.
KILLED_AFTER = (3, 8)


@contextmanager
def running(scratch: Path, *arguments: str, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process of the cluster with a folder for its files, and stop the process at the end."""
    process = subprocess.Popen(
        [DEPLOY / "cluster", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=os.environ
        | {
            "TMPDIR": str(scratch),
            "SPARK_DAEMON_JAVA_OPTS": " ".join([*QUICK, *(f"-D{each}" for each in SECRET)]),
        }
        | variables,
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
    """Return options of spark-submit: the recommended settings, and those of a tiny input.

    The path of the log configuration is replaced by the local one."""
    text = (DEPLOY / "spark-defaults.conf").read_text()
    log = "/opt/microguard/conf/log4j2.properties"
    assert text.count(f"{log}\n") == 2  # applies to the driver and the executors
    path = folder / "spark-defaults.conf"
    path.write_text(text.replace(f"{log}\n", f"{LOG_CONFIGURATION} {' '.join(QUICK)}\n"))
    # several tasks for several executors, and as many Python workers, of which each imports the methods
    tiny = session._TINY | {"spark.sql.shuffle.partitions": "4", "spark.executor.cores": "2"}
    given = [*SECRET, *(f"{key}={value}" for key, value in tiny.items())]
    return ["--properties-file", str(path), *[f"--conf={each}" for each in given]]


@dataclass(frozen=True)
class Cluster:
    """A master and its workers.

    Attributes
    ----------
    master : str
        Address.
    scratch : Path
        Folder of the files of the workers.
    workers : tuple of int
        Processes.
    """

    master: str
    scratch: Path
    workers: tuple[int, ...]

    def submit(self, folder: Path, path: Path, *conf: str) -> subprocess.CompletedProcess[str]:
        """Protect the records of a specification."""
        given = ["--master", self.master, *settings(folder), *(f"--conf={each}" for each in conf)]
        return subprocess.run(
            [DEPLOY / "local", "shell", "--", "spark-submit", *given, JOB, path, "--quiet"],
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )

    def kill(self, executor: str) -> None:
        """Kill an executor as a machine that is lost; its worker starts another one."""
        for process in _descendants(self.workers):
            with suppress(OSError):
                command = Path(f"/proc/{process}/cmdline").read_bytes()
                if b"\0--executor-id\0%s\0" % executor.encode() in command:
                    os.kill(process, signal.SIGKILL)


def _descendants(roots: Sequence[int]) -> list[int]:
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
    found = set(roots)
    while grown := {child for child, parent in parents.items() if parent in found} - found:
        found |= grown
    return sorted(found - set(roots))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    port, scratch = free_port(), tmp_path_factory.mktemp("scratch")
    master = f"spark://127.0.0.1:{port}"
    with running(scratch, "master", "127.0.0.1", str(port)):
        wait_for(port)
        # the memory of an executor in the recommended settings
        with running(scratch, "worker", master, "2", "9g") as worker:
            yield Cluster(master, scratch, (worker.pid,))


@pytest.fixture
def two_workers(cluster):
    """Return the cluster with another worker, of another name: Spark runs no task twice on one host."""
    name = {"SPARK_LOCAL_HOSTNAME": "localhost"}
    with running(cluster.scratch, "worker", cluster.master, "2", "2g", **name) as second:
        yield replace(cluster, workers=(*cluster.workers, second.pid))


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """Return the records that a run on one machine publishes."""
    folder = tmp_path_factory.mktemp("machine")
    run = microguard("protect", persons(folder))
    assert run.code == 0, run.err
    return published(folder)


def persons(folder: Path) -> Path:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "region": rng.choice(["north", "south"], 400),
            "sex": rng.choice(["f", "m"], 400),
            "income": rng.lognormal(10, 1, 400).round(2),
        }
    )
    return specification(folder, frame, VARIABLES, '[method]\neffort = "fast"')


@pytest.mark.spark
@pytest.mark.long
def test_protect_on_a_cluster_publishes_the_records_of_a_run_on_one_machine(cluster, machine, tmp_path):
    done = cluster.submit(tmp_path, persons(tmp_path))
    logs = [path.read_text() for path in cluster.scratch.rglob("stderr")]
    assert logs
    assert not any(" INFO " in log for log in logs)  # the traceback of a task would be logged
    assert done.returncode == 0, done.stderr
    pd.testing.assert_frame_equal(published(tmp_path), machine)


@pytest.mark.spark
@pytest.mark.long
def test_executors_that_start_stop_and_fail_do_not_change_the_published_records(
    two_workers, machine, tmp_path
):
    events = tmp_path / "events"
    events.mkdir()
    over, killed = threading.Event(), list[str]()
    watch = threading.Thread(target=kill_executors, args=[two_workers, events, over, killed])
    watch.start()
    try:
        conf = UNSTEADY | {"spark.eventLog.dir": events.as_uri()}
        done = two_workers.submit(
            tmp_path, persons(tmp_path), *(f"{key}={value}" for key, value in conf.items())
        )
    finally:
        over.set()
        watch.join()
    assert done.returncode == 0, done.stderr
    pd.testing.assert_frame_equal(published(tmp_path), machine)
    happened = [event for path in events.iterdir() for event in lines_of(path.read_text())]
    assert len(killed) == len(KILLED_AFTER)
    assert any(event["Task Info"]["Speculative"] for event in of_kind(happened, "TaskStart"))
    reasons = [event["Removed Reason"] for event in of_kind(happened, "ExecutorRemoved")]
    assert len(reasons) >= len(killed)
    assert len(of_kind(happened, "ExecutorAdded")) > len(killed)
    again = [event["Stage Info"]["Stage Attempt ID"] for event in of_kind(happened, "StageSubmitted")]
    lost = [event["Task End Reason"]["Reason"] for event in of_kind(happened, "TaskEnd")]
    assert max(again) > 0 or "Resubmitted" in lost  # shuffle files were lost and written again


def kill_executors(cluster: Cluster, events: Path, over: threading.Event, killed: list[str]) -> None:
    """Kill the executor that completed a stage with shuffle files as soon as the event log contains the
    stage.
    """
    read, stages, ran_on = 0, 0, dict[int, str]()
    while not over.wait(0.02):
        for path in events.iterdir():
            with open(path, "rb") as file:
                file.seek(read)
                whole, end, _ = file.read().rpartition(b"\n")
            read += len(whole) + len(end)
            for event in lines_of(whole.decode()):
                if event["Event"] == "SparkListenerTaskEnd":
                    ran_on[event["Stage ID"]] = event["Task Info"]["Executor ID"]
                elif event["Event"] == "SparkListenerStageCompleted" and wrote_shuffle(event["Stage Info"]):
                    stages += 1
                    if stages in KILLED_AFTER:
                        cluster.kill(ran_on[event["Stage Info"]["Stage ID"]])
                        killed.append(ran_on[event["Stage Info"]["Stage ID"]])


def wrote_shuffle(stage: dict) -> bool:
    return any(
        each["Name"] == "internal.metrics.shuffle.write.recordsWritten" for each in stage["Accumulables"]
    )


def lines_of(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def of_kind(events: list[dict], kind: str) -> list[dict]:
    return [event for event in events if event["Event"] == f"SparkListener{kind}"]
