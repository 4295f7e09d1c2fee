"""Storages that the contract tests, each at an empty place; a new storage adds its name to `KINDS`."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from microguard.pipelines.publication.storage import object_store
from microguard.pipelines.publication.storage.lease import Lease
from microguard.pipelines.publication.storage.storage import Storage, storage_at

from tests.contract.storage.bucket import REQUESTS, Bucket

KINDS = ("folder", "object store")
#: Lease whose holder counts as dead after a short time.
IMPATIENT = partial(Lease, beat=60.0, silence=0.005, look=0.001)
_HOLDER = """
import sys, time
from microguard.pipelines.publication.storage.storage import storage_at
with storage_at(sys.argv[1]).lock():
    print("held", flush=True)
    time.sleep(60)
"""


class Place:
    """An empty place for a storage.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    folder : Path
        Where the files are, whether the storage knows it or not.
    """

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self.address = str(folder) if kind == "folder" else f"s3://{folder.name}"

    def storage(self, key="path") -> Storage:
        """Return the storage from the view of another process."""
        return storage_at(self.address, key)

    @contextmanager
    def dead_holder(self):
        """Simulate the death of a process that held the lock."""
        if self.kind == "folder":
            holder = subprocess.Popen([sys.executable, "-c", _HOLDER, self.address], stdout=subprocess.PIPE)
            assert holder.stdout.readline() == b"held\n"
            holder.kill()
            holder.wait()
            yield
        else:
            lock = self.storage().lock()
            lock.__enter__()  # its holder stops renewing the lease, until other runs regard it as expired
            yield


@contextmanager
def buckets(folder: Path):
    """Map every object store address to a folder, and shorten the time after which a lease expires."""
    with (
        patch.object(
            object_store, "connected", lambda address, *_: Bucket(folder / address.partition("://")[2])
        ),
        patch.object(object_store, "obstore", SimpleNamespace(**REQUESTS)),
        patch.object(object_store, "Lease", IMPATIENT),
    ):
        yield
