"""Tests of differences: a total that differs from its only visible part reveals records in hidden parts."""

from __future__ import annotations

import numpy as np
import pytest
from microguard.sdc.cta.cell_keys.differences import Differences
from microguard.sdc.cta.cell_keys.noise_table import CellKeyParameters, NoiseTable
from microguard.sdc.cta.cell_keys.posterior import Candidates, candidates
from scipy import sparse

NOISE = NoiseTable.of(CellKeyParameters())
#: Three parts and their total.
LINE = sparse.csr_matrix(np.array([[1.0, 1, 1, -1]]))


def alone(shown) -> Candidates:
    return candidates(NOISE, np.array([20, 0, 1, 21]), np.array(shown), np.array([0, 1, 1, 0]))


def test_differences_reveal_no_part_if_the_total_equals_its_part_or_two_parts_are_visible():
    for shown in ((20, 0, 0, 20), (20, 3, 0, 21)):
        found = Differences.of(LINE, np.array(shown))
        assert found.hidden.shape[0] == 0
        cells = np.arange(4)
        assert found.known(alone(shown), cells, alone(shown)).odds == pytest.approx(alone(shown).odds)


def test_only_hidden_part_of_a_total_that_differs_has_records():
    line = sparse.csr_matrix(np.array([[1.0, 1, 0, -1]]))
    shown = np.array([20, 0, 0, 22])
    found = Differences.of(line, shown)
    assert found.occupied.tolist() == [1]
    known = found.known(alone(shown), np.arange(4), alone(shown))
    zero = known.counts == 0
    assert known.odds[1][zero[1]] == 0
    assert known.surest(3)[1] > alone(shown).surest(3)[1]
    assert known.odds[2] == pytest.approx(alone(shown).odds[2])


def test_at_least_one_of_several_hidden_parts_has_records_as_in_an_enumeration():
    shown = np.array([20, 0, 0, 22])
    before = alone(shown)
    found = Differences.of(LINE, shown)
    assert not len(found.occupied)
    both = np.array([1, 2])
    known = found.known(Candidates(before.first[both], before.odds[both]), both, before)
    joint = np.outer(before.odds[1], before.odds[2])
    empty = np.flatnonzero(before.counts[1] == 0)[0]
    joint[empty, empty] = 0.0
    joint /= joint.sum()
    assert known.odds[0] == pytest.approx(joint.sum(axis=1))
    assert known.odds[1] == pytest.approx(joint.sum(axis=0))
