"""A bracket that is widened until it contains the wanted rank gives the number of the sorted order."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from microguard.pipelines.description.order_statistics import Bracket

NUMBERS = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda number: number + 0.0),
)


def found_in_parts(bracket, parts):
    """Return the number of a bracket and how often it was widened."""
    for times in range(64):
        for part in parts:
            bracket.add(np.array(part, float))
        if bracket.found() is not None:
            return bracket.found(), times
        bracket.widen()
    raise AssertionError("a bracket has to contain every number at last")


@given(st.lists(st.lists(NUMBERS), min_size=1).filter(any), st.integers(1, 5))
def test_a_bracket_finds_the_number_of_each_rank_whatever_the_sample(parts, step):
    numbers = [number for part in parts for number in part]
    sample = np.sort(np.array(numbers[::step]))
    for place, expected in enumerate(sorted(numbers)):
        assert found_in_parts(Bracket(sample, place, len(numbers)), parts)[0] == expected


def test_a_bracket_of_a_sample_from_one_end_is_widened_until_it_contains_the_rank():
    numbers = np.arange(10_000.0)
    median, times = found_in_parts(Bracket(numbers[:1_000], 5_000, len(numbers)), [numbers[::-1]])
    assert median == 5_000
    assert times > 0


def test_bracket_of_a_large_file_finds_the_order_statistic_and_stores_few_numbers():
    numbers = np.round(np.random.default_rng(2).lognormal(7, 1, 400_000), 1)
    for place in (100_000, 200_000, 300_000):
        bracket = Bracket(np.sort(numbers[::20]), place, len(numbers))
        bracket.add(numbers)
        assert bracket.found() == np.sort(numbers)[place]
        assert sum(map(len, bracket._inside)) < 0.05 * len(numbers)
