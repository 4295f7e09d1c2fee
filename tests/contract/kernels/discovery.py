"""Find every kernel of the package, the kernels that it calls, and the kernels that plain Python calls."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import microguard.sdc as sdc
from numba.core.extending import _Intrinsic
from numba.core.registry import CPUDispatcher


def name_of(kernel: Any) -> str:
    """Return the module below `sdc` and the name of the function."""
    return f"{kernel.py_func.__module__.removeprefix('microguard.sdc.')}.{kernel.py_func.__name__}"


def all_modules() -> list[ModuleType]:
    """Import and return every module of the package."""
    return [
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages(sdc.__path__, "microguard.sdc.")
    ]


def all_kernels() -> dict[str, Any]:
    """Return every compiled function of the package by name."""
    found = [each for module in all_modules() for each in vars(module).values()]
    return dict(sorted((name_of(each), each) for each in found if isinstance(each, CPUDispatcher)))


def called_by(kernel: Any) -> list[Any]:
    """Return the kernels and intrinsics whose names occur in the source of a kernel."""
    return _named(kernel.py_func.__code__, kernel.py_func.__globals__)


def called_from_python() -> set[str]:
    """Return the kernels whose names occur in functions that are not compiled."""
    found = [
        each
        for module in all_modules()
        for function in _functions(module)
        for each in _named(function.__code__, vars(module))
    ]
    return {name_of(each) for each in found if isinstance(each, CPUDispatcher)}


def reachable_from(kernel: Any) -> dict[str, Any]:
    """Return by name a kernel and all kernels that it calls, directly or indirectly."""
    reached, waiting = {}, [kernel]
    while waiting:
        at = waiting.pop()
        if name_of(at) not in reached:
            reached[name_of(at)] = at
            waiting += [each for each in called_by(at) if isinstance(each, CPUDispatcher)]
    return reached


def _named(code: CodeType, names: dict[str, Any]) -> list[Any]:
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    found = [names.get(name) for name in code.co_names]
    found = [each for each in found if isinstance(each, CPUDispatcher | _Intrinsic)]
    return found + [each for part in inner for each in _named(part, names)]


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """Return functions, methods and properties that a module defines."""
    for each in vars(module).values():
        members = vars(each).values() if isinstance(each, type) else [each]
        for member in members:
            function = getattr(member, "fget", None) or getattr(member, "func", member)
            function = getattr(function, "__func__", function)
            if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                yield function
