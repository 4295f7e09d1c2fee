"""Tests of the random walk: unbiased and additive; in two dimensions it rounds all cells."""

import itertools
import math

import numpy as np
import pytest
from microguard.sdc.cta.controlled_rounding.walk import random_walk
from scipy import sparse

from tests.sdc.cta.tables import grid_relations, with_margins


def ends_of_all_walks(relations, shares, base):
    """Return (walks, cells) ends of equally likely walks: odds are fractions whose denominators divide
    lcm(1..base).

    A cell whose column does not depend on earlier columns uses a constraint and no random number.
    """
    order = np.flatnonzero(shares != np.rint(shares))
    ranks = [np.linalg.matrix_rank(relations[:, order[: i + 1]]) for i in range(len(order))]
    drawing = np.flatnonzero(np.diff([0, *ranks]) == 0)
    steps = math.lcm(*range(1, base + 1))
    ends = []
    for chosen in itertools.product((np.arange(steps) + 0.5) / steps, repeat=len(drawing)):
        numbers = np.full(len(order), 0.5)
        numbers[drawing] = chosen
        ends.append(
            random_walk(
                sparse.csr_matrix(relations), shares, np.floor(shares), np.ceil(shares), order, numbers
            )
        )
    return np.array(ends)


@pytest.mark.parametrize("counts", [[[1, 2], [2, 2]], [[1, 1, 1], [0, 2, 4]], [[4, 1, 2], [1, 3, 1]]])
def test_expectation_of_the_random_walk_is_exact(counts):
    counts = np.array(counts, dtype=float)
    relations, values = grid_relations(counts.shape), with_margins(counts)
    ends = ends_of_all_walks(relations, values / 3, 3)
    assert len(ends) >= 6**2
    assert ends == pytest.approx(np.rint(ends), abs=1e-9)
    assert np.abs(np.rint(ends) @ relations.T).max() == 0
    assert 3 * ends.mean(axis=0) == pytest.approx(values, abs=1e-9)


def test_random_walk_in_three_dimensions_respects_bounds_and_constraints():
    rng = np.random.default_rng(1)
    counts = rng.poisson(3.0, (4, 4, 4)) * 1.0
    relations, shares = grid_relations(counts.shape), with_margins(counts) / 5
    order = np.flatnonzero(shares != np.rint(shares))
    means = np.zeros(len(shares))
    for _ in range(200):
        ends = random_walk(
            sparse.csr_matrix(relations),
            shares,
            np.floor(shares),
            np.ceil(shares),
            order,
            rng.random(len(order)),
        )
        assert np.abs(relations @ ends).max() < 1e-9
        assert np.all((ends >= np.floor(shares)) & (ends <= np.ceil(shares)))
        means += ends / 200
    assert np.abs(means - shares).max() < 4.5 * 0.5 / np.sqrt(200)


def test_refactorised_basis_gives_the_same_random_walk(monkeypatch):
    rng = np.random.default_rng(2)
    values = with_margins(rng.poisson(2.0, (12, 9)) * 1.0)
    relations, shares = sparse.csr_matrix(grid_relations((12, 9))), values / 5
    order = np.flatnonzero(shares != np.rint(shares))
    numbers = rng.random(len(order))
    box = np.floor(shares), np.ceil(shares)
    long = random_walk(relations, shares, *box, order, numbers)
    monkeypatch.setattr("microguard.sdc.cta.controlled_rounding.basis._MANY_ENTRIES", 20)
    assert random_walk(relations, shares, *box, order, numbers) == pytest.approx(long, abs=1e-9)
