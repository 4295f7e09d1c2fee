"""Small files and private folders that survive a crash: atomic replacement, durable names, checksums.

A JSON file that microguard wrote and that cannot be read raises `FileDamaged`, which names the file. Locks of
folders hold on this machine; the system releases them when the process ends.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import io
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from microguard.schemas.errors import MicroguardError

PRIVATE, PRIVATE_FILE, ANY_FOLDER, ANY_FILE = 0o700, 0o600, 0o777, 0o666
"""Modes of a folder and a file that only their owner may access, and modes of those that follow the umask."""
#: Number of files that are read, copied or sent in parallel.
AT_ONCE = 4
#: Prefix of the name of a temporary folder, and the file that exists in it once its lock is held.
_PREFIX, _LOCKED = "microguard-", ".locked"
Item = TypeVar("Item")
Result = TypeVar("Result")


class FileDamaged(MicroguardError):
    """Raised if a file written by microguard cannot be read: truncated, changed, or written by a newer
    version.
    """

    exit_code = 1


def parse_json(content: bytes, what: str, remedy: str, *keys: str) -> dict[str, Any]:
    """Parse a JSON object that microguard wrote; raise FileDamaged if it is none.

    Parameters
    ----------
    content : bytes
    what : str
        Name of the file in the message.
    remedy : str
        Sentence that states what to do if the file is damaged.
    *keys : str
        Keys that the object must have.

    Raises
    ------
    FileDamaged
    """
    try:
        parsed = json.loads(content)
        for key in keys:
            parsed[key]
        return dict(parsed)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise damaged(what, remedy) from None


def read_json(path: Path, what: str, remedy: str, *keys: str) -> dict[str, Any]:
    """Read a JSON object from a file that microguard wrote; see `parse_json`."""
    return parse_json(path.read_bytes(), what, remedy, *keys)


def damaged(what: str, remedy: str) -> FileDamaged:
    """Return the error for a file that microguard wrote and that cannot be read."""
    return FileDamaged(
        f"{what}: expected a file that microguard wrote, found one that is truncated, changed, or written "
        f"by a newer version. {remedy}"
    )


def private_folder(path: Path) -> Path:
    """Create a folder that only its owner may access; the mode of an existing folder remains unchanged.

    Missing parents inside a private folder are also private. The umask determines the mode of other missing
    parents, because these may later contain public folders.
    """
    missing = [each for each in path.parents if not each.exists()]
    above = next((each for each in path.parents if each.exists()), path)
    private = not above.stat().st_mode & 0o077
    for each in reversed(missing):
        each.mkdir(mode=PRIVATE if private else 0o777, exist_ok=True)
    path.mkdir(mode=PRIVATE, exist_ok=True)
    return path


def write_atomically(path: Path, content: str | bytes | memoryview, mode: int = ANY_FILE) -> None:
    """Replace a small file in one step that survives a crash of the machine."""
    # remove the files of runs that were killed while they wrote
    for left in path.parent.glob(f".{path.name}.*"):
        left.unlink(missing_ok=True)
    _write_fresh(path, content, mode).replace(path)
    sync_folder(path.parent)


def create_once(path: Path, content: str | bytes | memoryview, mode: int = ANY_FILE) -> None:
    """Create a small file atomically unless it exists; the first of two concurrent writers succeeds."""
    if path.exists():
        return
    try:
        with suppress(FileExistsError):  # another run has just created the file
            os.link(_write_fresh(path, content, mode), path)
    finally:
        _fresh(path).unlink(missing_ok=True)
    sync_folder(path.parent)


def _fresh(path: Path) -> Path:
    """Return the hidden name of the file that this thread writes before renaming it."""
    return path.with_name(f".{path.name}.{os.getpid()}{threading.get_ident()}")


def _write_fresh(path: Path, content: str | bytes | memoryview, mode: int) -> Path:
    fresh = _fresh(path)
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())
    return fresh


def copy_durably(source: Path, target: Path) -> None:
    """Copy a file so that its content survives a crash of the machine."""
    shutil.copyfile(source, target)
    with open(target, "rb") as file:
        os.fsync(file.fileno())


def copy_atomically(source: Path, target: Path) -> None:
    """Replace a file by a copy of another file, in one step that survives a crash of the machine."""
    fresh = _fresh(target)
    try:
        copy_durably(source, fresh)
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)
    sync_folder(target.parent)


def hardlink(source: Path, target: Path) -> None:
    """Give an immutable file a second name; if the file system has no hard links, copy the file."""
    fresh = target.with_name(f".{target.name}")
    fresh.unlink(missing_ok=True)
    try:
        os.link(source, fresh)
    except OSError:
        shutil.copyfile(source, fresh)
    fresh.replace(target)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable (fsync)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(path: Path) -> None:
    """Make everything below a folder durable (fsync), because other libraries write files without fsync."""
    for folder, _, names in os.walk(path):
        for name in names:
            with open(Path(folder) / name, "rb") as file:
                os.fsync(file.fileno())
        sync_folder(Path(folder))


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal text."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class HashedFile(io.RawIOBase):
    """File that is hashed while it is written sequentially.

    Parameters
    ----------
    file : BinaryIO
        Stays open when this object is closed.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._digest = file, hashlib.sha256()

    def writable(self) -> bool:
        """Return True, as the interface of files requires."""
        return True

    def write(self, content: Any) -> int:
        """Write bytes to the file and update its hash."""
        self._digest.update(content)
        return self._file.write(content)

    def tell(self) -> int:
        """Return the number of bytes written so far."""
        return self._file.tell()

    @property
    def checksum(self) -> str:
        """Return the SHA-256 of the bytes written so far as hexadecimal text."""
        return self._digest.hexdigest()


def in_threads(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Return the results of `function` in the order of the items; a few threads compute them in parallel.

    If a call raises an error, calls that have not started are skipped, and the error is raised when no call
    is running.
    """
    if len(items) < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(function, items))


@contextmanager
def locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the exclusive lock of a folder while the context is active.

    Raises
    ------
    BlockingIOError
        If another process holds the lock and `wait` is false.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)


def temporary_folder() -> Path:
    """Create a folder of mode 0700 for this process, and remove the folders of processes that were killed."""
    parent = Path(tempfile.gettempdir())
    for left in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another process is removing it at the same time
            _remove_unless_in_use(left)
    return Path(tempfile.mkdtemp(dir=_of_process(parent, os.getpid())))


@cache
def _of_process(parent: Path, number: int) -> Path:
    """Create the folder that contains all temporary folders of this process, which holds its lock until it
    ends.
    """
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    with suppress(OSError):  # on a file system without locks, no process removes the folder of another
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
