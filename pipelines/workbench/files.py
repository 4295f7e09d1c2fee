"""Detection of input files that were replaced after they had been read."""

from __future__ import annotations

import hashlib
from pathlib import Path

from microguard.pipelines.drafting.sniff import input_files
from microguard.pipelines.intake.lake_tables import table_format
from microguard.pipelines.intake.snapshots import current_snapshot
from microguard.schemas.errors import MicroguardError

BLOCK_BYTES = 1 << 20


class Files:
    """State of the input files when this object was created; it must be created before the files are read.

    Parameters
    ----------
    named : str
        A file, a folder, a glob, or the folder of a Delta or Iceberg table. Files that are added to a folder
        change it; a table is its current snapshot.
    """

    def __init__(self, named: str) -> None:
        self._named = named
        self._state = _state_of(named)
        self._digest = digest_of(named)

    def is_replaced(self, read: bool = True) -> bool:
        """Return whether the contents differ from those at creation.

        Parameters
        ----------
        read : bool
            Whether to compare the contents even if no file changed its size, modification time or path.
        """
        state = _state_of(self._named)
        if not read and state == self._state:
            return False
        if digest_of(self._named) != self._digest:
            return True
        self._state = state
        return False


def _state_of(named: str) -> list[object]:
    """Return the state of each file in the file system, or the snapshot of a table."""
    if table_format(named) is not None:
        return [digest_of(named)]
    found: list[object] = []
    for file in _files(named):
        try:
            status = file.stat()
        except OSError:
            found.append(file)
        else:
            found.append(
                (file, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            )
    return found


def _files(named: str) -> tuple[Path, ...]:
    try:
        return input_files(named)
    except MicroguardError:  # the file no longer exists
        return ()


def digest_of(named: str) -> str:
    """Return a digest of the names and contents of all files; a missing file changes the digest."""
    whole = hashlib.sha256()
    if table_format(named) is not None:
        try:
            return current_snapshot(named).name
        except MicroguardError:
            return "gone"
    for file in _files(named):
        whole.update(b"\0file\0" + str(file).encode(errors="surrogateescape"))
        try:
            with open(file, "rb") as stream:
                while block := stream.read(BLOCK_BYTES):
                    whole.update(block)
        except OSError:
            whole.update(b"gone")
    return whole.hexdigest()
