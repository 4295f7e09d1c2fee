"""Tests of dates and times of any year as text."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.pipelines.publication.record_files.moments import is_far, moments_of, text_of_moments

NEVER = 2**63 - 1
KINDS = [pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC")]


def test_text_has_a_sign_before_year_0_and_more_digits_after_year_9999():
    days = pa.array([0, 2_932_896, 2_932_897, -719_528, -719_529, None, 2**31 - 1], pa.int32())
    assert text_of_moments(days.cast(pa.date32())).to_pylist() == [
        "1970-01-01",
        "9999-12-31",
        "10000-01-01",
        "0000-01-01",
        "-0001-12-31",
        None,
        "5881580-07-11",
    ]
    moments = pa.array([253_402_300_800_000, None], pa.int64()).cast(pa.timestamp("ms", "Europe/Paris"))
    assert text_of_moments(moments).to_pylist() == ["10000-01-01T00:00:00.000Z", None]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(numbers=st.lists(st.none() | st.integers(-NEVER, NEVER), max_size=4))
def test_every_moment_is_read_back_from_its_text(kind, numbers):
    if kind.unit == "s":  # numpy has years of 64 bits, and a text of at most some digits
        numbers = [each if each is None else each // 10**6 for each in numbers]
    moments = pa.array(numbers, pa.int64()).cast(kind)
    assert moments_of(text_of_moments(moments), kind).equals(moments)


@given(numbers=st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), max_size=4))
def test_every_day_is_read_back_from_its_text(numbers):
    days = pa.array(numbers, pa.int32()).cast(pa.date32())
    assert moments_of(text_of_moments(days), days.type).equals(days)


@given(number=st.integers(-719_528, 2_932_896))
def test_text_of_four_digits_is_the_same_in_a_batch_with_another_year(number):
    near, both = (
        pa.array(each, pa.int32()).cast(pa.date32()).cast(pa.timestamp("us"))
        for each in ([number], [number, 2_932_897])
    )
    assert (is_far(near), is_far(both)) == (False, True)
    assert text_of_moments(both)[0] == text_of_moments(near)[0]


@pytest.mark.parametrize(
    "text", ["", "NaT", "today", "2020", "2020-1-1", "10000-01-01Z", "+10000-01-01", "x"]
)
def test_other_texts_are_refused(text):
    with pytest.raises(pa.ArrowInvalid):
        moments_of(pa.array([text, None]), pa.date32())


def test_the_moment_that_numpy_does_not_have_is_not_read_back():
    least = pa.array([-NEVER - 1], pa.int64()).cast(pa.timestamp("us"))
    assert np.isnat(np.datetime64(-NEVER - 1, "us"))
    with pytest.raises(pa.ArrowInvalid):
        moments_of(text_of_moments(least), least.type)
