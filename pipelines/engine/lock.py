"""Locks of folders on this machine, released by the system when the process ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock of a folder.

    Raises
    ------
    BlockingIOError
        If another process holds it and `wait` is false.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)
