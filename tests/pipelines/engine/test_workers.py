"""Tests of the worker daemon: it writes only its port to standard output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
#: Replace a library that prints on import, as highspy 1.16 does, from Python and from C.
PRINTING = """
import ctypes, os
print("a banner", flush=True)
print("a banner", end="")
os.write(1, b"a banner\\n")
ctypes.CDLL(None).puts(b"a banner")
ctypes.CDLL(None).fflush(None)
"""


def test_worker_daemon_writes_only_its_port_to_standard_output(tmp_path: Path) -> None:
    (tmp_path / "highspy.py").write_text(PRINTING)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, "-m", "microguard.pipelines.records.daemon"],
        input=b"",  # the daemon ends when its input ends, and ends its process group
        env=environment,
        capture_output=True,
        timeout=300,
    )
    assert b"a banner" in done.stderr
    assert len(done.stdout) == 4
    assert 1024 < int.from_bytes(done.stdout, "big") < 65_536
