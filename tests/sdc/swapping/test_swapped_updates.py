"""Tests of disclosure by two updates of a swapped register, the reason why such a register is refused.

The attacker matches records by the columns that swapping leaves unchanged. In the first test, the updates are
swapped independently with the same key. In the second test, exchanged units keep their areas, and only new
units are exchanged among each other.
"""

from __future__ import annotations

import numpy as np
import pytest
from microguard.sdc.swapping import swap

from tests.sdc.swapping.test_swap import profiles_of, risk, town

#: Number of units of each update, and of new units in the second one, which replace as many exits.
UNITS, NEW = 2000, 100


def exchanged_areas(geography, features, order, units, at_risk=None):
    """Return published areas after exchanges among some units; other units keep their areas."""
    chosen = (geography[units], features[units])
    flags = risk(*chosen) if at_risk is None else at_risk[units]
    swaps = swap(chosen[0], flags, profiles_of(features)[units], chosen[1], order[units], rate=0.1)
    published = geography[:, -1].copy()
    published[units] = chosen[0][swaps.partner, -1]
    return published


def two_updates(seed):
    """Return all units that are ever in the register, and the positions of those of each update."""
    geography, features, order = town(UNITS + NEW, seed, categories=(2, 3, 3))
    return geography, features, order, np.arange(UNITS), np.arange(NEW, UNITS + NEW)


def undone(geography, features, published, units):
    """Return the share of exchanges that a reader reverses who knows which units were exchanged.

    A partner has the area that a unit originally was in, a common category, and the same region. The reader
    guesses an area in proportion to the number of possible partners.
    """
    true = geography[:, -1]
    shares = []
    for unit in units[published[units] != true[units]]:
        alike = geography[units, 0] == geography[unit, 0]
        alike &= (features[units, :2] == features[unit, :2]).all(axis=1)
        alike &= published[units] != published[unit]
        shares.append((published[units[alike]] == true[unit]).mean() if alike.any() else 0.0)
    return float(np.mean(shares))


@pytest.mark.parametrize("seed", range(3))
def test_reader_of_two_separately_swapped_updates_identifies_exchanged_units(seed):
    geography, features, order, first, second = two_updates(seed)
    true = geography[:, -1]
    one, two = (exchanged_areas(geography, features, order, units) for units in (first, second))
    both = np.intersect1d(first, second)
    exchanged = both[one[both] != true[both]]
    claimed = both[one[both] != two[both]]
    right = (one[claimed] != true[claimed]) | (two[claimed] != true[claimed])
    assert right.all()
    shown = np.intersect1d(claimed, exchanged)
    blind = len(exchanged) / len(both)
    assert blind < 0.35, "base rate: the share of exchanged units in one update"
    assert len(shown) > 0.25 * len(exchanged)


def test_exchanges_of_new_units_among_each_other_are_reversed_more_often():
    alone, among_all = [], []
    for seed in range(3):
        geography, features, order, first, second = two_updates(seed)
        one, two = (exchanged_areas(geography, features, order, units) for units in (first, second))
        kept, new = one.copy(), np.setdiff1d(second, first)
        at_risk = np.zeros(geography.shape, bool)
        at_risk[second] = risk(geography[second], features[second])
        kept[new] = exchanged_areas(geography, features, order, new, at_risk)[new]
        alone.append(undone(geography, features, kept, new))
        among_all.append(undone(geography, features, two, second))
    assert np.mean(alone) > 1.5 * np.mean(among_all)
