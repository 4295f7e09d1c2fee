"""Tests that the processor time of a test is that of its process and of all descendants."""

from __future__ import annotations

import subprocess
import sys

from tests.processor_time import processor_seconds

SPIN = "import time\nwhile time.process_time() < 0.3: pass"


def test_processor_seconds_counts_living_and_ended_descendants() -> None:
    before = processor_seconds()
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SPIN!r}]); print(); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert processor_seconds() - before >= 0.25
        child.communicate("\n")
    assert processor_seconds() - before >= 0.25
