"""Storages at empty places, in memory where the system has a file system in memory."""

import os
import tempfile
from pathlib import Path

import pytest

from tests.contract.storage.places import KINDS, Place, buckets

#: No state is on a disk.
MEMORY = Path("/dev/shm")


@pytest.fixture
def folder(tmp_path):
    """An empty folder, in which the addresses of object stores are folders, too."""
    with (
        tempfile.TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else tmp_path) as path,
        buckets(Path(path)),
    ):
        yield Path(path)


@pytest.fixture(params=KINDS)
def place(request, folder):
    """A place of each kind of storage."""
    return Place(request.param, folder / "lake")
