"""Tests of frequency vectors: counts, canonical order, and decoding to a frame."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.sdc.errors import InvalidParameter, TooFewRecords, UnknownVariable
from microguard.sdc.nominal.frequency import FrequencyVector, check_k, collapse, from_frame


def test_from_frame_counts_combinations():
    frame = pd.DataFrame({"sex": ["m", "f", "m"], "place": ["b", "a", "b"]})
    frequencies = from_frame(frame).frequencies
    assert frequencies.codes.tolist() == [[0, 0], [1, 1]]
    assert frequencies.counts.tolist() == [1, 2]
    assert frequencies.at_risk(3).tolist() == [True, True]


def test_decode_restores_index_columns_dtypes_and_missing_values():
    frame = pd.DataFrame(
        {
            "category": pd.Categorical(["x", None, "y", "x"], categories=["z", "y", "x"], ordered=True),
            "nullable": pd.array([1, None, 2, 1], dtype="Int64"),
            "flag": [True, False, True, True],
            "mixed": ["a", 1, None, "a"],
            "date": pd.to_datetime(["2020", "2021", None, "2020"], format="%Y"),
            7: [0.5, np.nan, 0.5, 0.5],
        },
        index=[3, 3, 1, 0],
    )
    coded = from_frame(frame)
    pd.testing.assert_frame_equal(coded.decode_combinations(coded.combination), frame)


def test_from_frame_treats_missing_values_as_a_category():
    coded = from_frame(pd.DataFrame({"x": ["a", None, float("nan"), "a"]}))
    assert coded.frequencies.domain_sizes.tolist() == [2]
    assert coded.frequencies.counts.tolist() == [2, 2]


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 2)), st.booleans()),
        min_size=1,
        max_size=25,
    ),
    st.randoms(use_true_random=False),
)
def test_from_frame_agrees_with_a_counter_in_any_record_order(records, random):
    frame = pd.DataFrame(records, columns=["a", "b", "c"])
    frequencies = from_frame(frame).frequencies
    plain = Counter(tuple(None if pd.isna(v) else v for v in row) for row in frame.itertuples(index=False))
    assert sorted(frequencies.counts.tolist()) == sorted(plain.values())
    shuffled = list(records)
    random.shuffle(shuffled)
    again = from_frame(pd.DataFrame(shuffled, columns=["a", "b", "c"])).frequencies
    assert np.array_equal(again.codes, frequencies.codes)
    assert np.array_equal(again.counts, frequencies.counts)


def test_collapse_of_forty_wide_variables_does_not_overflow():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 10_000, (200, 40))
    codes[100:] = codes[:100]
    frequencies, combination = collapse(codes, np.full(40, 10_000), tuple(range(40)))
    assert (frequencies.counts == 2).all()
    assert np.array_equal(frequencies.codes[combination], codes)


def test_collapse_separates_regions_and_adds_partial_counts():
    codes = np.array([[1], [1], [0], [1]])
    frequencies, _ = collapse(
        codes, np.array([2]), ("x",), regions=np.array([0, 1, 1, 1]), counts=np.array([4, 2, 1, 3])
    )
    assert frequencies.regions.tolist() == [0, 1, 1]
    assert frequencies.counts.tolist() == [4, 1, 5]


def test_frequency_vector_refuses_unsorted_combinations():
    with pytest.raises(InvalidParameter):
        FrequencyVector(np.array([[1], [0]], np.int32), np.array([1, 1]), np.array([2]), ("x",))


def test_from_frame_and_check_k_refuse_invalid_arguments():
    with pytest.raises(TooFewRecords):
        from_frame(pd.DataFrame({"x": []}))
    with pytest.raises(InvalidParameter):
        from_frame(pd.DataFrame(index=[1, 2]))
    with pytest.raises(UnknownVariable):
        from_frame(pd.DataFrame([[1, 2]], columns=["x", "x"]))
    with pytest.raises(InvalidParameter):
        from_frame(pd.DataFrame({"x": [[1], [2]]}))
    for k in (1, 0, True, 2.5):
        with pytest.raises(InvalidParameter):
            check_k(10, k)
    with pytest.raises(TooFewRecords):
        check_k(2, 3)
