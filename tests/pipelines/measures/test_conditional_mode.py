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


@pytest.mark.parametrize("rare", [1, 3])
@pytest.mark.parametrize("nominal", [False, True])
def test_value_of_a_few_records_does_not_follow_from_frequent_values_that_lack_it(rare, nominal):
    """A column that nearly all records have in common: the frequent values of every other column go with it,
    and so do those of columns together.
    """
    random = np.random.default_rng(0)
    skewed = {name: random.choice(6, 600, p=[0.8, 0.1, 0.04, 0.03, 0.02, 0.01]) for name in "abc"}
    skewed["d"] = random.choice(300, 600)
    joint = skewed["a"] * 36 + skewed["b"] * 6 + skewed["c"]
    sizes = np.bincount(joint)[joint] * 1000 + np.bincount(skewed["d"])[skewed["d"]]
    flag = np.zeros(600, int)
    flag[np.argsort(sizes, kind="stable")[:rare]] = 1
    pairs = [Dependency(name, "flag") for name in skewed]
    assert not dependencies_among(pairs, skewed | {"flag": flag}, ["flag"] if nominal else [], None)


def test_frequent_value_with_a_rare_value_of_the_variable_is_found():
    """Control: who is in area 7 belongs to the few."""
    area = np.repeat(np.arange(20), 30)
    pairs = [Dependency("area", "flag")]
    assert dependencies_among(pairs, {"area": area, "flag": (area == 7).astype(int)}, [], None) == pairs
