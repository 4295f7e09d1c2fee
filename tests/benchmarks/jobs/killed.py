"""Stop a verb at one of its file-system operations, and refuse all later ones, like a kill."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.pipelines.releases import Killed

_CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.truncate"}
_LEDGER = "ledger.jsonl"


class _Death:
    """Return the audit hook of this process; Python cannot remove audit hooks."""

    def __init__(self) -> None:
        self.armed = self.dead = False
        self._heard = False

    def arm(self, folder: Path, lines: int, steps: int) -> None:
        if not self._heard:
            sys.addaudithook(self._hear)
            self._heard = True
        self._folder, self._lines, self._steps = str(folder), lines, steps
        self._thread, self.dead, self.armed = threading.get_ident(), False, True

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.armed or threading.get_ident() != self._thread or not _changes(event, arguments):
            return
        path = os.fsdecode(arguments[0])
        if os.path.isabs(path) and not path.startswith(self._folder):
            return
        if not self.dead:
            if self._lines > 0:
                self._lines -= path.endswith(_LEDGER)
                return
            self._steps -= 1
        if self._steps <= 0:
            self.dead = True
            raise Killed


_DEATH = _Death()


@contextmanager
def killed_at(folder: Path, lines: int, steps: int) -> Iterator[_Death]:
    """Raise at an operation that changes a file below a folder, and refuse all later operations.

    Parameters
    ----------
    lines, steps : int
        The verb is killed `steps` operations after `lines` lines of a ledger; not at all if there are fewer.

    Raises
    ------
    Killed
    """
    _DEATH.arm(folder, lines, steps)
    try:
        yield _DEATH
    finally:
        _DEATH.armed = False


def _changes(event: str, arguments: tuple[Any, ...]) -> bool:
    if event == "open":
        path, _, flags = arguments
        return isinstance(path, str | bytes | os.PathLike) and bool(flags & (os.O_WRONLY | os.O_RDWR))
    return event in _CHANGES and isinstance(arguments[0], str | bytes | os.PathLike)
