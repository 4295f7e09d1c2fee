"""Tests that after a kill at any stage the last release is current, and the next run finishes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.audit.release import audit

from tests.system.command import COMMAND, TIMEOUT, microguard, specification

VARIABLES = """
region = { role = "region" }
age = { role = "quasi_identifier", kind = "numeric" }
income = { role = "quasi_identifier", kind = "numeric" }
"""
DEADLINE = 300.0


def persons(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "region": rng.choice(["north", "south"], 4000),
            "age": rng.integers(0, 100, 4000),
            "income": rng.lognormal(10, 1, 4000).round(),
        }
    )


def changed_since(moment: float, path: Path) -> bool:
    try:
        return path.stat().st_mtime > moment
    except FileNotFoundError:
        return False


def killed_at(sign: str, path: Path, work: Path) -> bool:
    """Start a run, and kill it with its JVM and workers after it has written a file of a stage."""
    started = time.time()
    run = subprocess.Popen(
        [COMMAND, "protect", str(path), "--quiet"],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + DEADLINE
    while run.poll() is None and time.monotonic() < until:
        if any(changed_since(started, left) for left in work.glob(sign)):
            os.killpg(run.pid, signal.SIGKILL)
            break
        time.sleep(0.01)
    run.wait(TIMEOUT)
    return run.returncode == -signal.SIGKILL


@pytest.mark.spark
@pytest.mark.long
def test_run_killed_at_any_stage_publishes_nothing_and_the_next_run_finishes(tmp_path):
    path = specification(tmp_path, persons(1), VARIABLES)
    lake, work = tmp_path / "lake", tmp_path / "evidence" / ".work"
    signs = {
        "blocks solved": "*/resume/*/*.npz",
        "staging begun": "*/staging/*",
        "records staged": "*/staging/microdata/*.parquet",
    }
    for stage, sign in signs.items():
        assert killed_at(sign, path, work), stage
        assert not (lake / "current.json").exists(), stage
        assert not lake.exists() or not list(lake.glob("*/manifest.json")), stage
    ran = microguard("protect", path, "--json")
    assert ran.code == 0, ran.err
    release = Path(json.loads(ran.out.strip().splitlines()[-1])["release"])
    assert audit(release).passed
    assert not work.exists() or not list(work.glob("*/staging"))
