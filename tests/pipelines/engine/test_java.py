"""Tests of the bundled Java runtime: no option for a missing module, and each jar named once."""

from __future__ import annotations

import subprocess
from pathlib import Path

from microguard.pipelines.engine import java

WRITES_ITS_ARGUMENTS = """#!/bin/sh
for argument do printf '%s\\n' "$argument"; done
"""


def _called_with(folder: Path, *arguments: str) -> list[str]:
    """Return the arguments that reach Java."""
    runtime, launcher = folder / "a runtime", folder / "launcher"
    runtime.write_text(WRITES_ITS_ARGUMENTS)
    launcher.write_text(java._LAUNCHER.format(java=runtime))
    for path in (runtime, launcher):
        path.chmod(0o700)
    done = subprocess.run([launcher, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_java_is_not_started_with_a_module_that_the_runtime_lacks(tmp_path: Path):
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Da=b c", "org.Main", ""]
    assert _called_with(tmp_path, *arguments) == ["-Xmx1g", "-Da=b c", "org.Main", ""]


def test_java_arguments_name_each_jar_once(tmp_path: Path):
    jars = "/an environment/pyspark/jars"
    first, rest = "/more.jar:/pyspark/conf", f"{jars}/*"
    called = _called_with(tmp_path, "-cp", f"{first}:{jars}/slf4j-api-2.0.17.jar:{rest}")
    assert called == ["-cp", f"{first}:{rest}"]
