"""Start a standalone Spark cluster on one machine, whose nodes share only an object store."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import obstore
import pandas as pd
import pytest
from microguard.pipelines.engine.java import java_home
from microguard.pipelines.engine.jvm import QUICK
from microguard.pipelines.engine.session import LOG_CONFIGURATION
from microguard.pipelines.publication.key import KEY_VARIABLE
from microguard.pipelines.publication.storage.object_store import connected
from microguard.pipelines.publication.stored_evidence import VARIABLE

from tests.pipelines.publication.storage.servers import S3
from tests.pipelines.publication.storage.stores import names
from tests.system.ports import free_port, wait_for

BIN = Path(sys.executable).parent
#: Options of all JVMs, for the quick compiler.
JAVA_OPTIONS = " ".join(QUICK)


@dataclass
class Machine:
    """A node of the cluster with its processes and a folder that other nodes cannot see."""

    folder: Path
    process: subprocess.Popen[bytes]

    @classmethod
    def start(cls, folder: Path, hidden: list[Path], daemon: str, *arguments: str) -> Machine:
        """Start a Spark daemon that cannot see the folders of other nodes."""
        folder.mkdir()
        mounts = " && ".join(f"mount -t tmpfs -o mode=0700 none {each}" for each in hidden) or "true"
        spark = f"{BIN / 'spark-class'} org.apache.spark.deploy.{daemon} {' '.join(arguments)}"
        process = subprocess.Popen(
            ["unshare", "--mount", "--map-root-user", "sh", "-c", f"{mounts} && exec {spark}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=os.environ
            | {
                "JAVA_HOME": str(java_home()),
                "SPARK_CONF_DIR": str(LOG_CONFIGURATION.parent),
                "SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS,
                "SPARK_LOCAL_DIRS": str(folder),
                "PYTHONPATH": str(Path(__file__).parents[2]),
            },
        )
        return cls(folder, process)

    def stop(self, by: signal.Signals = signal.SIGTERM) -> None:
        """End all processes of the node."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, by)
        self.process.wait(60)


@dataclass
class Cluster:
    """A master and workers of one core each.

    Attributes
    ----------
    root : Path
    address : str
        Address of the master.
    server : str
        Address of the object store.
    workers : list of Machine
        Started workers, in order.
    """

    root: Path
    address: str
    server: str
    workers: list[Machine] = field(default_factory=list)

    @property
    def driver(self) -> Path:
        """Folder of the node that starts jobs."""
        return self.root / "driver"

    def add(self) -> Machine:
        """Start another worker."""
        folder = self.root / f"worker-{len(self.workers)}"
        arguments = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--work-dir", str(folder)]
        others = [self.driver, *(each.folder for each in self.workers)]
        self.workers.append(Machine.start(folder, others, "worker.Worker", *arguments, self.address))
        return self.workers[-1]


def machines_can_be_told_apart() -> bool:
    """Return whether the system permits mount namespaces, which hide folders from processes."""
    return not subprocess.run(
        ["unshare", "--mount", "--map-root-user", "true"], capture_output=True
    ).returncode


@contextmanager
def cluster(root: Path) -> Iterator[Cluster]:
    """Start a master without workers and an S3 server, and set the environment for it."""
    port = free_port()
    (root / "driver").mkdir()
    with pytest.MonkeyPatch.context() as patch, S3.started() as server:
        for name, value in S3.settings(server).items():
            patch.setenv(name, value)
        made = Cluster(root, f"spark://127.0.0.1:{port}", server)
        patch.setenv(KEY_VARIABLE, str(made.driver / "key"))
        patch.setenv(VARIABLE, str(made.driver / "copies"))
        master = Machine.start(
            root / "master", [], "master.Master", "--host", "127.0.0.1", "--port", str(port)
        )
        try:
            wait_for(port)
            yield made
        finally:
            for each in [*made.workers, master]:
                each.stop()


def in_store(path: Path, lake: str, evidence: str) -> Path:
    """Return the specification with its areas in the store, and its input where every node can read it."""
    text = (
        path.read_text().replace('"lake"', f'"{lake}/persons"').replace('"evidence"', f'"{evidence}/persons"')
    )
    given = path.parent.parent.parent / "input" / path.parent.name
    given.mkdir(parents=True, exist_ok=True)
    shutil.copy(path.parent / "records.parquet", given)
    stored = path.with_name("stored.toml")
    stored.write_text(text.replace('"records.parquet"', f'"{given / "records.parquet"}"'))
    return stored


def spark_submit(address: str, *arguments: str | Path) -> list[str | Path]:
    """Return the command that protects the records on the cluster."""
    settings = {
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.executor.extraJavaOptions": JAVA_OPTIONS,
        "spark.executor.memory": "600m",
        "spark.executor.cores": "1",
        "spark.shuffle.readHostLocalDisk": "false",  # the nodes have one address, but no common disk
        "spark.sql.shuffle.partitions": "4",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    }
    given = [f"--conf={key}={value}" for key, value in settings.items()]
    job = Path(__file__).parents[2] / "jobs" / "protect.py"
    return [BIN / "spark-submit", "--master", address, *given, job, *arguments]


def environment() -> dict[str, str]:
    """Return the settings of the calling process."""
    return os.environ | {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable}


def released(lake: str) -> pd.DataFrame:
    """Return the records of the current release in a store, sorted."""
    store = connected(f"{lake}/persons")
    current = json.loads(bytes(obstore.get(store, "current.json").bytes()))["release_id"]
    files = [
        name
        for name in names(store)
        if name.startswith(f"{current}/microdata/") and name.endswith(".parquet")
    ]
    contents = [bytes(obstore.get(store, name).bytes()) for name in files]
    frame = pd.concat([pd.read_parquet(io.BytesIO(content)) for content in contents])
    return frame.sort_values(list(frame.columns), ignore_index=True)


def from_folder(folder: Path) -> pd.DataFrame:
    current = json.loads((folder / "lake" / "current.json").read_text())["release_id"]
    frame = pd.read_parquet(folder / "lake" / current / "microdata")
    return frame.sort_values(list(frame.columns), ignore_index=True)
