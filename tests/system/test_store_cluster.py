"""Two machines that share nothing but an object store publish what one machine publishes from a folder."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import obstore
import pandas as pd
import pytest

from pipelines.engine.java import java_home
from pipelines.engine.session import LOG_CONFIGURATION
from pipelines.publication.key import KEY_VARIABLE
from pipelines.publication.store.connection import connected, names
from pipelines.publication.stored_evidence import VARIABLE
from tests.pipelines.publication.public.servers import S3
from tests.system.command import TIMEOUT, microguard, specification
from tests.system.ports import free_port, wait_for

BIN = Path(sys.executable).parent
VARIABLES = """
region = { role = "region" }
income = { role = "quasi_identifier", kind = "numeric" }
age = { role = "quasi_identifier", kind = "numeric" }
note = { role = "other" }
"""


def persons(seed: int = 5, number: int = 900) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "region": rng.choice(["north", "south", "west"], number),
            "age": rng.integers(0, 100, number),
            "income": rng.lognormal(10, 1, number).round(2),
            "note": rng.choice(["one", "two"], number),
        }
    )


@contextmanager
def machine(folder: Path, hidden: list[Path], daemon: str, *arguments: str) -> Iterator[Path]:
    """A process of the cluster with a folder of its own, which does not see the hidden ones."""
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
            "SPARK_LOCAL_DIRS": str(folder),
            "PYTHONPATH": str(Path(__file__).parents[2]),
        },
    )
    try:
        yield folder
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A master, two machines of one core, and an S3 server: the driver's folder, and the address of Spark."""
    root = tmp_path_factory.mktemp("cluster")
    if subprocess.run(["unshare", "--mount", "--map-root-user", "true"], capture_output=True).returncode:
        pytest.skip("machines cannot be told apart here: unshare --mount is not allowed")
    driver, port, folders = root / "driver", free_port(), [root / "one", root / "two"]
    driver.mkdir()
    with pytest.MonkeyPatch.context() as patch, S3.started() as server, ExitStack() as running:
        for name, value in S3.settings(server).items():
            patch.setenv(name, value)
        patch.setenv(KEY_VARIABLE, str(driver / "key"))
        patch.setenv(VARIABLE, str(driver / "copies"))
        master = ["master.Master", "--host", "127.0.0.1", "--port", str(port)]
        running.enter_context(machine(root / "master", [], *master))
        wait_for(port)
        address = f"spark://127.0.0.1:{port}"
        for folder in folders:
            worker = ["worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g"]
            options = [*worker, "--work-dir", str(folder), address]
            others = [driver] + [each for each in folders if each != folder and each.exists()]
            running.enter_context(machine(folder, others, *options))
        yield driver, address, server


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


def submitted(address: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    settings = {
        "spark.executor.memory": "600m",
        "spark.executor.cores": "1",
        "spark.sql.shuffle.partitions": "4",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    }
    return subprocess.run(
        [
            BIN / "spark-submit",
            "--master",
            address,
            *[f"--conf={key}={value}" for key, value in settings.items()],
            Path(__file__).parents[2] / "jobs" / "protect.py",
            *arguments,
            "--quiet",
        ],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        env=os.environ | {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable},
    )


def released(lake: str) -> pd.DataFrame:
    """Records of the current release in a store, in order."""
    store = connected(f"{lake}/persons")
    current = json.loads(bytes(obstore.get(store, "current.json").bytes()))["release_id"]
    files = [name for name in names(store, f"{current}/microdata/") if name.endswith(".parquet")]
    contents = [bytes(obstore.get(store, name).bytes()) for name in files]
    frame = pd.concat([pd.read_parquet(io.BytesIO(content)) for content in contents])
    return frame.sort_values(list(frame.columns), ignore_index=True)


def from_folder(folder: Path) -> pd.DataFrame:
    current = json.loads((folder / "lake" / "current.json").read_text())["release_id"]
    frame = pd.read_parquet(folder / "lake" / current / "microdata")
    return frame.sort_values(list(frame.columns), ignore_index=True)


@pytest.mark.spark
def test_machines_that_share_a_store_alone_publish_what_one_machine_publishes(cluster):
    driver, address, server = cluster
    (driver / "job").mkdir()
    path = specification(driver / "job", persons(), VARIABLES, '[method]\neffort = "fast"')
    lake, evidence = S3.make(server, "lake"), S3.make(server, "agency")
    done = submitted(address, in_store(path, lake, evidence))
    assert done.returncode == 0, done.stdout + done.stderr
    here = microguard("protect", path, "--quiet", "--master", "local[1]")
    assert here.code == 0, here.err
    pd.testing.assert_frame_equal(released(lake), from_folder(driver / "job"))
    assert not [name for name in names(connected(evidence)) if "/.work/" in name]
    assert not [*(driver / "copies").rglob(".work/*/*/*.parquet")]
