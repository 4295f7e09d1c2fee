"""Tests of swapping: only geography moves, units at risk are exchanged first, and the cost is below first-
fit.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from microguard.sdc.errors import InvalidParameter, ShapeMismatch
from microguard.sdc.swapping import swap


def town(units=2000, seed=0, categories=(2, 5, 8)):
    """Return units in 2 regions, 8 districts and 40 wards, whose categories differ by ward."""
    rng = np.random.default_rng(seed)
    ward = rng.integers(0, 40, units)
    geography = np.column_stack([ward // 20, ward // 5, ward])
    shift = rng.integers(0, 8, 40)
    features = np.column_stack(
        [np.where(rng.random(units) < 0.7, shift[ward] % c, rng.integers(0, c, units)) for c in categories]
    )
    return geography, features, rng.permutation(units)


def risk(geography, features, k=3):
    """Return, by level, the units whose key combination fewer than k units have in an area."""
    columns = []
    for level in range(geography.shape[1]):
        keys = np.column_stack([geography[:, level], features])
        _, inverse, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
        columns.append(counts[inverse.ravel()] < k)
    return np.column_stack(columns)


def profiles_of(features):
    codes = [np.unique(features[:, :2], axis=0, return_inverse=True)[1].ravel(), features[:, 0]]
    return np.column_stack([*codes, np.zeros(len(features), np.int64)])


def chi_square(geography, features, moved):
    """Return chi-square of ward by one variable, over cells that were not empty."""
    total = 0.0
    for variable in features.T:
        before, after = (
            np.histogram2d(areas[:, -1], variable, bins=(np.arange(41), np.arange(variable.max() + 2)))[0]
            for areas in (geography, moved)
        )
        total += ((after - before)[before > 0] ** 2 / before[before > 0]).sum()
    return total


def first_fit(geography, at_risk, profiles, features, order, rate):
    """Run Eurostat's algorithm in plain Python: take the first unit of the profile in another area."""
    units, depth = geography.shape
    partner, level_of = np.arange(units), np.full(units, -1)
    queue = [int(each) for each in np.argsort(order)]
    for level in range(depth):
        above = np.zeros(units, np.int64) if level == 0 else geography[:, level - 1]
        waiting = [u for u in queue if at_risk[u, level]]
        if level == depth - 1:
            waiting += [u for u in queue if not at_risk[u, level]]
        for unit in waiting:
            if level_of[unit] >= 0:
                continue
            if not at_risk[unit, level] and (level_of >= 0).sum() >= rate * units:
                break
            for profile in profiles.T:
                donor = next(
                    (
                        other
                        for other in queue
                        if level_of[other] < 0
                        and profile[other] == profile[unit]
                        and above[other] == above[unit]
                        and geography[other, level] != geography[unit, level]
                        and (features[other] != features[unit]).any()
                    ),
                    None,
                )
                if donor is not None:
                    partner[unit], partner[donor] = donor, unit
                    level_of[unit] = level_of[donor] = level
                    break
    return partner, level_of


@pytest.mark.parametrize("seed", range(3))
def test_swap_exchanges_all_units_at_risk_and_meets_the_rate(seed):
    geography, features, order = town(seed=seed)
    at_risk = risk(geography, features)
    swaps = swap(geography, at_risk, profiles_of(features), features, order, rate=0.3)
    assert (swaps.partner[swaps.partner] == np.arange(len(order))).all()
    assert ((swaps.partner != np.arange(len(order))) == swaps.exchanged).all()
    assert (at_risk.any(axis=1) & ~swaps.exchanged).sum() == swaps.unmatched.sum()
    assert 0.3 <= swaps.exchanged.mean() <= max(0.32, 2 * at_risk.any(axis=1).mean())


@pytest.mark.parametrize("seed", range(3))
def test_swap_moves_units_only_within_the_area_above_their_level(seed):
    geography, features, order = town(seed=seed)
    swaps = swap(geography, risk(geography, features), profiles_of(features), features, order, rate=0.2)
    moved = geography[swaps.partner]
    for unit in np.flatnonzero(swaps.exchanged):
        level = swaps.level[unit]
        assert (moved[unit, :level] == geography[unit, :level]).all()
        assert moved[unit, level] != geography[unit, level]
    for level in range(3):
        above = swaps.level[swaps.exchanged].min(initial=9)
        same = np.bincount(moved[:, level]) == np.bincount(geography[:, level])
        assert same.all(), (level, above)


def test_swap_does_not_depend_on_the_order_of_units():
    geography, features, order = town(units=600)
    at_risk, profiles = risk(geography, features), profiles_of(features)
    first = geography[swap(geography, at_risk, profiles, features, order).partner]
    shuffle = np.random.default_rng(9).permutation(len(order))
    again = geography[shuffle][
        swap(
            geography[shuffle], at_risk[shuffle], profiles[shuffle], features[shuffle], order[shuffle]
        ).partner
    ]
    assert (first[shuffle] == again).all()


@pytest.mark.parametrize("seed", range(3))
def test_swap_changes_fewer_counts_than_the_first_feasible_donors(seed):
    geography, features, order = town(units=800, seed=seed)
    at_risk, profiles = risk(geography, features), profiles_of(features)[:, [1, 2]]
    partner, level_of = first_fit(geography, at_risk, profiles, features, order, 0.25)
    rate = (level_of >= 0).mean()
    swaps = swap(geography, at_risk, profiles, features, order, rate=rate)
    ours, theirs = (chi_square(geography, features, geography[each]) for each in (swaps.partner, partner))
    assert swaps.exchanged.mean() >= rate
    assert ours <= 0.8 * theirs


@pytest.mark.parametrize("seed", range(20))
def test_swap_assigns_donors_at_the_least_cost_of_an_enumeration(seed):
    rng = np.random.default_rng(seed)
    waiting, donors = 3, 5
    units = waiting + donors
    geography = np.repeat([[0], [1]], [waiting, donors], axis=0)
    features = rng.integers(0, 3, (units, 4))
    at_risk = np.zeros((units, 1), bool)
    at_risk[:waiting] = True
    order = rng.permutation(units)
    swaps = swap(geography, at_risk, np.zeros((units, 1)), features, order, rate=0.0)
    distance = (features[:waiting, None] != features[None, waiting:]).sum(axis=2).astype(float)
    distance[distance == 0] = np.inf  # the exchange of equal units changes no count
    best = min(sum(distance[i, p[i]] for i in range(waiting)) for p in permutations(range(donors), waiting))
    assert sum(distance[i, swaps.partner[i] - waiting] for i in range(waiting)) == best


def test_swap_counts_units_without_a_donor():
    geography, features = np.array([[0], [0], [1]]), np.array([[1], [2], [3]])
    at_risk, order = np.array([[True], [True], [False]]), np.arange(3)
    swaps = swap(geography, at_risk, np.zeros((3, 1)), features, order, rate=0)
    assert swaps.unmatched.tolist() == [1]
    alone = swap(geography, at_risk, np.arange(3)[:, None], features, order, rate=1)
    assert alone.unmatched.tolist() == [2]
    assert not alone.exchanged.any()


def test_swap_refuses_invalid_arguments():
    geography, features, order = town(units=50)
    at_risk, profiles = risk(geography, features), profiles_of(features)
    with pytest.raises(InvalidParameter, match="rate"):
        swap(geography, at_risk, profiles, features, order, rate=2)
    with pytest.raises(InvalidParameter, match="order"):
        swap(geography, at_risk, profiles, features, order * 0)
    with pytest.raises(ShapeMismatch):
        swap(geography, at_risk[:, :2], profiles, features, order)


def test_swap_exchanges_units_within_the_level_that_each_unit_names():
    geography, features, order = town()
    # the unit is exchanged across districts
    school = geography[:, 0] * 3 + np.random.default_rng(3).integers(0, 3, len(order))
    levels = np.column_stack([geography[:, 0], school, geography[:, 1]])
    at_risk = np.zeros(levels.shape, bool)
    at_risk[::40, 1] = True
    moves = swap(levels, at_risk, profiles_of(features), features, order, rate=0.0, above=(-1, 0, 0))
    partner, moved = moves.partner, moves.exchanged
    assert moved[at_risk[:, 1]].all()
    assert (levels[partner, 0] == levels[:, 0]).all(), "within the region"
    assert (levels[partner, 1] != levels[:, 1])[moved].all()
    assert (levels[partner, 2] != levels[:, 2])[moved].any(), "districts cross schools"
