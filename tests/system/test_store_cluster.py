"""Tests that two machines that share only an object store publish the same records as one machine."""

from __future__ import annotations

import subprocess

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.publication.storage.object_store import connected

from tests.pipelines.publication.storage.servers import S3
from tests.pipelines.publication.storage.stores import names
from tests.system.command import TIMEOUT, microguard, specification
from tests.system.machines import (
    cluster,
    environment,
    from_folder,
    in_store,
    machines_can_be_told_apart,
    released,
    spark_submit,
)

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


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory):
    """Start a master and two machines with one core each."""
    if not machines_can_be_told_apart():
        pytest.skip("machines cannot be separated: unshare --mount is not permitted")
    with cluster(tmp_path_factory.mktemp("cluster")) as made:
        made.add()
        made.add()
        yield made


@pytest.mark.spark
@pytest.mark.long
def test_protect_on_machines_that_share_only_a_store_publishes_the_same_records(two_workers):
    driver, address, server = two_workers.driver, two_workers.address, two_workers.server
    (driver / "job").mkdir()
    path = specification(driver / "job", persons(), VARIABLES, '[method]\neffort = "fast"')
    lake, evidence = S3.make(server, "lake"), S3.make(server, "agency")
    done = subprocess.run(
        spark_submit(address, in_store(path, lake, evidence), "--quiet"),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        env=environment(),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    here = microguard("protect", path, "--quiet", "--master", "local[1]")
    assert here.code == 0, here.err
    pd.testing.assert_frame_equal(released(lake), from_folder(driver / "job"))
    assert not [name for name in names(connected(evidence)) if "/.work/" in name]
    assert not [*(driver / "copies").rglob(".work/*/*/*.parquet")]
