"""Tests of order statistics by counting bits: equal to those of sorted numbers at every limit of stored
numbers.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.pipelines.description import order_statistics as selection
from microguard.pipelines.description.order_statistics import Bracket, order_statistics

NUMBERS = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda number: number + 0.0),
)


@given(st.lists(st.lists(NUMBERS), min_size=1).filter(any), st.sampled_from([0, 2, 500_000]))
def test_order_statistics_equal_the_sorted_numbers(parts, collected):
    ordered = sorted(number for part in parts for number in part)
    places = sorted({0, len(ordered) // 4, len(ordered) // 2, len(ordered) - 1})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "COLLECTED", collected)
        found = order_statistics(lambda: (np.array(part, float) for part in parts), places)
    assert found == tuple(ordered[place] for place in places)


@given(st.lists(st.lists(NUMBERS), min_size=1).filter(any), st.integers(1, 5), st.sampled_from([2, 500_000]))
def test_bracket_finds_the_number_at_its_rank_or_nothing(parts, step, collected):
    numbers = [number for part in parts for number in part]
    sample = np.sort(np.array(numbers[::step]))
    for place, expected in enumerate(sorted(numbers)):
        bracket = Bracket(sample, place, len(numbers))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(selection, "COLLECTED", collected)
            for part in parts:
                bracket.add(np.array(part, float))
        assert bracket.found() in (expected, None)


def test_bracket_of_a_large_file_finds_the_order_statistic_and_stores_few_numbers():
    numbers = np.round(np.random.default_rng(2).lognormal(7, 1, 400_000), 1)
    for place in (100_000, 200_000, 300_000):
        bracket = Bracket(np.sort(numbers[::20]), place, len(numbers))
        bracket.add(numbers)
        assert bracket.found() == np.sort(numbers)[place]
        assert bracket._held < 0.05 * len(numbers)


def test_pass_stores_at_most_its_part_and_the_collected_numbers(monkeypatch):
    monkeypatch.setattr(selection, "COLLECTED", 1_000)
    largest = 0

    def parts():
        nonlocal largest
        random = np.random.default_rng(1)
        for _ in range(20):
            part = np.round(random.lognormal(7, 1, 5_000), 2)
            yield part

    real = np.concatenate

    def concatenate(arrays, *args, **more):
        nonlocal largest
        joined = real(arrays, *args, **more)
        largest = max(largest, len(joined))
        return joined

    monkeypatch.setattr(selection.np, "concatenate", concatenate)
    (median,) = order_statistics(parts, [50_000])
    assert largest <= 1_000
    assert median == np.sort(real(list(parts())))[50_000]
