"""Compiled loops: ``@kernel`` compiles a function once per machine and keeps it on disk.

Compiled code is cached in ``NUMBA_CACHE_DIR`` where that is set, else beside the source where that is
writable, else in the user's cache folder; in a read-only installation without either, in a private folder
of the machine's temporary one; where nothing is writable it is compiled in memory.
``python -m microguard.sdc.precompile`` compiles everything ahead. Kernels are single-threaded (workers of
Spark are forked) and keep IEEE arithmetic (no fastmath): the same input gives the same bits.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from microguard.sdc.errors import UnsupportedArguments
from microguard.sdc.kernels.plain_arrays import call_with_plain_arrays, is_plain
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.errors import NumbaError
from numba.core.registry import CPUDispatcher

F = TypeVar("F", bound=Callable[..., Any])
_Dispatcher: Any = CPUDispatcher
_BESIDE = Path(__file__).parents[1] / "__pycache__"


def kernel(function: F) -> F:
    """Compile in nopython mode, cached on disk where a folder for it can be written."""
    return _compiled(function, _nrt=True)


def borrowing(function: F) -> F:
    """Compile like a kernel one that makes no array: it only borrows those it is given.

    Numba counts the references to an array atomically, at each call that takes it and for each row that is
    looked at; where a call does little, to count takes longer than to work. A kernel that borrows counts
    none. The compiler refuses it where it would make an array.
    """
    return _compiled(function, _nrt=False)


def embedded(function: F) -> F:
    """Compile like a kernel that borrows one that becomes part of each kernel that calls it.

    For what a loop calls at every step with the many arrays of a state, which a call passes one by one.
    """
    return _compiled(function, _nrt=False, forceinline=True)


class FilePerSignature(IndexDataCacheFile):
    """Compiled code of one function on disk: a file for each signature, named by it.

    Numba numbers these files, and an index says which signature has which. Workers of one machine compile a
    kernel for several types at once, and then an index may give a signature the code of another: in 2 of 60
    trials of four processes, in one of which a loop over integers read them as floats, and nothing was said.
    """

    def save(self, key: tuple[Any, ...], data: object) -> None:
        """Keep the code of a signature."""
        self._save_data(self._file(key), (key, data))

    def load(self, key: tuple[Any, ...]) -> object | None:
        """The code of a signature; None where there is none yet, or none whole since a loss of power."""
        try:
            kept, data = self._load_data(self._file(key))
        except (OSError, EOFError, pickle.UnpicklingError):
            return None
        return data if kept == key else None

    def _file(self, key: tuple[Any, ...]) -> str:
        told = repr((self._version, self._source_stamp, key))
        return self._data_name_pattern.format(number=int(hashlib.sha256(told.encode()).hexdigest()[:16], 16))


class _Cache(FunctionCache):
    """Numba's cache of compiled code of a function, with a file for each signature."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = FilePerSignature(
            self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp()
        )


class Kernel(_Dispatcher):
    """A compiled function. Called from Python, it takes arrays of any memory order, read-only ones too.

    Compiled code sees plain arrays only (`sdc.kernels.plain_arrays`), so a kernel is compiled and tested for
    one memory order. Numba comes here for types that it has no code for yet: a plain call costs nothing.
    """

    def _compile_for_args(self, *arguments: Any, **named: Any) -> Any:
        """Return what a call from Python runs: code for these types, or the call with plain copies.

        Raises
        ------
        UnsupportedArguments
            If the kernel does not compile for these types.
        """
        if not all(is_plain(argument) for argument in arguments):
            return partial(call_with_plain_arrays, self)
        try:
            return super()._compile_for_args(*arguments, **named)
        except (NumbaError, RuntimeError) as error:  # RuntimeError: what LLVM refuses
            found = ", ".join(str(self.typeof_pyval(argument)) for argument in arguments)
            raise UnsupportedArguments(
                f"{self.__name__}: expected types that this kernel compiles for; found {found}. Convert the "
                "arrays to the types that its module states."
            ) from error


def _compiled(function: F, **options: bool) -> F:
    dispatcher = Kernel(function, targetoptions={"nopython": True, "nogil": True, **options})
    with suppress(RuntimeError):  # numba: no locator available, nothing is writable
        dispatcher._cache = _Cache(function)
    return cast(F, dispatcher)


def private_folder(parent: Path) -> Path | None:
    """A folder below `parent` that only this user can read and write; None where there can be none.

    Compiled code is executed, so a folder that somebody else owns or can write is never used.
    """
    folder = parent / f"microguard-kernels-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
    return folder if private else None


def _writable(folder: Path) -> bool:
    """Whether the folder, or the nearest one above that exists, can be written."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return os.access(folder, os.W_OK)


def choose_folder() -> None:
    """Point numba to the folder of compiled code for the sources as they are.

    Numba notices a change of the file a kernel stands in, not of the files it calls into: so compiled
    code lies in a folder named by the contents of all of them.
    """
    config: Any = numba.config
    root = Path(config.CACHE_DIR) if config.CACHE_DIR else _root()
    config.CACHE_DIR = "" if root is None else str(root / f"kernels-{_digest()}")


def compiled() -> bool:
    """Whether there is compiled code of these sources: loading it takes a second, compiling it minutes."""
    config: Any = numba.config
    return bool(config.CACHE_DIR) and Path(config.CACHE_DIR).is_dir()


def forget_earlier() -> None:
    """Remove compiled code of earlier sources, where it lies beside these and is nobody else's."""
    current = Path(cast(Any, numba.config).CACHE_DIR)
    if current.parent == _BESIDE:
        for folder in _BESIDE.glob("kernels-*"):
            if folder != current:
                shutil.rmtree(folder, ignore_errors=True)


def _root() -> Path | None:
    of_user = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    for folder in (_BESIDE, of_user / "microguard"):
        if _writable(folder):
            return folder
    return private_folder(Path(tempfile.gettempdir()))


def _digest() -> str:
    """Of every source file of this package."""
    content = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        content.update(path.read_bytes())
    return content.hexdigest()[:16]


choose_folder()
