"""Private temporary folders of a process: removed when it ends, and by the next process if it was killed.

The folders may have records that are not protected yet.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from microguard.pipelines.engine.files import PRIVATE

PREFIX = "microguard-"
#: Name of the lock file in a folder: a folder without this file may not be locked yet.
_LOCKED = ".locked"


def temporary_folder() -> Path:
    """Create a folder of mode 0700 for this process, and remove the folders of killed processes."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):  # another process may be removing the folder, too
            _remove_unless_in_use(left)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    fcntl.flock(os.open(folder, os.O_RDONLY), fcntl.LOCK_EX)  # the lock is held until the process ends
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
