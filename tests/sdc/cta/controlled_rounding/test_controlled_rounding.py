"""Tests of rounded tables: additive, adjacent and unbiased; they depend only on key and cells."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.sdc.cta import CellTable, kept_mean
from microguard.sdc.cta.controlled_rounding.controlled_rounding import (
    controlled_rounding,
    room_beyond,
    with_adjacent_multiples,
)
from microguard.sdc.cta.controlled_rounding.multiples import FEW_CELLS, WALK_ALONE
from microguard.sdc.cta.controlled_rounding.transition import rounding_odds
from microguard.sdc.cta.counts.count_table import totals
from microguard.sdc.cta.counts.posterior import count_posterior
from microguard.sdc.cta.program.infeasible import NoSolutionFound
from microguard.sdc.cta.table.relations import Dimension, tabulate
from microguard.sdc.errors import ImpossibleProtection, InvalidParameter
from scipy import sparse

from tests.sdc.cta.tables import grid_relations, with_margins

KEY = bytes(range(32))


def keys(count):
    return [seed.to_bytes(32, "big") for seed in range(count)]


def names(count):
    return [f"cell {i:04d}" for i in range(count)]


def of_counts(values, relations, base):
    nothing = np.zeros(len(values))
    table = CellTable(values, relations, nothing > 0, nothing, nothing, values, values)
    return with_adjacent_multiples(table, base)


def grid_table(counts, base):
    return of_counts(with_margins(counts), grid_relations(counts.shape), base)


def hierarchical_table(base, seed=0, shape=(8, 6)):
    """Return counts by two variables of two levels each."""
    children = [
        {
            "Total": ["a", "b", "c"],
            **{g: [f"{g}{i}" for i in range(shape[d] // 2)] for g in "abc"},
        }
        for d in range(2)
    ]
    dimensions = [Dimension.from_tree(f"v{d}", children[d]) for d in range(2)]
    leaves = [[c for g in "abc" for c in tree[g]] for tree in children]
    codes = np.array(list(itertools.product(*leaves)), dtype=object).T
    tabulation = tabulate(dimensions, list(codes))
    values = tabulation.totals(list(codes), np.random.default_rng(seed).poisson(3.0, codes.shape[1]))
    return of_counts(values, tabulation.relations, base), tabulation.identities()


def linked_table(base):
    """Return a total with two breakdowns: four parts, and three other parts."""
    values = np.array([17.0, 3, 4, 8, 2, 9, 7, 1])
    relations = np.array([[-1.0, 1, 1, 1, 1, 0, 0, 0], [-1, 0, 0, 0, 0, 1, 1, 1]])
    return of_counts(values, sparse.csr_matrix(relations), base)


def assert_rounded(table, result, base):
    assert not np.any(table.relations @ result.values)
    assert not np.any(result.values % base)
    assert np.all(np.abs(result.deviations) < base), "an adjacent multiple of the base"
    assert np.all(result.values[table.values % base == 0] == table.values[table.values % base == 0])
    assert result.objective >= result.lower_bound


@given(st.integers(2, 6), st.integers(1, 4), st.integers(1, 4), st.integers(0, 10**6))
def test_random_walk_alone_rounds_every_two_way_table(base, rows, columns, seed):
    counts = np.random.default_rng(seed).integers(0, 3 * base, (rows, columns)) * 1.0
    table = grid_table(counts, base)
    result = controlled_rounding(table, base, KEY, names(table.cells))
    assert result.algorithm == WALK_ALONE
    assert_rounded(table, result, base)


def exists(counts, base):
    """Return whether any adjacent multiples of the inner cells have adjacent margins, by enumeration."""
    values, down = with_margins(counts), np.floor(counts / base) * base
    low, high = np.floor(values / base) * base, np.ceil(values / base) * base
    moving = np.flatnonzero(counts.ravel() % base)
    for ups in itertools.product((0, base), repeat=len(moving)):
        rounded = down.copy()
        rounded.ravel()[moving] += ups
        sums = with_margins(rounded)
        if np.all((sums >= low) & (sums <= high)):
            return True
    return False


def test_controlled_rounding_in_three_dimensions_succeeds_if_and_only_if_brute_force_does():
    rng = np.random.default_rng(0)
    rounded = refused = 0
    for base in (2, 3):
        for _ in range(25):
            counts = rng.integers(0, 2 * base, (2, 2, 2)) * 1.0
            table = grid_table(counts, base)
            if exists(counts, base):
                assert_rounded(table, controlled_rounding(table, base, KEY, names(table.cells)), base)
                rounded += 1
                continue
            with pytest.raises((ImpossibleProtection, NoSolutionFound), match="are additive"):
                controlled_rounding(table, base, KEY, names(table.cells))
            relaxed = controlled_rounding(table, base, KEY, names(table.cells), relax=True)
            assert not np.any(table.relations @ relaxed.values)
            assert not np.any(relaxed.values % base)
            assert np.all(np.abs(relaxed.deviations) <= 2 * base)
            assert np.all(relaxed.values[table.values == 0] == 0)
            room = room_beyond(table, relaxed.deviations)
            assert room is not None
            assert room.cells["adjacent"] >= 1
            refused += 1
    assert rounded >= 20
    assert refused >= 3


@pytest.mark.parametrize("base", [3, 5])
def test_controlled_rounding_of_hierarchical_and_linked_tables_gives_adjacent_multiples(base):
    for seed in range(4):
        table, called = hierarchical_table(base, seed)
        assert_rounded(table, controlled_rounding(table, base, KEY, called), base)
    table = linked_table(base)
    assert_rounded(table, controlled_rounding(table, base, KEY, names(table.cells)), base)


def test_mean_rounding_over_keys_is_the_value_if_the_walk_decides_alone():
    cases = [grid_table(np.array([[1.0, 2, 7], [3, 0, 4], [2, 2, 1]]), 5), linked_table(5)]
    for table in cases:
        results = [controlled_rounding(table, 5, key, names(table.cells)) for key in keys(500)]
        assert all(result.algorithm == WALK_ALONE for result in results)
        mean = np.mean([result.values for result in results], axis=0)
        rest = table.values % 5
        error = np.sqrt(rest * (5 - rest) / 500)
        assert np.all(np.abs(mean - table.values) <= 4.5 * error + 1e-9)


def test_mean_rounding_over_keys_is_within_a_tenth_of_a_base_if_a_program_completes_the_walk():
    table, called = hierarchical_table(5, 1, (14, 10))
    assert table.cells > FEW_CELLS
    results = [controlled_rounding(table, 5, key, called) for key in keys(60)]
    assert any(result.algorithm != WALK_ALONE for result in results)
    bias = np.mean([result.deviations for result in results], axis=0)
    assert abs(bias.mean()) < 0.1 * 5
    assert np.sqrt(np.mean(bias**2)) < 2 * 2.5 / np.sqrt(60), "little more than the sampling error"


def test_controlled_rounding_does_not_depend_on_the_order_of_cells():
    table, called = hierarchical_table(3, 2)
    result = controlled_rounding(table, 3, KEY, called)
    again = controlled_rounding(table, 3, KEY, called)
    assert np.array_equal(result.values, again.values)
    mixed = np.random.default_rng(3).permutation(table.cells)
    grid = grid_table(np.random.default_rng(4).poisson(2.0, (5, 6)) * 1.0, 3)
    mixed = np.random.default_rng(3).permutation(grid.cells)
    lines = np.random.default_rng(5).permutation(grid.constraints)
    other = of_counts(grid.values[mixed], grid.relations[lines][:, mixed], 3)
    first = controlled_rounding(grid, 3, KEY, names(grid.cells)).values
    second = controlled_rounding(other, 3, KEY, [names(grid.cells)[i] for i in mixed]).values
    assert np.array_equal(first[mixed], second)
    assert not np.array_equal(first, controlled_rounding(grid, 3, KEY[::-1], names(grid.cells)).values)


def test_controlled_rounding_keeps_cells_published_before():
    table = grid_table(np.array([[1.0, 2, 7], [3, 0, 4], [2, 2, 1]]), 5)
    first = controlled_rounding(table, 5, KEY, names(table.cells))
    held = np.full(table.cells, np.nan)
    held[:4] = first.values[:4]
    again = controlled_rounding(table, 5, KEY[::-1], names(table.cells), held)
    assert_rounded(table, again, 5)
    assert np.array_equal(again.values[:4], first.values[:4])
    held[0] = 3
    with pytest.raises(InvalidParameter, match="not multiples of the base 5"):
        controlled_rounding(table, 5, KEY, names(table.cells), held)


def test_controlled_rounding_refuses_or_relaxes_inconsistent_published_cells():
    # a published total of 15 with two parts that are multiples: 5 and 5
    table = of_counts(np.array([10.0, 5, 5]), np.array([[-1.0, 1, 1]]), 5)
    held = np.array([15.0, np.nan, np.nan])
    with pytest.raises(ImpossibleProtection, match="no adjacent multiples of the rounding base are additive"):
        controlled_rounding(table, 5, KEY, names(3), held)
    relaxed = controlled_rounding(table, 5, KEY, names(3), held, relax=True)
    assert relaxed.values[0] == 15 == relaxed.values[1] + relaxed.values[2]
    impossible = np.array([100.0, np.nan, np.nan])
    with pytest.raises(ImpossibleProtection, match=r"within 3 base\(s\)"):
        controlled_rounding(table, 5, KEY, names(3), impossible, relax=True)


@pytest.mark.parametrize("base", [2, 3, 5, 10])
def test_rounding_odds_are_unbiased_and_determine_the_posterior(base):
    odds = rounding_odds(base)
    assert odds @ np.array([0, base, 2 * base]) == pytest.approx(np.arange(2 * base))
    assert odds.sum(axis=1) == pytest.approx(1)
    counts = np.arange(2.0 * base).repeat(50)
    posterior = count_posterior(counts, np.floor(counts / base) * base, base, odds, least=base)
    evenly = (1 - 1 / base) / np.sum(1 - np.arange(base) / base)
    assert posterior.odds[0, 1] == pytest.approx(evenly), "of counts published as 0"
    assert posterior.largest < 0.7


def test_annealed_rounding_relaxes_few_totals_and_no_internal_cell():
    counts = np.random.default_rng(6).poisson(1.0, (4, 4, 4, 3)) * 1.0
    table = grid_table(counts, 5)
    mixed = np.random.default_rng(7).permutation(table.cells)
    result = controlled_rounding(table, 5, KEY, names(table.cells), relax=True, effort="fast")
    assert result.algorithm == f"{WALK_ALONE}, annealing"
    assert not np.any(table.relations @ result.values)
    beyond = np.abs(result.deviations) >= 5
    assert not beyond[~totals(table)].any()
    assert beyond.sum() <= 0.05 * table.cells
    other = of_counts(table.values[mixed], table.relations[:, mixed], 5)
    called = [names(table.cells)[i] for i in mixed]
    again = controlled_rounding(other, 5, KEY, called, relax=True, effort="fast")
    assert np.array_equal(result.values[mixed], again.values)


def test_controlled_rounding_refuses_fractions_repeated_names_and_kept_statistics():
    table = grid_table(np.ones((2, 2)), 3)
    with_statistic = replace(table, quality=kept_mean(table.values, [0, 1]))
    with pytest.raises(InvalidParameter, match="remove the other preserved statistics"):
        controlled_rounding(with_statistic, 3, KEY, names(table.cells))
    with pytest.raises(InvalidParameter, match="expected distinct names"):
        controlled_rounding(table, 3, KEY, ["cell"] * table.cells)
    halves = of_counts(np.array([1.0, 0.5, 0.5]), np.array([[-1.0, 1, 1]]), 3)
    with pytest.raises(InvalidParameter, match="expected whole numbers"):
        controlled_rounding(halves, 3, KEY, names(3))
    with pytest.raises(InvalidParameter, match="expected at least 2"):
        controlled_rounding(table, 1, KEY, names(table.cells))
