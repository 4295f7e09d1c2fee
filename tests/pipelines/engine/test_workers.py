"""The process that Spark's Python workers are forked from: its standard output has the port alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
#: In place of a library that prints as it is imported, as highspy 1.16 does, from Python and from C.
PRINTING = """
import ctypes, os
print("a banner", flush=True)
print("a banner", end="")
os.write(1, b"a banner\\n")
ctypes.CDLL(None).puts(b"a banner")
ctypes.CDLL(None).fflush(None)
"""


def test_a_start_of_workers_writes_nothing_but_the_port_to_standard_output(tmp_path: Path) -> None:
    (tmp_path / "highspy.py").write_text(PRINTING)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, "-m", "microguard.pipelines.records.daemon"],
        input=b"",  # at its end the process ends, and takes its group along
        env=environment,
        capture_output=True,
        timeout=300,
    )
    assert b"a banner" in done.stderr
    assert len(done.stdout) == 4
    assert 1024 < int.from_bytes(done.stdout, "big") < 65_536
