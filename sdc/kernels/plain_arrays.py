"""Plain arrays, as compiled code requires: C order, writable, aligned and in native byte order.

`sdc.kernels.compile` uses `call_with_plain_arrays` for a call from Python if one of its arrays is not plain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from microguard.sdc.errors import UnsupportedArguments


def is_plain(argument: object) -> bool:
    """Return whether an argument, or every item of a tuple, is a plain array or not an array at all."""
    if isinstance(argument, tuple):
        return all(is_plain(item) for item in argument)
    return not isinstance(argument, np.ndarray) or (argument.flags.carray and argument.dtype.isnative)


def call_with_plain_arrays(kernel: Callable[..., Any], *arguments: Any) -> Any:
    """Call a kernel with plain copies of the arrays that are not plain, and copy the kernel's changes back.

    Raises
    ------
    UnsupportedArguments
        If the kernel changed an array that is read-only.
    """
    copied: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def plain(argument: Any) -> Any:
        if is_plain(argument):
            return argument
        if isinstance(argument, tuple):
            items = map(plain, argument)
            return type(argument)(*items) if hasattr(argument, "_fields") else tuple(items)
        if id(argument) not in copied:
            copied[id(argument)] = argument, np.array(argument, argument.dtype.newbyteorder("="), order="C")
        return copied[id(argument)][1]

    taken = [plain(argument) for argument in arguments]
    before = [copy.tobytes() for _, copy in copied.values()]
    result = kernel(*taken)
    for (given, copy), content in zip(copied.values(), before, strict=True):
        if copy.tobytes() == content:
            continue
        if not given.flags.writeable:
            raise UnsupportedArguments(
                f"{kernel.__name__}: expected a writable array of shape {given.shape}, because the kernel "
                "writes to it; found a read-only array. Pass a copy."
            )
        given[...] = copy
    return result
