"""Tests of draws of small counts: unbiased, keyed by cell, and with little disclosure."""

import numpy as np
import pytest
from microguard.sdc.cta import CellTable, adjust
from microguard.sdc.cta.counts.consistent import consistent_draws
from microguard.sdc.cta.counts.count_table import totals, with_draws
from microguard.sdc.cta.counts.draw import drawn_counts, transition
from microguard.sdc.cta.counts.posterior import count_posterior
from microguard.sdc.cta.table.summation import Summation
from scipy import sparse

from tests.sdc.cta.tables import grid_relations, with_margins

KEY = bytes(range(32))


def names(count):
    return [f"cell {i}" for i in range(count)]


@pytest.mark.parametrize("base", [2, 3, 5, 10])
def test_draws_of_small_counts_are_unbiased_and_never_certain(base):
    odds = transition(base)
    targets = np.array([0, base, 2 * base])
    assert odds @ targets == pytest.approx(np.arange(2 * base))
    assert odds.sum(axis=1) == pytest.approx(1)
    assert np.all(odds >= 0)
    assert np.all(np.max(odds[1:], axis=1) < 1), "only a count of zero is certainly unchanged"


def test_draws_have_their_probabilities_and_depend_only_on_key_cell_and_count():
    counts = np.repeat(np.arange(8.0), 3000)
    drawn = drawn_counts(counts, 3, KEY, names(len(counts)))
    for count in range(6):
        shares = [np.mean(drawn[counts == count] == target) for target in (0, 3, 6)]
        assert shares == pytest.approx(transition(3)[count], abs=0.04)
    assert np.all(drawn[counts >= 6] == counts[counts >= 6])
    assert np.array_equal(drawn_counts(counts[::-1], 3, KEY, names(len(counts))[::-1])[::-1], drawn)
    assert not np.array_equal(drawn_counts(counts, 3, KEY[::-1], names(len(counts))), drawn)


def test_published_count_is_monotone_in_the_true_count():
    cells = names(500)
    shown = [drawn_counts(np.full(500, float(c)), 3, KEY, cells) for c in range(1, 3)]
    assert np.all(shown[1] >= shown[0])


def count_table(counts):
    values = with_margins(counts)
    room = np.where(values > 0, np.maximum(values, 1), 0.0)
    zeros = np.zeros(len(values))
    return CellTable(values, grid_relations(counts.shape), zeros > 0, zeros, zeros, room, room)


@pytest.mark.parametrize("shape", [(6, 8), (4, 4, 4)])
def test_table_of_counts_is_additive_with_multiples_of_the_base_for_small_counts(shape):
    counts = np.random.default_rng(4).poisson(2.0, shape) * 1.0
    counts.flat[:3] = 25
    table = count_table(counts)
    drawn = drawn_counts(table.values, 3, KEY, names(table.cells))
    d = adjust(with_draws(table, table.values, drawn, 3), effort="fast")
    small = (table.values > 0) & (table.values < 6) & ~totals(table)
    assert d.whole
    assert not np.any(table.relations @ d.values)
    assert np.array_equal(d.values[small], drawn[small])
    assert np.all(d.values >= 0)
    assert np.all(d.values[(table.values == 0)] == 0)
    assert not np.any((d.values > 0) & (d.values < 3)), "counts below the base are never published"


def test_count_posterior_follows_bayes_rule():
    rng = np.random.default_rng(0)
    original = rng.poisson(1.5, 5000) * 1.0
    shown = drawn_counts(original, 3, KEY, names(5000))
    posterior = count_posterior(original, shown, 3, transition(3), least=3)
    for target in range(3):
        originals = original[(shown == 3 * target) & (original < 6)]
        shares = np.bincount(originals.astype(int), minlength=6)[:6] / len(originals)
        assert posterior.odds[target] == pytest.approx(shares, abs=0.05)
    assert posterior.largest < 0.7
    assert np.array_equal(
        posterior.moved.sum(axis=1), np.bincount(original[original < 6].astype(int), minlength=6)
    )
    single = count_posterior(np.ones(400), np.zeros(400), 3, transition(3), least=3)
    assert single.largest > 0.9, "if all small counts are ones, they are known"


def test_inconsistent_draws_of_linked_tables_become_consistent_multiples():
    # one total with two breakdowns, as 1 + 2 and as 2 + 1
    counts = np.array([3.0, 1, 2, 2, 1])
    relations = sparse.csr_matrix(np.array([[-1.0, 1, 1, 0, 0], [-1, 0, 0, 1, 1]]))
    assert Summation.from_relations(relations) is None
    is_total = np.array([True, False, False, False, False])
    drawn = np.array([3.0, 3, 3, 0, 0])
    settled = consistent_draws(relations, counts, drawn, 3, is_total, np.full(5, np.nan))
    assert settled[1] + settled[2] == settled[3] + settled[4]
    assert np.all(np.isin(settled[1:], (0, 3, 6)))
    assert np.sum(settled[1:] != drawn[1:]) <= 2
    held = np.array([6.0, np.nan, np.nan, np.nan, np.nan])
    again = consistent_draws(relations, counts, drawn, 3, is_total, held)
    assert again[1] + again[2] == again[3] + again[4] == 6, "a published total is kept"
