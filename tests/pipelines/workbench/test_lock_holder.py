"""Tests that the holder of a lock is found without acquiring the lock."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from microguard.pipelines.engine.files import locked
from microguard.pipelines.workbench.lock_holder import LOCKS, holder_of

pytestmark = pytest.mark.skipif(not LOCKS.exists(), reason="this system does not list the locks of processes")
HOLD = """
import fcntl, os, sys
fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX)
print(flush=True)
input()
"""


def test_lock_holder_is_returned_while_the_lock_is_held(tmp_path: Path):
    assert holder_of(tmp_path) is None
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        found = holder_of(tmp_path)
        if found is None:
            other.communicate("\n")
            pytest.skip("this system lists no locks of this file system")
        assert (found.process, found.own) == (other.pid, True)
        assert str(os.getpid()) not in found.sentence
        with pytest.raises(BlockingIOError), locked(tmp_path, wait=False):
            pass
        other.communicate("\n")
    assert holder_of(tmp_path) is None
    assert holder_of(tmp_path / "missing") is None
