"""Tests that `spark-submit jobs/VERB.py` has the exit code and prints the reason of `microguard VERB`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from microguard.pipelines.engine.java import java_home

from tests.schemas.sound import SOUND

ROOT = Path(__file__).parents[2]


@pytest.mark.spark
def test_submitted_job_returns_the_exit_code_and_prints_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "release.toml"
    path.write_text(SOUND.replace("k = 3", "k = 1"))
    environment = os.environ | {
        "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": sys.executable,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["spark-submit", "--master", "local[1]", str(ROOT / "jobs" / "protect.py"), str(path), "--json"],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["exit_code"] == 2
    assert "[release] k: found 1" in answer["reason"]
    assert "[release] k: found 1" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == ["release.toml"]
