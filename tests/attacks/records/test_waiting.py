"""Tests that waiting units and withheld values disclose little more than the register itself."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from microguard.pipelines.series.withheld_values import is_withheld
from microguard.sdc.risk.too_few_values import too_few_values_probability

from tests.attacks.records.waiting import Batch, Claims, Found, Rule, attack, stream

POOL, LEAST, UPDATES, STRATA = 6, 2, 400, 10
SHARES = {"even": np.array([0.5, 0.3, 0.2]), "skewed": np.array([0.8, 0.15, 0.05])}
MOST_ODDS = 2.3
"""By how much the odds of a claim may rise: twice, and what 50,000 claims vary by."""


def waiting_for_values(values: np.ndarray, random: np.random.Generator) -> tuple[bool, bool]:
    """Control: the rule of microguard 0.5, by which a stratum waits until it has several values."""
    return len(values) >= POOL and len(np.unique(values)) >= LEAST, False


def by_counts(shares: np.ndarray, values: np.ndarray, random: np.random.Generator) -> tuple[bool, bool]:
    """Decide as the register does: by counts; withhold values if too few are distinct, or at random."""
    if len(values) < POOL:
        return False, False
    probability = too_few_values_probability(shares, len(values), LEAST)
    return True, is_withheld(len(np.unique(values)) < LEAST, probability, random.random())


def without_draws(values: np.ndarray, random: np.random.Generator) -> tuple[bool, bool]:
    """Control: withhold values only if there are too few."""
    return len(values) >= POOL, len(np.unique(values)) < LEAST


def batches_of(seed: int, shares: np.ndarray, entrants: int, rule: Rule) -> list[Batch]:
    random = np.random.default_rng(seed)
    return [batch for _ in range(STRATA) for batch in stream(random, shares, entrants, UPDATES, rule)]


def found(seed: int, shares: np.ndarray, entrants: int, rule: Rule) -> Found:
    return attack(batches_of(seed, shares, entrants, rule), shares, POOL)


@pytest.mark.parametrize("entrants", [1, 3])
@pytest.mark.parametrize("shares", SHARES.values(), ids=SHARES)
def test_control_waiting_for_values_discloses_the_values_of_waiting_and_last_units(shares, entrants) -> None:
    told = found(1, shares, entrants, waiting_for_values)
    assert told.waited.right == told.waited.claims > 100
    assert told.ended.right == told.ended.claims
    assert (told.ended.claims > 10) == (entrants == 1)


@pytest.mark.parametrize("entrants", [1, 3])
@pytest.mark.parametrize("shares", SHARES.values(), ids=SHARES)
def test_units_are_not_pending_because_of_values_and_the_last_unit_has_the_odds_of_its_class(
    shares, entrants
) -> None:
    for seed in range(3):
        told = found(seed, shares, entrants, partial(by_counts, shares))
        assert told.waited.claims == told.ended.claims == 0
        if told.last.claims > 200:
            assert told.last.odds < 1.5


@pytest.mark.parametrize("shares", SHARES.values(), ids=SHARES)
def test_control_without_random_draws_withheld_values_are_shared_by_the_whole_batch(shares) -> None:
    told = found(1, shares, 1, without_draws)
    assert told.alike.right == told.alike.claims > 100
    assert told.withheld.odds > 10


@pytest.mark.parametrize("shares", SHARES.values(), ids=SHARES)
def test_withheld_values_are_guessed_with_at_most_twice_the_prior_odds(shares) -> None:
    for seed in range(3):
        told = found(seed, shares, 1, partial(by_counts, shares))
        assert told.withheld.claims > 100
        assert told.withheld.odds < MOST_ODDS


@pytest.mark.long
@pytest.mark.parametrize("entrants", [1, 2, 3, 5])
@pytest.mark.parametrize("shares", SHARES.values(), ids=SHARES)
def test_many_seeds_do_not_raise_the_odds_of_withheld_values_or_of_the_last_value(shares, entrants) -> None:
    everything = [found(seed, shares, entrants, partial(by_counts, shares)) for seed in range(20)]
    assert not any(told.waited.claims or told.ended.claims for told in everything)
    assert max(told.withheld.odds for told in everything) < MOST_ODDS
    last = Claims()
    for told in everything:  # with skewed values, few batches are published with values: a seed has 35 claims
        last.claims, last.right = last.claims + told.last.claims, last.right + told.last.right
        last.expected += told.last.expected
    assert last.claims > 200
    assert last.odds < 1.5
