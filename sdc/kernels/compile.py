"""Decorator ``@kernel``, which compiles a function with numba once per machine and caches it on disk.

The cache folder is the first possible one of: ``NUMBA_CACHE_DIR``, a folder next to the sources, the user's
cache folder, a private folder in the temporary directory. If none is writable, code is compiled in memory.
``python -m microguard.sdc.precompile`` compiles all kernels ahead of time. Kernels are single-threaded,
because Spark forks its workers, and keep IEEE arithmetic (no fastmath), so that the same input gives the same
bits.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import shutil
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
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
_only_load = False


def kernel(function: F) -> F:
    """Compile a function in nopython mode; cache it on disk if a folder is writable."""
    return _compiled(function, _nrt=True)


def borrowing(function: F) -> F:
    """Compile a kernel without reference counting, which therefore must not allocate arrays.

    Numba counts references to an array atomically, at each call and for each row view. In a short function
    the counting takes longer than the computation. The compiler rejects a kernel of this kind if it allocates
    an array.
    """
    return _compiled(function, _nrt=False)


def embedded(function: F) -> F:
    """Compile a kernel without reference counting that is inlined into every kernel which calls it.

    Use this decorator for small functions that an inner loop calls with many arrays, because passing each
    array takes time.
    """
    return _compiled(function, _nrt=False, forceinline=True)


class NotCompiled(Exception):
    """Raised if the cache does not contain the compiled code of a kernel."""


class FilePerSignature(IndexDataCacheFile):
    """Disk cache of one function with one file per signature, named by a hash of the signature.

    Numba numbers its files and maps signatures to numbers in an index. If several processes compile a kernel
    for different types at once, the index can map a signature to the code of another signature. This happened
    in 2 of 60 trials with four processes; in one of them a loop read integers as floats, without any error.
    """

    def save(self, key: tuple[Any, ...], data: object) -> None:
        """Write the compiled code of a signature."""
        self._save_data(self._file(key), (key, data))

    def load(self, key: tuple[Any, ...]) -> object | None:
        """Return the compiled code of a signature; None if the file is missing or damaged."""
        try:
            kept, data = self._load_data(self._file(key))
        except (OSError, EOFError, pickle.UnpicklingError):
            return None
        return data if kept == key else None

    def _file(self, key: tuple[Any, ...]) -> str:
        told = repr((self._version, self._source_stamp, key))
        return self._data_name_pattern.format(number=int(hashlib.sha256(told.encode()).hexdigest()[:16], 16))


class _Cache(FunctionCache):
    """Numba's disk cache of one function, with one file per signature."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = FilePerSignature(
            self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp()
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code of a signature, or None if it must be compiled; log the first compilation.

        Raises
        ------
        NotCompiled
            If the cache has no code and compilation is disabled.
        """
        code = super().load_overload(sig, target_context)
        if code is None:
            if _only_load:
                raise NotCompiled
            announce_compilation()
        return code


class Kernel(_Dispatcher):
    """Compiled function that accepts arrays of any memory order from Python, including read-only arrays.

    Compiled code receives plain arrays only (`sdc.kernels.plain_arrays`), so each kernel is compiled and
    tested for one memory order. Numba calls `_compile_for_args` only for types without compiled code, so the
    check costs nothing in later calls with plain arrays.
    """

    def _compile_for_args(self, *arguments: Any, **named: Any) -> Any:
        """Compile for these types. If that fails, return a function that calls the kernel with plain copies.

        Raises
        ------
        UnsupportedArguments
            If the kernel does not compile for these types.
        """
        if not all(is_plain(argument) for argument in arguments):
            return partial(call_with_plain_arrays, self)
        try:
            return super()._compile_for_args(*arguments, **named)
        except (NumbaError, RuntimeError) as error:  # RuntimeError: LLVM rejected the code
            found = ", ".join(str(self.typeof_pyval(argument)) for argument in arguments)
            raise UnsupportedArguments(
                f"{self.__name__}: expected argument types that this kernel can be compiled for; found "
                f"{found}. Convert the arrays to the types that the module's docstring names."
            ) from error


@cache
def announce_compilation() -> None:
    """Log once per process that code is being compiled, which makes this call slower than later ones."""
    logging.getLogger("microguard").warning(
        "microguard compiles this method for its first call on this machine, which can take half a minute. "
        "Call `python -m microguard.sdc.precompile` to compile all methods ahead of time."
    )


def _compiled(function: F, **options: bool) -> F:
    dispatcher = Kernel(function, targetoptions={"nopython": True, "nogil": True, **options})
    with suppress(RuntimeError):  # numba found no cache locator because no folder is writable
        dispatcher._cache = _Cache(function)
    return cast(F, dispatcher)


def private_folder(parent: Path) -> Path | None:
    """Create a folder below `parent` that only this user can access; return None if that is impossible.

    Compiled code is executed, so a folder that another user owns or can write to is never used.
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
    """Return whether the folder, or its nearest existing parent, is writable."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return os.access(folder, os.W_OK)


def choose_folder() -> None:
    """Set numba's cache folder to one that is named by a hash of all sources of ``sdc``.

    Numba detects changes of the file that defines a kernel, but not of the files that the kernel calls. A
    folder per state of the sources rules out stale code.
    """
    config: Any = numba.config
    root = Path(config.CACHE_DIR) if config.CACHE_DIR else _root()
    config.CACHE_DIR = "" if root is None else str(root / f"kernels-{_digest()}")


def load_compiled(part: Callable[[], object]) -> bool:
    """Load the compiled kernels that `part` calls, without compiling; stop at the first kernel that is not in
    the cache.

    Only the cache files show which kernels are compiled: if a compilation was killed, the cache folder exists
    but lacks some kernels. A missing kernel is compiled when it is first called.

    Returns
    -------
    bool
        Whether all kernels were loaded.
    """
    global _only_load
    _only_load = True
    try:
        part()
    except NotCompiled:
        return False
    finally:
        _only_load = False
    return True


def forget_earlier() -> None:
    """Delete the compiled code of earlier source versions if the cache folder is next to the sources, where
    no other installation uses it.
    """
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
    """Return a hash of all source files of this package."""
    content = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        content.update(path.read_bytes())
    return content.hexdigest()[:16]


choose_folder()
