"""Tests of the compilation message: only the first process on a machine compiles and prints it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

KERNEL = """
import numpy as np
from microguard.sdc.kernels.compile import kernel

@kernel
def first(values):
    return values[0]

first(np.zeros(3))
first(np.zeros(3, np.int64))
"""


def test_process_that_compiles_kernels_prints_one_line(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(KERNEL)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    said = [
        subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment, check=True)
        for _ in range(2)
    ]
    (line,) = said[0].stderr.splitlines()
    assert "microguard compiles this method" in line
    assert [each.stdout for each in said] == ["", ""]
    assert said[1].stderr == ""
