"""Tests of kernels that other kernels call: equal to their Python function, in any memory layout."""

from __future__ import annotations

import numpy as np
import pytest
from microguard.sdc.errors import UnsupportedArguments

from tests.contract.kernels.calls import INSIDE
from tests.contract.kernels.discovery import all_kernels
from tests.contract.kernels.outcomes import outcome
from tests.contract.kernels.recording import copied, recorded, uncompiled
from tests.contract.kernels.variations import LAYOUTS, arrays_of, content, in_tuple, varied

#: Kernels whose calls are not recorded, and the reason. Their callers are recorded, and run compiled.
NOT_RECORDED = {
    "microaggregation.exact_pricing.cut_penalties._shift": "a cut that two records of a cluster pay for",
    "microaggregation.exact_pricing.cut_penalties.correct": "a cut that two records of a cluster pay for",
    "microaggregation.global_bound.candidates._filled": "a root with fewer candidates than it needs",
    "microaggregation.local_search.diverse_changes._stays": "a swap between clusters with one rare value",
    "nominal.partitioning.local_search._join_anything": "a record that no cluster has room for",
    "nominal.partitioning.search_state.to_stock": "a safe combination that a move takes records from",
}


@pytest.fixture(scope="module")
def recording():
    """Return the arguments of every kernel, also of those that kernels call."""
    with recorded(inside=True) as found:
        for call in INSIDE.values():
            call()
    return found


def as_close(one, other):
    """Return whether results are equal except for the rounding of sums, whose order numpy chooses."""
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(as_close, one, other))
    if isinstance(one, np.ndarray | float | int | np.generic):
        return bool(np.allclose(one, other, rtol=1e-9, atol=1e-12, equal_nan=True))
    return content(one) == content(other)


@pytest.mark.long
def test_every_kernel_is_recorded(recording):
    assert set(all_kernels()) - set(recording.arguments) <= set(NOT_RECORDED), "add a call to `calls.py`"


@pytest.mark.long
def test_every_kernel_returns_the_result_of_its_python_function(recording):
    wrong = {}
    for name, kernel in all_kernels().items():
        for arguments in recording.arguments.get(name, ()):
            found = outcome(name, kernel, copied(arguments))
            with uncompiled():
                expected = outcome(name, kernel, copied(arguments))
            if not as_close(found, expected):
                wrong[name] = (found, expected) if isinstance(found, type) else "other values"
    assert wrong == {}


@pytest.mark.long
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_kernel_gives_the_same_bits_for_arrays_in_other_memory(recording, layout):
    wrong = {}
    for name, kernel in all_kernels().items():
        for arguments in recording.arguments.get(name, ()):
            if layout == "other-bytes" and in_tuple(arguments):
                continue
            expected = outcome(name, kernel, copied(arguments))
            found = outcome(name, kernel, varied(arguments, LAYOUTS[layout]))
            writes = not isinstance(expected, type) and content(arrays_of(expected[1])) != content(
                arrays_of(arguments)
            )
            if content(found) != content(
                UnsupportedArguments if layout == "read-only" and writes else expected
            ):
                wrong[name] = found if isinstance(found, type) else "other bits"
    assert wrong == {}
