"""Tests that kernels return the same bits for any memory layout of arrays, or name the refused array."""

from __future__ import annotations

import ast
from pathlib import Path

import microguard.sdc as sdc
import numba
import pytest
from microguard.sdc.errors import UnsupportedArguments
from microguard.sdc.kernels.compile import Kernel

from tests.contract.kernels.calls import CALLS
from tests.contract.kernels.discovery import all_kernels, called_from_python, reachable_from
from tests.contract.kernels.outcomes import outcome
from tests.contract.kernels.recording import copied, recorded
from tests.contract.kernels.variations import LAYOUTS, arrays_of, content, in_tuple, narrowed, varied, widened

_SEARCH = "the search makes this array as int64 and sorts or subtracts in it"
_STATE = "the state of the search, which the module makes as int64"
#: Kernels that do not take integers of another width, with the reason why no caller can pass them.
WIDTHS_REFUSED = {
    "int32": {"microaggregation.local_search.annealing._cool": _SEARCH},
    "uint8": {
        "microaggregation.local_search.annealing._cool": _SEARCH,
        "cta.annealing.internal_cells._anneal": _STATE,
        "nominal.aggregation.heuristics._clique": "members that the module makes as int64",
        "nominal.frequency_search.greedy._restore_totals": _STATE,
    },
}
#: Kernels with other values for unsigned integers because a difference wraps; their callers pass int64.
UNSIGNED_WRAPS = {"nominal.aggregation.heuristics._anneal", "nominal.frequency_search.local_search.anneal"}


@pytest.fixture(scope="module")
def recording():
    """Return the arguments of every kernel that Python calls, while all calls run."""
    with recorded() as found:
        for call in CALLS.values():
            call()
    return found


@pytest.fixture(scope="module")
def reference(recording):
    """Return by kernel the result of each recorded call on plain arrays, and its arguments after the call."""
    found = {
        name: [outcome(name, kernel, copied(each)) for each in recording.arguments[name]]
        for name, kernel in called()
    }
    assert [
        name for name, outcomes in found.items() if any(isinstance(each, type) for each in outcomes)
    ] == []
    return found


def called():
    """Return by name the kernels that Python calls."""
    entries = called_from_python()
    return [(name, kernel) for name, kernel in all_kernels().items() if name in entries]


def test_every_kernel_is_recorded_or_called_by_a_recorded_kernel(recording):
    kernels = all_kernels()
    reached = {each for name in recording.entries for each in reachable_from(kernels[name])}
    assert called_from_python() - set(recording.entries) == set(), "add a call of them to `calls.py`"
    assert set(kernels) - reached == set(), "no function calls them: remove them, or add a call"


def test_every_compiled_function_is_a_kernel():
    """Kernels check the layout of arrays; a function compiled in another way would not."""
    jits = {"jit", "njit", "vectorize", "guvectorize", "cfunc", "stencil", "generated_jit"}
    root = Path(sdc.__path__[0])
    found = [
        f"{path.relative_to(root)}:{node.lineno}"
        for path in sorted(root.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Attribute) and node.attr in jits)
        or (
            (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("numba"))
            and any(alias.name in jits for alias in node.names)
        )
    ]
    assert found == []
    assert [name for name, kernel in all_kernels().items() if not isinstance(kernel, Kernel)] == []


def test_no_kernel_has_a_default_argument():
    """Numba treats a default as a separate type, for which it would compile everything again."""
    assert [name for name, kernel in all_kernels().items() if kernel.py_func.__defaults__] == []


@pytest.mark.parametrize("layout", LAYOUTS)
def test_kernel_returns_the_same_bits_for_arrays_in_other_memory(recording, reference, layout):
    wrong = {}
    for name, kernel in called():
        for arguments, expected in zip(recording.arguments[name], reference[name], strict=True):
            if layout == "other-bytes" and in_tuple(arguments):
                continue  # numba ignores the byte order of arrays in tuples
            found = outcome(name, kernel, varied(arguments, LAYOUTS[layout]))
            writes = content(arrays_of(expected[1])) != content(arrays_of(arguments))
            if content(found) != content(
                UnsupportedArguments if layout == "read-only" and writes else expected
            ):
                wrong[name] = found if isinstance(found, type) else "other bits"
    assert wrong == {}


def test_kernels_that_python_calls_are_compiled_only_for_plain_arrays(recording, reference):
    """The compiled signatures must not depend on the memory order of the first caller's arrays."""
    inner = {each for name, kernel in all_kernels().items() for each in set(reachable_from(kernel)) - {name}}
    other = {
        name: str(signature)
        for name, kernel in called()
        if name not in inner
        for signature in kernel.signatures
        for kind in signature
        if isinstance(kind, numba.types.Array) and (kind.layout != "C" or not kind.mutable)
    }
    assert other == {}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["int32", "uint8"])
def test_kernel_returns_the_same_values_for_integers_of_another_width(recording, reference, kind):
    wrong = {}
    for name, kernel in called():
        for arguments, expected in zip(recording.arguments[name], reference[name], strict=True):
            found = outcome(name, kernel, narrowed(arguments, expected[1], kind))
            if isinstance(found, type) or content(widened(found)) != content(widened(expected)):
                wrong[name] = found if isinstance(found, type) else "other values"
    wraps = UNSIGNED_WRAPS if kind == "uint8" else set()
    expected = dict.fromkeys(WIDTHS_REFUSED[kind], UnsupportedArguments)
    assert wrong == expected | dict.fromkeys(wraps, "other values")
