"""A cluster of Spark's own on one machine, whose machines share nothing but an object store."""

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
#: Options of all JVMs: they compile as for few records.
JAVA_OPTIONS = " ".join(QUICK)


@dataclass
class Machine:
    """A machine of the cluster: its processes, and its folder, which the others do not see."""

    folder: Path
    process: subprocess.Popen[bytes]

    @classmethod
    def start(cls, folder: Path, hidden: list[Path], daemon: str, *arguments: str) -> Machine:
        """A daemon of Spark's that does not see the hidden folders."""
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
        """End all of its processes."""
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
        Of the master.
    server : str
        Of the object store.
    workers : list of Machine
        Those that were started, in order.
    """

    root: Path
    address: str
    server: str
    workers: list[Machine] = field(default_factory=list)

    @property
    def driver(self) -> Path:
        """Folder of the machine that starts jobs."""
        return self.root / "driver"

    def add(self) -> Machine:
        """One more worker."""
        folder = self.root / f"worker-{len(self.workers)}"
        arguments = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--work-dir", str(folder)]
        others = [self.driver, *(each.folder for each in self.workers)]
        self.workers.append(Machine.start(folder, others, "worker.Worker", *arguments, self.address))
        return self.workers[-1]


def machines_can_be_told_apart() -> bool:
    """Whether folders can be hidden from processes here."""
    return not subprocess.run(
        ["unshare", "--mount", "--map-root-user", "true"], capture_output=True
    ).returncode


@contextmanager
def cluster(root: Path) -> Iterator[Cluster]:
    """A master without workers, and an S3 server, which the environment names."""
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
    """The specification with its areas in a store, and its input where every machine has it."""
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
    """The command that protects on the cluster."""
    settings = {
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.executor.extraJavaOptions": JAVA_OPTIONS,
        "spark.executor.memory": "600m",
        "spark.executor.cores": "1",
        "spark.shuffle.readHostLocalDisk": "false",  # one address, and no disk that both see
        "spark.sql.shuffle.partitions": "4",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    }
    given = [f"--conf={key}={value}" for key, value in settings.items()]
    job = Path(__file__).parents[2] / "jobs" / "protect.py"
    return [BIN / "spark-submit", "--master", address, *given, job, *arguments]


def environment() -> dict[str, str]:
    """Of whoever calls it."""
    return os.environ | {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable}


def released(lake: str) -> pd.DataFrame:
    """Records of the current release in a store, in order."""
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
