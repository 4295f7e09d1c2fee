"""Vary the memory layout of arguments, and compare two outcomes bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.contract.kernels.recording import copied


def _fortran_order(array: np.ndarray) -> np.ndarray:
    return np.asfortranarray(array) if array.ndim > 1 else _every_second(array)


def _every_second(array: np.ndarray) -> np.ndarray:
    """Return a view of every second number; a kernel must not read the numbers between."""
    between = np.full((*array.shape, 2), 113).astype(array.dtype)
    between[..., 0] = array
    return between[..., 0]


def _backwards(array: np.ndarray) -> np.ndarray:
    return array[::-1].copy()[::-1] if array.ndim else array


def _other_bytes(array: np.ndarray) -> np.ndarray:
    return array.astype(array.dtype.newbyteorder())


def _read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


#: Memory layouts of an array.
LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "fortran-order": _fortran_order,
    "every-second": _every_second,
    "backwards": _backwards,
    "other-bytes": _other_bytes,
    "read-only": _read_only,
}


def varied(argument: Any, vary: Callable[[np.ndarray], np.ndarray]) -> Any:
    """Return a copy of an argument with all its arrays varied."""
    if isinstance(argument, tuple):
        items = [varied(item, vary) for item in argument]
        return type(argument)(*items) if hasattr(argument, "_fields") else tuple(items)
    return vary(copied(argument)) if isinstance(argument, np.ndarray) else copied(argument)


def arrays_of(value: Any) -> list[np.ndarray]:
    """Return all arrays of a value, also those in tuples."""
    if isinstance(value, tuple):
        return [array for item in value for array in arrays_of(item)]
    return [value] if isinstance(value, np.ndarray) else []


def in_tuple(arguments: tuple[Any, ...]) -> bool:
    """Return whether an array is an item of a tuple."""
    return any(arrays_of(each) for each in arguments if isinstance(each, tuple))


def narrowed(argument: Any, after: Any, kind: str) -> Any:
    """Return an argument with its 64-bit integers in another type if they fit and a call left them unchanged.

    Parameters
    ----------
    after : the same argument after the call
    """
    if isinstance(argument, tuple):
        items = [narrowed(item, done, kind) for item, done in zip(argument, after, strict=True)]
        return type(argument)(*items) if hasattr(argument, "_fields") else tuple(items)
    if not isinstance(argument, np.ndarray):
        return copied(argument)
    ends = np.iinfo(kind)
    fits = (
        argument.dtype == np.int64
        and ends.min <= argument.min(initial=0) <= argument.max(initial=0) <= ends.max
    )
    return argument.astype(kind) if fits and content(argument) == content(after) else argument.copy()


def widened(value: Any) -> Any:
    """Return a value with its integers in 64 bits."""
    if isinstance(value, tuple):
        return tuple(map(widened, value))
    if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
        return value.astype(np.int64)
    return value


def content(value: Any) -> Any:
    """Return the content of a value in a form in which equality means equal bits."""
    if isinstance(value, tuple | list):
        return [content(item) for item in value]
    if isinstance(value, np.ndarray):
        return (
            value.shape,
            value.dtype.newbyteorder("=").str,
            value.astype(value.dtype.newbyteorder("=")).tobytes(),
        )
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    if isinstance(value, float | np.floating):
        return np.float64(value).tobytes()
    return value
