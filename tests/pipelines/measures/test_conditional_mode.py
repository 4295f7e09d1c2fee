"""Tests of columns that determine a category together."""

from __future__ import annotations

import numpy as np
import pytest
from microguard.pipelines.measures.attribute_disclosure.conditional_mode import (
    Dependency,
    dependencies_among,
)


def codes(seed, n=900):
    random = np.random.default_rng(seed)
    values = {name: random.integers(0, m, n) for name, m in zip("abcxyz", (3, 4, 4, 3, 5, 2), strict=True)}
    a, b, c = values["a"], values["b"], values["c"]
    return values | {
        "code": 16 * a + 4 * b + c,
        "mostly": np.where(random.random(n) < 0.15, random.integers(0, 4, n), (a + b + c) % 4),
    }


@pytest.mark.parametrize("seed", range(5))
def test_three_columns_that_determine_a_category_together_are_found(seed):
    """Example: the digits of a code."""
    pairs = [Dependency(name, "code") for name in "abcxyz"]
    found = dependencies_among(pairs, codes(seed), ["code"], None)
    assert [frozenset([each.column, *each.beside]) for each in found] == [frozenset("abc")]


@pytest.mark.parametrize("seed", range(5))
def test_columns_that_determine_a_category_for_too_few_records_are_not_found(seed):
    for protected, names in (("mostly", "abcxyz"), ("code", "abxyz")):
        pairs = [Dependency(name, protected) for name in names]
        assert not dependencies_among(pairs, codes(seed), [protected], None)
