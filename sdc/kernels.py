"""Compiled loops: ``@kernel`` compiles a function once per machine and keeps it on disk.

Compiled code is cached beside the source where that is writable, else in the user's cache folder
(or ``NUMBA_CACHE_DIR``, where it is set); where nothing is writable it is compiled in memory.
Kernels are single-threaded (Spark's workers are forked) and keep IEEE arithmetic (no fastmath):
the same input gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile in nopython mode, cached on disk where a folder for it can be written."""
    try:
        return cast(F, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # numba: no locator available, nothing is writable
        return cast(F, numba.njit(cache=False, nogil=True)(function))
