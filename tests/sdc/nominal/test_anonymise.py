"""Tests of anonymise: protected frames and correct reports for every algorithm."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.sdc.algorithms.nominal import FREQUENCY
from microguard.sdc.errors import (
    ImpossibleProtection,
    InvalidParameter,
    ShapeMismatch,
    TooFewRecords,
    UnknownVariable,
    UnsupportedCombination,
)
from microguard.sdc.nominal import SearchParameters, anonymise

from tests.sdc.nominal.instances import assert_protected, nominal_frames, rows


def chi2_by_crosstabs(original: pd.DataFrame, protected: pd.DataFrame, dimension: int) -> float:
    """Return chi-square over all tables up to a dimension, counted by pandas."""
    total = 0.0
    for d in range(1, dimension + 1):
        for names in combinations(original.columns, d):
            before = original.groupby(list(names), dropna=False).size()
            after = protected.groupby(list(names), dropna=False).size().reindex(before.index, fill_value=0)
            total += float(((after - before) ** 2 / before).sum())
    return total


def town(records: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], records),
            "status": pd.Categorical(
                rng.choice(["single", "married", "widowed"], records, p=[0.5, 0.4, 0.1])
            ),
            "work": pd.array(np.minimum(rng.geometric(0.4, records), 6), dtype="Int16"),
        },
        index=rng.permutation(records) + 10,
    )


@pytest.mark.parametrize("algorithm", FREQUENCY)
def test_anonymise_protects_and_reports_chi_square_for_every_algorithm(algorithm):
    frame = town(60, 1)
    result = anonymise(frame, 3, 2, effort="fast", algorithm=algorithm)
    assert_protected(frame, result.protected, 3)
    assert result.algorithm == algorithm
    assert result.chi2 == pytest.approx(chi2_by_crosstabs(frame, result.protected, 2))
    if result.lower_bound is not None:
        assert result.lower_bound <= result.chi2 + 1e-6


@given(nominal_frames(), st.sampled_from([2, 3, 5, 10]))
def test_anonymise_protects_any_frame(frame, k):
    if len(frame) < k:
        with pytest.raises(TooFewRecords):
            anonymise(frame, k, effort="fast")
        return
    result = anonymise(frame, k, 2, effort="fast")
    assert_protected(frame, result.protected, k)
    if min(rows(frame).values()) >= k:
        pd.testing.assert_frame_equal(result.protected, frame)


def test_anonymise_exact_proves_a_small_file_and_local_search_reaches_it():
    frame = town(24, 2)
    proved = anonymise(frame, 3, 2, effort="exact")
    assert proved.optimal
    assert proved.algorithm == "chi-exact"
    only_chi2 = SearchParameters(deviation_weight=0, absolute_weight={})
    anonymised = anonymise(frame, 3, 2, parameters=only_chi2)
    assert proved.chi2 - 1e-6 <= anonymised.chi2 <= 1.005 * proved.chi2


def test_anonymise_does_not_depend_on_record_order():
    frame = town(400, 3)
    shuffled = frame.sample(frac=1, random_state=7)
    first = anonymise(frame, 3, 2, effort="fast").protected
    assert rows(first) == rows(anonymise(shuffled, 3, 2, effort="fast").protected)


def test_anonymise_empties_structural_zeros_by_list_and_by_rule():
    frame = town(200, 4)
    declared = [{"sex": "f", "status": "widowed"}]
    by_list = anonymise(frame, 3, 2, effort="fast", structural_zeros=declared).protected
    by_rule = anonymise(
        frame,
        3,
        2,
        effort="fast",
        structural_zeros=lambda distinct: (distinct["sex"] == "f") & (distinct["status"] == "widowed"),
    ).protected
    for protected in (by_list, by_rule):
        assert not ((protected["sex"] == "f") & (protected["status"] == "widowed")).any()
        assert_protected(frame, protected, 3)


def test_anonymise_respects_and_reports_maximum_errors():
    frame = town(500, 5)
    result = anonymise(frame, 5, 3, effort="fast", max_absolute_error={1: 2, 2: 4})
    assert result.errors[1] <= 2
    assert result.errors[2] <= 4


def test_anonymise_refuses_invalid_input():
    frame = town(30, 6)
    with pytest.raises(InvalidParameter):
        anonymise(frame, 3, algorithm="own-xyz")
    with pytest.raises(InvalidParameter):
        anonymise(frame, 3, effort="slow")
    with pytest.raises(InvalidParameter):
        anonymise(frame, 3, time_limit=0)
    with pytest.raises(UnsupportedCombination):
        anonymise(frame, 3, algorithm="chi-exact", max_absolute_error={1: 3})
    with pytest.raises(UnsupportedCombination):
        anonymise(frame, 3, algorithm="random", parameters=SearchParameters())
    with pytest.raises(UnknownVariable):
        anonymise(frame, 3, structural_zeros=[{"age": 1}])
    with pytest.raises(InvalidParameter):
        anonymise(frame, 3, structural_zeros=[{}])
    with pytest.raises(ShapeMismatch):
        anonymise(frame, 3, structural_zeros=lambda distinct: np.ones(1))
    with pytest.raises(ImpossibleProtection):
        anonymise(frame, 3, structural_zeros=lambda distinct: distinct["sex"].notna())
    for empty in (pd.DataFrame({"x": []}), frame.iloc[:2]):
        with pytest.raises(TooFewRecords):
            anonymise(empty, 3)
