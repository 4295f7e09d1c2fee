"""Tests of the posterior of original counts given published counts, against an enumeration of all tables."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from microguard.sdc.cta.cell_keys import posterior
from microguard.sdc.cta.cell_keys.intervals import count_intervals
from microguard.sdc.cta.cell_keys.noise_table import KEY_SPAN, CellKeyParameters, NoiseTable
from microguard.sdc.cta.cell_keys.posterior import Candidates, candidates, given_all
from microguard.sdc.errors import InvalidParameter, ShapeMismatch
from scipy import sparse

NOISE = NoiseTable.of(CellKeyParameters())
#: A 2x2 table row by row with its margins: two rows, their totals, and the column totals.
LINES = sparse.csr_matrix(
    np.array(
        [
            [1, 1, -1, 0, 0, 0, 0, 0, 0],
            [0, 0, 0, 1, 1, -1, 0, 0, 0],
            [0, 0, 0, 0, 0, 0, 1, 1, -1],
            [1, 0, 0, 1, 0, 0, -1, 0, 0],
            [0, 1, 0, 0, 1, 0, 0, -1, 0],
            [0, 0, 1, 0, 0, 1, 0, 0, -1],
        ]
    )
)
INSIDE = np.array([0, 1, 3, 4])
FAMILY = np.array([0, 0, 1, 0, 0, 1, 1, 1, 1])


def whole(inside: np.ndarray) -> np.ndarray:
    """Return (..., 9) counts with their margins."""
    a, b, c, d = np.moveaxis(inside, -1, 0)
    return np.stack([a, b, a + b, c, d, c + d, a + c, b + d, a + b + c + d], axis=-1)


def published(counts: np.ndarray, seed: int) -> np.ndarray:
    keys = np.random.default_rng(seed).integers(0, KEY_SPAN, len(counts)).astype(np.uint64)
    return NOISE.perturb(counts, keys)


def every_table(shown: np.ndarray, alone: Candidates) -> tuple[np.ndarray, np.ndarray]:
    """Return all tables that the noise allows, and the likelihood of the published counts for each."""
    ranges = [range(alone.lower[cell], alone.upper[cell] + 1) for cell in INSIDE]
    tables = whole(np.array(list(product(*ranges))))
    noise = shown - tables
    near = (np.abs(noise) <= 5).all(axis=1)
    tables, noise = tables[near], noise[near]
    odds = NOISE.odds[np.minimum(tables, len(NOISE.odds) - 1), noise + 5].prod(axis=1)
    return tables[odds > 0], odds[odds > 0]


def test_posterior_of_a_single_cell_follows_bayes_rule():
    counts = np.array([0, 0, 0, 1, 1, 2, 3, 3])
    found = candidates(NOISE, counts, np.array([0, 0, 0, 0, 3, 3, 3, 3]), np.zeros(8, int))
    prior = np.bincount(counts, minlength=9) + 1.0
    assert found.first[0] == -5
    at_zero = prior[:6] * NOISE.odds[np.arange(6), 5 - np.arange(6)]
    assert found.odds[0, 5:] == pytest.approx(at_zero / at_zero.sum())
    at_three = prior[1:9] * NOISE.odds[np.arange(1, 9), 3 - np.arange(1, 9) + 5]
    assert found.odds[4][3:] == pytest.approx(at_three / at_three.sum())
    assert found.surest(3)[4] == pytest.approx((at_three / at_three.sum())[:2].max())
    with pytest.raises(ShapeMismatch):
        candidates(NOISE, counts, np.zeros(3, int), np.zeros(8, int))


def test_posterior_given_all_cells_is_near_that_of_enumeration():
    errors, of_alone = [], []
    for seed in range(12):
        counts = whole(np.random.default_rng(seed).poisson(2.5, 4))
        shown = published(counts, seed)
        # the posterior uses no prior knowledge
        flat = candidates(NOISE, np.zeros(9, int) + 99, shown, np.zeros(9, int))
        linked = given_all(flat, LINES, INSIDE)
        tables, odds = every_table(shown, flat)
        for place, cell in enumerate(INSIDE):
            exact = np.array([odds[tables[:, cell] == count].sum() for count in (1, 2)]) / odds.sum()
            errors.append(abs(linked.surest(3)[place] - exact.max()))
            of_alone.append(abs(flat.surest(3)[cell] - exact.max()))
    assert np.mean(errors) < 0.06
    assert np.mean(errors) < 0.6 * np.mean(of_alone)


def test_posterior_of_a_cell_without_margins_is_that_of_the_single_cell():
    counts = np.array([1, 2, 0, 7, 12])
    alone = candidates(NOISE, counts, np.array([3, 0, 0, 8, 12]), np.zeros(5, int))
    linked = given_all(alone, sparse.csr_matrix((0, 5)), np.arange(5))
    assert linked.odds == pytest.approx(alone.odds)


def test_posterior_of_tables_linked_through_a_total_is_that_of_the_whole_table():
    counts = whole(np.array([1, 2, 7, 12]))
    alone = candidates(NOISE, counts, published(counts, 5), FAMILY)
    by_parts = given_all(alone, LINES, np.arange(9))
    linked = sparse.block_diag([LINES, LINES]).tocsr()
    same = sparse.csr_matrix(([1.0, -1.0], ([0, 0], [8, 17])), shape=(1, 18))
    again = sparse.vstack([linked[:6], linked[6:], same]).tocsr()  # both tables have the same totals
    twice = Candidates(np.tile(alone.first, 2), np.tile(alone.odds, (2, 1)))
    with_two = given_all(twice, again, np.arange(18))
    assert with_two.odds[:9] == pytest.approx(with_two.odds[9:], abs=1e-6)
    apart = given_all(twice, linked, np.arange(18))
    assert apart.odds[:9] == pytest.approx(by_parts.odds, abs=1e-6)
    fewer = given_all(alone, LINES[[0, 1, 2, 3, 4]], np.arange(9))  # one constraint follows from the others
    assert fewer.odds == pytest.approx(by_parts.odds, abs=1e-6)


def test_posterior_refuses_a_table_that_is_too_large(monkeypatch):
    monkeypatch.setattr(posterior, "MOST_EQUATIONS", 3)
    alone = candidates(NOISE, np.arange(9), np.arange(9) + 3, FAMILY)
    with pytest.raises(InvalidParameter, match="expected at most 3"):
        given_all(alone, LINES, INSIDE)


def test_intervals_equal_the_enumeration_of_all_tables_that_the_noise_allows():
    for seed in range(6):
        counts = whole(np.random.default_rng(seed).poisson(2.0, 4))
        shown = published(counts, seed)
        alone = candidates(NOISE, counts, shown, FAMILY)
        found = count_intervals(alone.lower, alone.upper, LINES, np.arange(9))
        ranges = [range(alone.lower[cell], alone.upper[cell] + 1) for cell in INSIDE]
        tables = whole(np.array(list(product(*ranges))))
        tables = tables[((tables >= alone.lower) & (tables <= alone.upper)).all(axis=1)]
        assert found.lower.tolist() == tables.min(axis=0).tolist()
        assert found.upper.tolist() == tables.max(axis=0).tolist()
        assert np.all((found.lower <= counts) & (counts <= found.upper))


def test_extreme_noise_of_all_cells_and_their_total_determines_the_counts():
    """Ten cells of 1 are published as 0, their total with the largest noise: at most 5 each, 50 published as
    55.
    """
    lines = sparse.csr_matrix(np.array([[1.0] * 10 + [-1.0]]))
    lower, upper = np.array([0] * 10 + [50]), np.array([5] * 10 + [60])
    found = count_intervals(lower, upper, lines, np.arange(11))
    assert found.determined.all()
    assert found.lower.tolist() == [5] * 10 + [50]
