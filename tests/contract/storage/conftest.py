"""Storages at empty places, in memory if the system has a file system in memory."""

import os
import tempfile
from pathlib import Path

import pytest

from tests.contract.storage.places import KINDS, Place, buckets

#: The tests leave no state on a disk.
MEMORY = Path("/dev/shm")


@pytest.fixture
def folder(tmp_path):
    """Return an empty folder, in which the addresses of object stores are also folders."""
    with (
        tempfile.TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else tmp_path) as path,
        buckets(Path(path)),
    ):
        yield Path(path)


@pytest.fixture(params=KINDS)
def place(request, folder):
    """Return a place of each kind of storage."""
    return Place(request.param, folder / "lake")
