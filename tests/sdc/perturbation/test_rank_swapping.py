"""Tests of rank swapping: partners are mutual and within the window, and nearly every record has one."""

from __future__ import annotations

import numpy as np
import pytest
from microguard.sdc.errors import InvalidParameter
from microguard.sdc.perturbation.rank_swapping import partners


@pytest.mark.parametrize("records", [0, 1, 2, 3, 10, 1_000, 100_001])
@pytest.mark.parametrize("window", [0.001, 0.05, 1.0])
def test_partners_are_mutual_and_within_the_window(records, window):
    partner = partners(records, window, 7)
    assert (partner[partner] == np.arange(records)).all()
    assert np.abs(partner - np.arange(records)).max(initial=0) <= max(1, round(window * records, 9))


def test_nearly_every_rank_has_a_partner_across_the_window():
    partner = partners(1_000_000, 0.01, 1)
    distance = np.abs(partner - np.arange(1_000_000))
    assert (distance == 0).sum() <= 100  # only ranks at the end have no partner
    assert 3_500 < distance.mean() < 6_500
    counts = np.histogram(distance[:500_000], bins=4, range=(0, 10_000))[0]
    assert counts.min() > 0.1 * counts.sum()


def test_partners_depend_only_on_the_seed():
    first, again, other = (partners(5_000, 0.05, seed) for seed in (2**200, 2**200, 2**200 + 1))
    assert (first == again).all()
    assert (first != other).mean() > 0.9


def test_partner_of_one_of_two_ranks_is_the_other_rank():
    assert partners(2, 0.1, 0).tolist() == [1, 0]
    assert partners(1, 1.0, 0).tolist() == [0]


@pytest.mark.parametrize(("records", "window"), [(10, 0.0), (10, 1.1), (-1, 0.5), (2**31, 0.5)])
def test_partners_refuse_invalid_windows_and_numbers(records, window):
    with pytest.raises(InvalidParameter):
        partners(records, window, 0)
