"""Tests of sensitivity rules: they find the cells found by hand, and protection levels remove the
sensitivity.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.sdc.cta.rules.sensitivity import (
    capacities,
    dominance,
    inverse_costs,
    minimum_contributors,
    minimum_frequency,
    p_percent,
)
from microguard.sdc.errors import InvalidParameter, NotFinite, ShapeMismatch


def test_frequencies_below_the_minimum_move_to_zero_or_to_the_minimum():
    sensitivity = minimum_frequency([0, 1, 2, 3, 9], 3)
    assert sensitivity.sensitive.tolist() == [False, True, True, False, False]
    assert sensitivity.lower.tolist() == [0, 1, 2, 0, 0]
    assert sensitivity.upper.tolist() == [0, 2, 1, 0, 0]


def test_dominance_and_p_percent_rules_of_a_cell_computed_by_hand():
    # contributions 80, 15, 5: one contributor has 80 % of 100
    largest, total = [[80.0, 15.0]], [100.0]
    assert dominance(largest, total, 1, 75).upper[0] == pytest.approx(80 / 0.75 - 100)
    assert not dominance(largest, total, 1, 85).sensitive[0]
    assert p_percent(largest, total, 10).upper[0] == pytest.approx(8 - 5)
    assert not p_percent(largest, total, 5).sensitive[0]


@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=8), st.floats(1, 90))
def test_cell_at_its_upper_level_is_no_longer_sensitive(contributions, p):
    ordered = np.sort(contributions)[::-1]
    top = np.array([[ordered[0], ordered[1] if len(ordered) > 1 else 0.0]])
    total = np.array([ordered.sum()])
    for rule in (lambda t: p_percent(top, t, p), lambda t: dominance(top, t, 2, p)):
        sensitivity = rule(total)
        if sensitivity.sensitive[0]:
            assert not rule(total + sensitivity.upper * (1 + 1e-9) + 1e-9).sensitive[0]


def test_two_rules_give_the_larger_protection_level():
    joined = minimum_contributors([1, 5], [100, 100], 3, 10) | p_percent([[100, 0], [50, 25]], [100, 100], 60)
    assert joined.sensitive.tolist() == [True, True]
    assert joined.upper.tolist() == pytest.approx([60, 5])


def test_few_cancelling_contributors_are_protected_by_their_absolute_contributions():
    found = minimum_contributors([2, 2, 2, 5], [0.1, 0, 10, 0], 3, 20, gross=[1999.9, 1000, 10, 1000])
    assert found.sensitive.tolist() == [True, True, True, False]
    assert found.upper == pytest.approx([399.98, 200, 2, 0])
    assert minimum_contributors([1], [0.0], 3, 20).sensitive.tolist() == [False], (
        "the cell has no contributor"
    )


def test_capacities_exceed_the_level_and_zero_cells_cost_as_much_as_the_most_expensive_cell():
    assert capacities([100, -50], 10, [0, 8]).tolist() == [10, 8]
    assert inverse_costs([2.0, 0.5, 0]).tolist() == [0.5, 2, 2]


@pytest.mark.parametrize(
    "call",
    [
        lambda: minimum_frequency([1], 1),
        lambda: dominance([[1.0]], [1.0], 1, 100),
        lambda: p_percent([[1.0, 0]], [1.0], 0),
        lambda: capacities([1.0], -1),
    ],
)
def test_invalid_sensitivity_rules_are_refused(call):
    with pytest.raises(InvalidParameter):
        call()


def test_missing_contributions_and_amounts_are_refused():
    with pytest.raises(ShapeMismatch):
        p_percent([[1.0]], [1.0], 10)
    with pytest.raises(NotFinite):
        dominance([[1.0]], [np.nan], 1, 50)


def test_contributions_count_by_absolute_value():
    up = dominance([[100.0, 80, 60]], [240.0], 1, 80)
    down = dominance([[100.0, 80, 60]], [-240.0], 1, 80)
    assert not up.sensitive.any()
    assert not down.sensitive.any(), "-100 to -60 is no more dominated than 100 to 60"
    assert p_percent([[95.0, 3]], [-100.0], 10).sensitive.tolist() == [True]
    mixed = dominance([[100.0, 90, 60]], [50.0], 1, 80, gross=[250.0])
    assert not mixed.sensitive.any(), "no amount dominates a small balance of large amounts"


def test_levels_of_the_prior_posterior_rule_grow_with_prior_knowledge():
    largest, totals = [[80.0, 10]], [100.0]
    plain, known = p_percent(largest, totals, 10), p_percent(largest, totals, 10, q=50)
    assert plain.upper.tolist() == [0.0]
    assert known.upper == pytest.approx([10 / 50 * 80 - 10])
