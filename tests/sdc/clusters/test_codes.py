"""Tests of category codes: close numbers and spellings of a text have equal codes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from microguard.sdc.clusters.codes import close_codes, spelled_codes

SHARE = 0.01


def are_close(one, other, apart):
    return abs(one - other) < apart and abs(one - other) <= SHARE * max(abs(one), abs(other))


@pytest.mark.parametrize("seed", range(8))
def test_close_codes_of_close_numbers_are_equal_in_one_of_two_columns(seed):
    random = np.random.default_rng(seed)
    spread = [random.normal(0, 10, 300), random.lognormal(5, 2, 300) * random.choice([-1, 1], 300)][seed % 2]
    values = np.round(np.concatenate([spread, spread[:150] * random.uniform(0.985, 1.015, 150)]), 3)
    apart = SHARE * np.ptp(values)
    codes = close_codes(values, SHARE, apart)
    for i in range(len(values)):
        for j in range(i):
            differ = codes[i] != codes[j]
            if are_close(values[i], values[j], apart):
                assert not differ.all()
            if abs(values[i] - values[j]) > 4 * apart:
                assert differ.all()


@pytest.mark.parametrize("seed", range(4))
def test_close_codes_that_differ_in_both_columns_prove_that_numbers_are_not_close(seed):
    random = np.random.default_rng(seed)
    values = np.round(random.lognormal(3, 0.05, 400), 2)
    apart = SHARE * np.ptp(values)
    codes = close_codes(values, SHARE, apart)
    for _ in range(2000):
        chosen = random.choice(400, 3, replace=False)
        if (np.array([len(np.unique(column)) for column in codes[chosen].T]) > 1).all():
            assert not are_close(values[chosen].min(), values[chosen].max(), apart)


def test_close_codes_separate_zero_missing_values_and_signs():
    codes = close_codes(np.array([0.0, np.nan, 0.001, -0.001, 1.0, 1.005, np.nan]), SHARE, 0.02)
    assert (codes[1] == codes[6]).all()
    apart = codes[[0, 1, 2, 3, 4]]
    assert len(np.unique(apart[:, 0])) == len(np.unique(apart[:, 1])) == 5
    assert (codes[4] == codes[5]).any()


def test_spelled_codes_merge_spellings_and_mark_missing_values():
    alike = ["HIV", "hiv", " HIV", "Hiv\u00a0", "\uff28\uff29\uff36", "H\u200bIV"]
    others = ["Stra\u00dfe 1", "STRASSE  1", "caf\u00e9", "cafe\u0301", "HIV 2", None, None]
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())):
        column = pa.chunked_array([pa.array(alike, pa.string()), pa.array(others, pa.string())]).cast(kind)
        codes = spelled_codes(column)
        assert len(set(codes[:6])) == 1
        assert codes[6] == codes[7]
        assert codes[8] == codes[9]
        assert len(set(codes[:11])) == 4
        assert set(codes[11:]) == {-1}
    assert spelled_codes(pa.chunked_array([["", " ", "\u200b", "a"]])).tolist()[:3] == [-1, -1, -1]
    assert spelled_codes(pa.chunked_array([pa.array([], pa.string())])).tolist() == []
    assert spelled_codes(pa.chunked_array([[3, None, 3, 5]])).tolist() == [0, -1, 0, 1]
    assert spelled_codes(pa.chunked_array([[3.0, float("nan"), None, 3.0]])).tolist() == [0, -1, -1, 0]
