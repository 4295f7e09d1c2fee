"""Tests of local suppression: k-anonymous with each meaning of missing, at the cost of brute force."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microguard.sdc.errors import InvalidParameter
from microguard.sdc.local_suppression import patterns, suppress
from microguard.sdc.local_suppression.greedy import greedy
from microguard.sdc.local_suppression.patterns import Keys
from microguard.sdc.local_suppression.suppress import lower_bound

MEANINGS = ("category", "any_value")


def keys_of(records):
    codes, counts = np.unique(np.array(records), axis=0, return_counts=True)
    return codes, counts


def published(codes, result):
    """Return the published records, one row each."""
    rows = codes[result.key].copy()
    rows[(result.pattern[:, None] >> np.arange(codes.shape[1]) & 1) == 1] = -1
    return np.repeat(rows, result.count, axis=0)


def fewest(rows, missing):
    """Return the least count of a record, by definition."""
    if missing == "category":
        return min(int((rows == row).all(axis=1).sum()) for row in rows)
    return min(int(((rows == row) | (row < 0)).all(axis=1).sum()) for row in rows)


def by_brute_force(records, k, weights, missing):
    """Return the least cost over all partitions into classes, or over all patterns of all records."""
    rows = np.array(records)
    return (
        least_by_classes(rows, k, weights) if missing == "category" else least_by_patterns(rows, k, weights)
    )


def least_by_classes(rows, k, weights):
    """Suppress, in a class, all variables in which its records differ or that one of them lacks."""
    if len(rows) < k:
        return np.inf if len(rows) else 0.0
    least = np.inf
    for size in range(k, len(rows) + 1):
        for others in combinations(range(1, len(rows)), size - 1):
            one = rows[[0, *others]]
            hidden = (one != one[0]).any(axis=0) | (one < 0).any(axis=0)
            cost = float(((one >= 0) & hidden).sum(axis=0) @ weights)
            rest = np.delete(rows, [0, *others], axis=0)
            least = min(least, cost + least_by_classes(rest, k, weights))
    return least


def least_by_patterns(rows, k, weights):
    """Suppress any set of values per record so that k records match each visible combination."""
    masks = np.array(list(product((False, True), repeat=rows.shape[1])))
    chosen = np.stack(np.meshgrid(*[np.arange(len(masks))] * len(rows)), axis=-1).reshape(-1, len(rows))
    hidden = masks[chosen] | (rows < 0)
    shows = np.zeros((*chosen.shape, len(rows)), bool)
    for one, other in product(range(len(rows)), repeat=2):
        alike = ~hidden[:, other] & (rows[one] == rows[other])
        shows[:, one, other] = (hidden[:, one] | alike).all(axis=1)
    cost = ((hidden & (rows >= 0)).sum(axis=1) * weights).sum(axis=1)
    return float(cost[(shows.sum(axis=2) >= k).all(axis=1)].min())


def test_suppress_removes_only_the_variable_in_which_two_records_differ():
    codes, counts = keys_of([[0, 0, 1], [0, 1, 1]])
    result = suppress(codes, counts, 2)
    assert published(codes, result).tolist() == [[0, -1, 1], [0, -1, 1]]
    assert (result.cost, result.lower_bound, result.optimal) == (2.0, 2.0, True)


def test_record_at_risk_needs_donors_if_a_missing_value_is_a_category():
    """There are five records (0, 0) and one (0, 1): two donors join the latter, or all its values are
    suppressed.
    """
    codes, counts = keys_of([[0, 0]] * 5 + [[0, 1]])
    strict, lax = (suppress(codes, counts, 3, missing=missing) for missing in MEANINGS)
    assert (strict.cost, lax.cost) == (3.0, 1.0)
    assert sorted(map(tuple, published(codes, strict))) == [(0, -1)] * 3 + [(0, 0)] * 3
    assert sorted(map(tuple, published(codes, lax))) == [(0, -1)] + [(0, 0)] * 5


def test_suppress_removes_values_of_a_variable_with_small_weight_first():
    codes, counts = keys_of([[0, 0], [0, 1], [1, 1], [1, 0]])
    for weights, hidden in (([1.0, 5.0], 0), ([5.0, 1.0], 1)):
        rows = published(codes, suppress(codes, counts, 2, weights=np.array(weights)))
        assert (rows[:, hidden] == -1).all()
        assert (rows[:, 1 - hidden] >= 0).all()


def small_files(values):
    """Return up to five variables, and so few records that all patterns of all records can be tried."""
    return st.integers(2, 5).flatmap(
        lambda m: st.tuples(
            st.lists(st.tuples(*[values] * m), min_size=2, max_size={2: 6, 3: 5, 4: 4, 5: 3}[m]),
            st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=m, max_size=m),
        )
    )


SMALL = small_files(st.integers(-1, 1))


@settings(max_examples=60, deadline=None)
@given(SMALL, st.sampled_from([2, 3]), st.sampled_from(MEANINGS))
def test_integer_program_has_the_cost_of_brute_force(small, k, missing):
    records, weights = small
    if len(records) < k:
        return
    codes, counts = keys_of(records)
    result = suppress(codes, counts, k, weights=np.array(weights), missing=missing, effort="exact")
    assert result.optimal
    assert result.cost == pytest.approx(by_brute_force(records, k, np.array(weights), missing))
    assert fewest(published(codes, result), missing) >= k
    assert result.lower_bound == pytest.approx(result.cost)


@pytest.mark.parametrize("most", [0, 8, patterns.MOST_PATTERNS])
def test_bound_is_valid_with_missing_values_and_untried_patterns(most, monkeypatch):
    monkeypatch.setattr(patterns, "MOST_PATTERNS", most)

    @settings(max_examples=60, deadline=None)
    @given(SMALL, st.sampled_from([2, 3]), st.sampled_from(MEANINGS))
    def holds(small, k, missing):
        records, weights = small
        if len(records) < k:
            return
        codes, counts = keys_of(records)
        result = suppress(codes, counts, k, weights=np.array(weights), missing=missing)
        assert fewest(published(codes, result), missing) >= k
        least = by_brute_force(records, k, np.array(weights), missing)
        assert result.lower_bound <= least + 1e-9
        assert result.cost >= least - 1e-9
        assert not result.optimal or result.cost == pytest.approx(least)

    holds()


def test_values_that_are_already_missing_have_no_cost_in_untried_patterns():
    """Two records lack seven of 14 variables and differ in three: three values each are suppressed."""
    one = [-1] * 7 + [0] * 7
    codes, counts = keys_of([one, [*one[:11], 1, 1, 1]])
    keys = Keys(codes, counts, np.ones(14))
    assert keys.smallest_untried == 6  # counting all values gives a bound of 12
    assert lower_bound(keys, 2, "category") == 0
    assert by_brute_force([*codes], 2, np.ones(14), "category") == 6


def random_records(seed, n=300):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, [2, 3, 4, 6, 8], (n, 5))
    rows[rng.random((n, 5)) < 0.03] = -1
    return rows


@pytest.mark.parametrize("missing", MEANINGS)
@pytest.mark.parametrize("k", [2, 4])
def test_cost_of_blocks_is_between_the_bound_and_the_cost_of_greedy(missing, k):
    codes, counts = keys_of(random_records(1))
    weights = np.array([1.0, 2.0, 1.0, 1.0, 1.5])
    fast, standard = (
        suppress(codes, counts, k, weights=weights, missing=missing, effort=effort)
        for effort in ("fast", "standard")
    )
    for result in (fast, standard):
        rows = published(codes, result)
        assert fewest(rows, missing) >= k
        assert len(rows) == counts.sum()
        assert result.cost == pytest.approx(((rows < 0).sum(axis=0) - (codes < 0).T @ counts) @ weights)
    assert standard.lower_bound == fast.lower_bound <= standard.cost < fast.cost
    assert standard.programs >= 3


@lru_cache
def exact(missing, seed):
    codes, counts = keys_of(random_records(seed, 60)[:, 1:4])
    return suppress(codes, counts, 3, missing=missing, effort="exact")


@pytest.mark.parametrize("missing", MEANINGS)
@pytest.mark.parametrize("seed", range(4))
def test_bound_of_greedy_is_at_most_the_proved_optimum(missing, seed):
    codes, counts = keys_of(random_records(seed, 60)[:, 1:4])
    result = exact(missing, seed)
    keys = Keys(codes, counts, np.ones(3))
    assert result.optimal
    assert lower_bound(keys, 3, missing) <= result.cost <= greedy(keys, 3, missing).cost(keys)


def test_suppress_removes_whole_combinations_if_no_donor_is_available():
    codes, counts = keys_of([[0, 0]] * 3 + [[1, 1]])
    for effort in ("fast", "exact"):
        result = suppress(codes, counts, 3, effort=effort)
        assert result.cost == 8.0


def test_suppress_protects_more_variables_than_patterns_can_be_tried_for():
    rows = np.random.default_rng(0).integers(0, 2, (20, 14))
    codes, counts = keys_of(rows)
    result = suppress(codes, counts, 3, effort="fast")
    assert fewest(published(codes, result), "category") >= 3
    assert result.lower_bound <= result.cost


def test_suppress_refuses_invalid_arguments():
    codes, counts = keys_of([[0, 0], [0, 1]])
    with pytest.raises(InvalidParameter, match="at least k = 3 records"):
        suppress(codes, counts, 3)
    with pytest.raises(InvalidParameter, match="a number above 0"):
        suppress(codes, counts, 2, weights=np.zeros(2))
    with pytest.raises(InvalidParameter, match="category or any_value"):
        suppress(codes, counts, 2, missing="none")
