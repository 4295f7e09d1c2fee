"""Simulate a file system, an object store, a clock and signals that fail at a chosen operation of a call.

An operation is a system call of the code under test below one folder (open, create, rename, remove or sync a
file), or a request to an object store. One of `FAULTS` occurs at operation `at` of a call.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import random
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from microguard.pipelines.engine import files
from microguard.pipelines.publication.storage import object_store
from obstore.exceptions import GenericError

from tests.contract.storage.bucket import REQUESTS
from tests.pipelines.releases import Killed

#: A full or read-only disk remains so until the call ends. An answer is lost after the operation succeeded. A
#: torn file loses the end that was not yet durable, as in a crash of the machine.
FAULTS = (
    "killed", "killed after", "torn", "ENOSPC", "EROFS", "EIO", "answer lost",
    "interrupted", "interrupted after", "exited", "unmounted",
)  # fmt: skip
#: Module functions that change names or make them durable.
_CHANGES = ("mkdir", "rename", "replace", "unlink", "remove", "rmdir", "link", "fsync", "truncate")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Disk:
    """Count the operations of one call below a folder, and fail one of them.

    Parameters
    ----------
    root : Path
    at : int or None
        Number of the operation, from 0; None for no fault.
    fault : str
        One of `FAULTS`.
    unmount : callable
        Unmounts the public area, for the fault of that name.
    chance : random.Random
        Determines how much of a torn file is left.
    """

    def __init__(
        self, root: Path, at: int | None, fault: str, unmount: Callable[[], None], chance: random.Random
    ) -> None:
        self.count, self.died = 0, False
        self._root, self._at, self._fault = f"{root}/", at, fault
        self._unmount, self._chance = unmount, chance
        self._sticky: OSError | None = None
        self._quiet = False
        self._turn = threading.Lock()

    def wrapped(self, function: Callable, name: str) -> Callable:
        """Return a system function that counts its calls and fails at the chosen one."""

        def asked(*arguments, **options):
            if self._quiet or not self._is_ours(name, arguments, options):
                return function(*arguments, **options)
            number = self._before(name, arguments)
            answer = None if name == "fsync" else function(*arguments, **options)
            self._after(number, answer, name)
            return answer

        return asked

    def requested(self, function: Callable, name: str) -> Callable:
        """Return a function of the store's library that counts its requests and fails at the chosen one."""

        def request(*arguments, **options):
            if self._quiet:
                return function(*arguments, **options)
            number = self._before(name, arguments)
            quiet, self._quiet = self._quiet, True  # calls of the simulated bucket itself do not count
            try:
                answer = function(*arguments, **options)
            finally:
                self._quiet = quiet
            self._after(number, None, name)
            return answer

        return request

    def _is_ours(self, name: str, arguments: tuple, options: dict) -> bool:
        place = arguments[0] if arguments else options.get("file", options.get("path"))
        if name in ("open", "os.open"):
            return not isinstance(place, int) and f"{os.fspath(place)}/".startswith(self._root)
        return name == "fsync" or bool(options) or os.fspath(place).startswith(self._root)

    def _before(self, name: str, arguments: tuple) -> int:
        with self._turn:
            number, self.count = self.count, self.count + 1
        if self.died:
            raise Killed
        writes = name in _CHANGES or _is_write(name, arguments)
        if self._sticky is not None and writes and name not in ("unlink", "remove", "rmdir"):
            raise self._sticky
        if number != self._at:
            return number
        if self._fault == "torn" and name == "fsync":
            self._tear(arguments[0])
        if self._fault in ("killed", "torn"):
            self.died = True
            raise Killed
        if name in REQUESTS and self._fault in ("ENOSPC", "EROFS", "EIO"):
            raise GenericError("500")
        if self._fault in ("ENOSPC", "EROFS"):
            self._sticky = _system(self._fault)
            if writes:
                raise self._sticky
        if self._fault == "EIO":
            raise _system("EIO")
        if self._fault == "interrupted":
            raise KeyboardInterrupt
        if self._fault == "exited":
            raise SystemExit(1)
        if self._fault == "unmounted":
            self._quiet = True
            self._unmount()
            self._quiet = False
        return number

    def _after(self, number: int, answer: object, name: str) -> None:
        if number != self._at:
            return
        if self._fault in ("killed after", "answer lost", "interrupted after"):
            if isinstance(answer, int) and not isinstance(answer, bool):
                os.close(answer)
            elif hasattr(answer, "close"):
                answer.close()
        if self._fault == "killed after":
            self.died = True
            raise Killed
        if self._fault == "answer lost":
            raise GenericError("no answer") if name in REQUESTS else _system("EIO")
        if self._fault == "interrupted after":
            raise KeyboardInterrupt

    def _tear(self, descriptor: int) -> None:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            size = os.fstat(descriptor).st_size
            os.ftruncate(descriptor, size - self._chance.randint(0, min(size, 200)))


def _is_write(name: str, arguments: tuple) -> bool:
    if name == "os.open":
        return bool(arguments[1] & _WRITES)
    mode = arguments[1] if len(arguments) > 1 else "r"
    return name == "open" and bool(set(str(mode)) & set("wax+"))


def _system(name: str) -> OSError:
    number = getattr(errno, name)
    return OSError(number, os.strerror(number))


@contextmanager
def failing(disk: Disk, at_once: int = 1) -> Iterator[Disk]:
    """Put a disk between the code under test and the system.

    Parameters
    ----------
    at_once : int
        Files that are copied or sent at the same time; the operations of one at a time have a fixed order.
    """
    opened = disk.wrapped(builtins.open, "open")
    changes = {name: disk.wrapped(getattr(os, name), name) for name in _CHANGES}
    opens = disk.wrapped(os.open, "os.open")
    library = object_store.obstore
    requests = {name: disk.requested(getattr(library, name), name) for name in REQUESTS}
    with (
        patch.multiple(os, open=opens, **changes),
        patch.object(io, "open", opened),
        patch.object(builtins, "open", opened),
        patch.object(object_store, "obstore", SimpleNamespace(**requests)),
        patch.object(files, "AT_ONCE", at_once),
    ):
        yield disk


class Clock(datetime):
    """Clock that jumps forwards and backwards."""

    chance = random.Random(0)

    @classmethod
    def now(cls, tz=None):
        """Return a time within years of the previous one."""
        return datetime(2026, 1, 1, tzinfo=tz) + timedelta(hours=cls.chance.randint(-20_000, 20_000))
