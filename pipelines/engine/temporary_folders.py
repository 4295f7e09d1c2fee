"""Private temporary folders of a process: removed when it ends, and by the next process if it was killed.

They may hold records that are not protected yet.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from microguard.pipelines.engine.files import PRIVATE

PREFIX = "microguard-"
#: File in a folder whose lock is held: a folder without it may not be locked yet.
_LOCKED = ".locked"


def temporary_folder() -> Path:
    """Create a folder of mode 0700 for this process, and remove those of processes that were killed."""
    parent = Path(tempfile.gettempdir())
    for left in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):  # another process removes it, too
            _remove_unless_in_use(left)
    return Path(tempfile.mkdtemp(dir=_of_process(parent, os.getpid())))


@cache
def _of_process(parent: Path, number: int) -> Path:
    """Create the folder of all temporary folders of a process, which holds its lock until it ends."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    with suppress(OSError):  # a file system without locks: no process removes the folder of another one
        fcntl.flock(os.open(folder, os.O_RDONLY), fcntl.LOCK_EX)
        (folder / _LOCKED).touch(0o600)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _remove_unless_in_use(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        about = os.fstat(descriptor)
        ours = about.st_uid == os.getuid() and about.st_mode & 0o777 == PRIVATE
        if ours and (folder / _LOCKED).is_file():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)
    finally:
        os.close(descriptor)
