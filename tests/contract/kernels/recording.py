"""Record the arguments of kernels while public functions run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba._dispatcher import Dispatcher
from numba.core.extending import _Intrinsic
from numba.core.registry import CPUDispatcher

from tests.contract.kernels.discovery import name_of, reachable_from
from tests.contract.kernels.intrinsics import MEANINGS

#: Number of recorded calls per kernel, and maximum number of its uncompiled calls.
CALLS, UNCOMPILED = 2, 300


def copied(argument: Any) -> Any:
    """Return an argument with C-ordered writable copies of its arrays, and a copy of its generator."""
    if isinstance(argument, tuple):
        items = map(copied, argument)
        return type(argument)(*items) if hasattr(argument, "_fields") else tuple(items)
    if isinstance(argument, np.random.Generator):
        return deepcopy(argument)
    return argument.copy(order="C") if isinstance(argument, np.ndarray) else argument


@dataclass
class Recording:
    """Arguments by kernel, and how often each kernel was called from Python.

    Attributes
    ----------
    inside : bool
        Whether calls between kernels are recorded, too. A kernel then runs uncompiled, unless every kernel
        below it was recorded.
    """

    inside: bool
    arguments: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    entries: Counter[str] = field(default_factory=Counter)
    _uncompiled: Counter[str] = field(default_factory=Counter)
    _below: dict[str, set[str]] = field(default_factory=dict)
    _depth: int = 0

    def call(self, kernel: Any, *arguments: Any) -> Any:
        """Record a call and run it."""
        name = name_of(kernel)
        if self._depth == 0:
            self.entries[name] += 1
        recorded = self.arguments.setdefault(name, [])
        if len(recorded) < CALLS:
            recorded.append(tuple(map(copied, arguments)))
        if not self.inside or self._uncompiled[name] == UNCOMPILED or self._complete(kernel, name):
            return Dispatcher.__call__(kernel, *arguments)
        self._uncompiled[name] += 1
        self._depth += 1
        try:
            return kernel.py_func(*arguments)
        finally:
            self._depth -= 1

    def _complete(self, kernel: Any, name: str) -> bool:
        below = self._below.setdefault(name, set(reachable_from(kernel)))
        return all(len(self.arguments.get(each, ())) >= CALLS for each in below)


@contextmanager
def recorded(inside: bool = False) -> Iterator[Recording]:
    """Record the calls of all kernels inside the context."""
    recording = Recording(inside)
    with _called_by(recording.call):
        yield recording


@contextmanager
def uncompiled() -> Iterator[None]:
    """Run all kernels as Python functions inside the context."""
    with _called_by(lambda kernel, *arguments: kernel.py_func(*arguments)):
        yield


@contextmanager
def _called_by(call: Callable[..., Any]) -> Iterator[None]:
    intrinsic = _Intrinsic.__call__
    CPUDispatcher.__call__ = lambda kernel, *arguments: call(kernel, *arguments)
    _Intrinsic.__call__ = lambda self, *arguments: MEANINGS[self._name](*arguments)
    try:
        with np.errstate(over="ignore"):
            yield
    finally:
        del CPUDispatcher.__call__
        _Intrinsic.__call__ = intrinsic
