"""Record linkage and interval disclosure against the definition."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from microguard.sdc.errors import NoVariation, ShapeMismatch
from microguard.sdc.risk.linkage import Points, inside_interval, linked_share, nearer_and_tied

NUMBERS = st.integers(-4, 4).map(float)


@given(arrays(np.float64, (7, 2), elements=NUMBERS), arrays(np.float64, (7, 2), elements=NUMBERS))
def test_an_original_counts_by_the_ties_among_its_nearest_protected_records(original, protected):
    spread = original.std(axis=0)
    assume(np.all(spread > 0))
    expected = 0.0
    for i in range(7):
        distances = np.sqrt((((original[i] - protected) / spread) ** 2).sum(axis=1))
        nearest = distances <= distances.min() + 1e-9
        expected += nearest[i] / nearest.sum() / 7
    assert linked_share(original, protected) == pytest.approx(expected)


def test_unchanged_records_are_all_linked_and_classes_of_three_by_a_third():
    original = np.arange(9.0)[:, None] ** 2
    assert linked_share(original, original) == 1.0
    means = original.reshape(3, 3).mean(axis=1).repeat(3)[:, None]
    assert linked_share(original, means, np.array([1, 4, 7])) == pytest.approx(1 / 3)


def test_values_inside_the_interval_are_counted_by_variable_and_together():
    original = np.array([[0.0, 0.0], [1.0, 10.0], [2.0, 20.0]])
    protected = original + np.array([[0.4, 0.0], [0.0, 11.0], [0.6, 0.0]])
    assert inside_interval(original, protected, 0.5) == pytest.approx([2 / 3, 2 / 3, 1 / 3])


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(ShapeMismatch):
        inside_interval(np.zeros((2, 1)), np.zeros((3, 1)), 0.1)
    with pytest.raises(NoVariation):
        linked_share(np.ones((3, 1)), np.ones((3, 1)))


CODES = st.integers(0, 2)


@given(
    arrays(np.float64, (2, 8, 2), elements=NUMBERS),
    arrays(np.int64, (2, 8, 3), elements=CODES),
    arrays(np.int64, (8,), elements=st.integers(-1, 2)),
    st.integers(-1, 9),
)
def test_what_is_nearer_or_tied_is_what_all_pairs_say_and_adds_up_over_parts(numbers, codes, regions, moved):
    original, protected = (Points(numbers[i], codes[i], regions.copy()) for i in (0, 1))
    protected.regions[0] = moved  # out of reach of some, or where no original is
    own_distance = original.distances(protected)
    nearer, tied = nearer_and_tied(original, own_distance, protected)
    parts = [
        nearer_and_tied(original, own_distance, protected[part]) for part in (np.arange(3), np.arange(3, 8))
    ]
    assert np.array_equal(nearer, parts[0][0] | parts[1][0])
    assert np.array_equal(tied[~nearer], (parts[0][1] + parts[1][1])[~nearer])
    for i in range(8):
        squares = ((numbers[0, i] - numbers[1]) ** 2).sum(axis=1) + (codes[0, i] != codes[1]).sum(axis=1)
        there = (protected.regions == regions[i]) & (regions[i] >= 0)
        distances = np.sqrt(squares[there])
        assert nearer[i] == (distances < own_distance[i] - 1e-9).any()
        if not nearer[i]:
            assert tied[i] == (np.abs(distances - own_distance[i]) < 1e-9).sum()
