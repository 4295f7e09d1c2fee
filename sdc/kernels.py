"""Compiled loops: ``@kernel`` compiles a function once per machine and keeps it on disk.

Compiled code is cached beside the source where that is writable, else in the user's cache folder (or in
``NUMBA_CACHE_DIR``, where it is set); in a read-only installation without either, in a private folder of
the machine's temporary one; where nothing is writable it is compiled in memory. ``python -m sdc.warm``
compiles everything ahead. Kernels are single-threaded (Spark's workers are forked) and keep IEEE
arithmetic (no fastmath): the same input gives the same bits.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile in nopython mode, cached on disk where a folder for it can be written."""
    try:
        return cast(F, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # numba: no locator available, nothing is writable
        return cast(F, numba.njit(cache=False, nogil=True)(function))


def inlined(function: F) -> F:
    """Compile into the kernels that call it: for small functions that take many arrays, which a call
    would pass one by one (the nominal search runs a third faster)."""
    return cast(F, numba.njit(inline="always")(function))


def private_folder(parent: Path) -> Path | None:
    """A folder below `parent` that only this user can read and write; None where there can be none.

    Compiled code is executed, so a folder that somebody else owns or can write is never used.
    """
    folder = parent / f"microguard-kernels-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    return folder if private else None


def _writable(folder: Path) -> bool:
    """Whether the folder, or the nearest one above that exists, can be written."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return os.access(folder, os.W_OK)


def choose_folder() -> None:
    """Point numba to the private folder where neither the source's nor the user's can be written."""
    beside = Path(__file__).parent / "__pycache__"
    of_user = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    config: Any = numba.config
    if not config.CACHE_DIR and not _writable(beside) and not _writable(of_user):
        folder = private_folder(Path(tempfile.gettempdir()))
        config.CACHE_DIR = "" if folder is None else str(folder)


choose_folder()
