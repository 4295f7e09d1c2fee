"""Tests that `-m "not spark"` starts no JVM: a test that starts Java without the marker fails."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

TESTS = """
import subprocess
import pytest

def test_with_the_session(spark):
    assert False, "it must not run"

def test_that_starts_java():
    subprocess.run(["java", "-version"])

@pytest.mark.parametrize("form", ["sh"])
def test_that_starts_it_in_a_child(form):
    subprocess.run([form, "-c", "$JAVA_HOME/bin/java -version"])

def test_without_java():
    assert True
"""


def test_starting_java_without_the_spark_marker_fails_a_test(tmp_path: Path) -> None:
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = spark: uses Spark\n")
    (tmp_path / "test_some.py").write_text(TESTS)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-rN",
            "-m",
            "not spark",
            "-p",
            "no:cacheprovider",
            str(tmp_path),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert "1 deselected" in done.stdout
    assert "3 passed, 1 deselected, 2 errors" in done.stdout
    assert done.stdout.count("add @pytest.mark.spark") == 2
