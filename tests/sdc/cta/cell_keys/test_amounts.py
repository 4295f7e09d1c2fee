"""Tests of noise of amounts: the rule of tau-ARGUS, unbiased, never below 0; and an attacker's posterior."""

from __future__ import annotations

import csv
from itertools import product

import numpy as np
import pytest
from microguard.sdc.cta.cell_keys.amount_posterior import (
    insider_within_level,
    linked_within_level,
    looked_at_twice,
    solved,
    uncertainty,
    within_level,
)
from microguard.sdc.cta.cell_keys.amounts import AmountNoise, AmountNoiseTable, AmountScaling
from microguard.sdc.cta.cell_keys.noise_table import KEY_SPAN
from microguard.sdc.errors import InvalidParameter, ShapeMismatch
from scipy import sparse

from tests.reference import reference_file
from tests.sdc.cta.cell_keys import amount_oracle

#: Parameters of the example of tau-ARGUS: F(0.03,0.30,1000,3,0.5,0.2).
SCALING = AmountScaling(small=0.3, large=0.03, flexpoint=1000.0, q=3.0, factors=(1.0, 0.5, 0.2))
OF_ORACLE = (0.03, 0.3, 1000.0, 3.0, (1.0, 0.5, 0.2))
COIN = AmountNoiseTable.from_transitions(
    [0, 1, 1, 2, 2, 2], [0, 0, 2, 1, 2, 3], [1, 0.5, 0.5, 0.25, 0.5, 0.25]
)


def tables_of_tau_argus():
    folder = "tauargus/cellkey/Magnitude"
    return [reference_file(f"{folder}/ptab_savings_{name}.txt") for name in ("all", "smallcells")]


def read(path):
    rows = amount_oracle.read_rows(path)
    lines = [(i, j, p) for i, row in rows.items() for j, _, p in row]
    return AmountNoiseTable.from_transitions(*np.array(lines).T)


def as_keys(shares):
    return np.rint(np.asarray(shares) * KEY_SPAN).astype(np.uint64)


def test_share_of_a_contribution_equals_the_flex_function():
    sizes = np.array([0.0, 10.0, 999.0, 1000.0, 3000.0, 1e12])
    expected = [0.3, 0.3, 0.3, 0.3, 0.03 * (1 + (0.9 - 0.03) / 0.03 / 8 * 1.0), 0.03]
    assert SCALING.share(sizes) == pytest.approx(expected)


def test_noise_draw_is_interpolated_between_rows_and_constant_beyond_the_last_row():
    ratios, keys = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 7.0, 7.0]), as_keys([0.1, 0.1, 0.6, 0.1, 0.3, 0.3, 0.9])
    assert COIN.draw(ratios, keys).tolist() == [0, -0.5, 1, -1, 0, 0, 1]
    noise, odds = COIN.possible(np.array([1.5]))
    assert dict(zip(noise[0][odds[0] > 0], odds[0][odds[0] > 0], strict=True)) == {
        -1: 0.25,
        -0.5: 0.25,
        0.5: 0.25,
        1: 0.25,
    }


@pytest.mark.parametrize("with_small", [True, False])
def test_amounts_have_the_noise_of_tau_argus_cell_for_cell(with_small):
    paths = tables_of_tau_argus()
    large, small = (amount_oracle.read_rows(path) for path in paths)
    noise = AmountNoise(SCALING, read(paths[0]), read(paths[1]) if with_small else None)
    rng = np.random.default_rng(3)
    count = 3000
    tops = -np.sort(
        -np.floor(rng.lognormal(4, 3, (count, 3)) * (rng.random((count, 3)) < [1, 0.8, 0.6])), axis=1
    )
    values = tops.sum(axis=1) + np.where(tops[:, 2] > 0, np.floor(rng.exponential(50, count)), 0)
    values[:100] = tops[:100, 0] = rng.random(100)  # an amount below one unit
    tops[:100, 1:] = 0
    shares = rng.integers(0, 10**6, (count, 3)) / 10**6 + 3e-7
    found = noise.perturb(values, tops, as_keys(shares))
    expected = [
        amount_oracle.perturbed(x, top, key, large, small if with_small else None, OF_ORACLE)
        for x, top, key in zip(values, tops, shares, strict=True)
    ]
    assert found.values == pytest.approx(expected, rel=1e-9)
    assert np.mean(found.values != values) > 0.8
    assert (found.values >= 0).all()
    assert (found.values[values == 0] == 0).all()
    fall, rise = noise.bounds(values, tops)
    assert (found.values >= values - fall - 1e-9).all()
    assert (found.values <= values + rise + 1e-9).all()


def test_table_of_tau_argus_is_perturbed_by_its_rule():
    """The table is sex by age of the tau-ARGUS microdata, with their record keys and digit rotation."""
    paths = tables_of_tau_argus()
    large, small = (amount_oracle.read_rows(path) for path in paths)
    noise = AmountNoise(SCALING, *map(read, paths))
    with open(reference_file("tauargus/cellkey/Magnitude/microdata.csv"), newline="") as file:
        records = [(r[0], r[1], float(r[3]), float(r[5])) for r in csv.reader(file, delimiter=";")]
    cells = []
    for sex, age in product(("1", "2", None), ("1", "2", "3", "4", "5", "6", None)):
        inside = [r for r in records if sex in (None, r[0]) and age in (None, r[1])]
        tops = sorted((r[2] for r in inside), reverse=True)[:3]
        digits = f"{sum(r[3] for r in inside if r[2]) % 1:.8f}"[2:]
        keys = [float("0." + digits[shift:] + digits[:shift]) for shift in (1, 2, 3)]
        cells.append((sum(r[2] for r in inside), tops + [0.0] * (3 - len(tops)), keys))
    values, tops, keys = (np.array(each) for each in zip(*cells, strict=True))
    expected = [amount_oracle.perturbed(*cell, large, small, OF_ORACLE) for cell in cells]
    assert len(cells) == 21
    assert noise.perturb(values, tops, as_keys(keys)).values == pytest.approx(expected, rel=1e-9)


def test_noise_of_amounts_has_mean_0_over_the_keys():
    noise = AmountNoise(SCALING, *map(read, tables_of_tau_argus()))
    shares = (np.arange(20_000) + 0.5) / 20_000
    keys = as_keys(np.column_stack([shares, np.roll(shares, 7001), np.roll(shares, 3331)]))
    for value, tops in ((0.4, (0.4, 0, 0)), (5, (5, 0, 0)), (300, (200, 60, 40)), (9e6, (5e6, 3e6, 1e6))):
        many = np.full(len(keys), float(value))
        shown = noise.perturb(many, np.tile(np.array(tops, float), (len(keys), 1)), keys).values
        assert shown.mean() == pytest.approx(value, rel=0.01)
        assert shown.std() > 0


def test_possible_noise_equals_that_of_all_keys():
    table = read(tables_of_tau_argus()[0])
    keys = as_keys((np.arange(50_000) + 0.5) / 50_000)
    for ratio in (0.3, 1.0, 3.7, 5.0, 80.0):
        noise, odds = table.possible(np.array([ratio]))
        assert odds.sum() == pytest.approx(1)
        drawn = table.draw(np.full(len(keys), ratio), keys)
        for value in np.unique(np.round(drawn, 9)):
            same = np.abs(noise[0] - value) < 1e-8
            assert odds[0][same].sum() == pytest.approx(np.mean(np.abs(drawn - value) < 1e-8), abs=1e-4)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([(0, 0, 1), (1, 0, 0.5), (1, 2, 0.4)], "row 1 .* add up to 1"),
        ([(0, 0, 1), (1, 0, 0.4), (1, 2, 0.6)], "row 1 .* mean 0"),
        ([(0, 0, 1), (1, 0, 0.5), (1, 2, 0.5), (5, 5, 0.5), (5, 5, 0.5)], "row 5 .* expected noise"),
        ([(0, 0, 1), (1, -1, 0.5), (1, 3, 0.5)], "found a negative one"),
        ([(0, 1, 0.5), (1, 1, 1)], "row 0"),
        ([(0, 0, 1)], "a row above 0"),
        ([(1, 1, 1), (2, 2, 1)], "0 is published as 0"),
    ],
)
def test_unusable_p_table_of_amounts_is_refused(lines, message):
    with pytest.raises(InvalidParameter, match=message):
        AmountNoiseTable.from_transitions(*np.array(lines, float).T)


@pytest.mark.parametrize(
    "wrong",
    [
        {"small": 0.0},
        {"small": 0.02},
        {"flexpoint": 0.0},
        {"q": 1.0},
        {"factors": (0.9,)},
        {"factors": (1.0, 1.1)},
    ],
)
def test_invalid_scale_of_noise_is_refused(wrong):
    with pytest.raises(InvalidParameter):
        AmountScaling(**{"small": 0.3, "large": 0.03, "flexpoint": 10.0} | wrong)


def test_negative_amounts_and_missing_keys_are_refused():
    noise = AmountNoise(AmountScaling(0.3, 0.03, 10.0), COIN)
    with pytest.raises(InvalidParameter, match="negative"):
        noise.perturb(np.array([-1.0]), np.ones((1, 1)), np.zeros((1, 1), np.uint64))
    with pytest.raises(ShapeMismatch):
        noise.perturb(np.ones(1), np.ones((1, 1)), np.zeros((1, 2), np.uint64))


def test_best_guess_of_one_cell_equals_brute_force_over_all_keys():
    """The cell has one contributor: an attacker who counts keys finds the same probability."""
    noise = AmountNoise(AmountScaling(0.3, 0.03, 1000.0), read(tables_of_tau_argus()[0]))
    value, level = 100.0, 10.0
    keys = as_keys((np.arange(4000) + 0.5) / 4000)[:, None]
    many = np.full(len(keys), value)
    shown = noise.perturb(many, many[:, None], keys)
    errors = np.sort(shown.values - value)
    inside = np.searchsorted(errors, errors + 2 * level + 1e-6) - np.arange(len(errors))
    assert within_level(shown, np.array([0]), np.array([level]))[0] == pytest.approx(
        inside.max() / 4000, abs=2e-3
    )


def test_posterior_shows_that_averaging_over_margins_discloses_a_cell():
    """Attack: the table has one contributor among few others; every margin is another observation."""
    noise = AmountNoise(AmountScaling(0.3, 0.03, 1e9), read(tables_of_tau_argus()[0]))
    shape, level, rng = (2,) * 6, 30.0, np.random.default_rng(5)
    right, said_alone, said_linked = [], [], []
    for _ in range(12):
        inside = np.full(shape, 1.0)
        inside[(0,) * 6] = 200.0
        keys = rng.integers(0, KEY_SPAN, shape).astype(np.uint64)
        counts, cell_keys, largest = inside, keys, inside
        for axis in range(6):
            counts, cell_keys = (
                np.concatenate([each, each.sum(axis=axis, keepdims=True, dtype=each.dtype)], axis=axis)
                for each in (counts, cell_keys)
            )
            largest = np.concatenate([largest, largest.max(axis=axis, keepdims=True)], axis=axis)
        lines = _margins(counts.shape)
        shown = noise.perturb(counts.ravel(), largest.reshape(-1, 1), (cell_keys % KEY_SPAN).reshape(-1, 1))
        target = np.array([0])
        said_alone.append(within_level(shown, target, np.array([level]))[0])
        said_linked.append(linked_within_level(shown, lines, target, np.array([level]))[0])
        holding = largest.ravel() == 200.0
        expected = shown.values[holding] - (counts.ravel()[holding] - 200.0)
        right.append(abs(expected.mean() - 200.0) <= level)
    assert max(said_alone) < 0.6
    assert np.mean(right) > 0.9, "the control must be disclosed"
    assert min(said_linked) > 0.8, "the gate must count what the attacker finds"


def test_posterior_shows_that_trying_all_draws_discloses_amounts_of_many_digits():
    """Attack: infer two amounts of one contributor each and their total from published numbers alone."""
    noise = AmountNoise(AmountScaling(0.3, 0.1, 1000.0), read(tables_of_tau_argus()[0]))
    relations, rng = sparse.csr_matrix([[1.0, 1.0, -1.0]]), np.random.default_rng(1)
    right = {"large": 0, "small": 0}
    said, averaged = [], []
    for size, mean in (("large", 12), ("small", 3)):
        for _ in range(20):
            values = np.rint(rng.lognormal(mean, 1, 2) + 1)
            values = np.append(values, values.sum())
            largest = np.append(values[:2], values[:2].max())[:, None]
            keys = rng.integers(0, KEY_SPAN, (3, 1)).astype(np.uint64)
            keys[2] = (keys[0] + keys[1]) % KEY_SPAN
            shown = noise.perturb(values, largest, keys)
            right[size] += abs(_first_amount(noise, np.rint(shown.values)) - values[0]) <= 0.01 * values[0]
            found, known = (
                solved(shown, values, relations, np.array(units), np.array([0]))[0]
                for units in ([3, 3, 6], [1, 1, 2])
            )
            assert known >= found
            if size == "large":
                said.append(found)
                level = np.array([0.005 * values[0]])
                averaged.append(linked_within_level(shown, relations, np.array([0]), level)[0])
            else:
                assert found < 0.6, "with few digits, more combinations"
    assert right["large"] > 17, "the control must be undone"
    assert right["small"] < 10
    assert np.mean(averaged) < 0.4, "averaging alone does not disclose it"
    assert np.mean(said) > 0.9, "the gate must count what the attacker finds"


def test_posterior_increases_for_a_contributor_who_knows_another_amount():
    """The attacker averages two estimates; the second is the total minus the known amount."""
    noise = AmountNoise(AmountScaling(0.3, 0.3, 1000.0), read(tables_of_tau_argus()[0]))
    relations, rng = sparse.csr_matrix([[1.0, 1.0, -1.0]]), np.random.default_rng(4)
    values, largest = np.array([60.0, 40.0, 100.0]), np.array([[60.0], [40.0], [60.0]])
    level, cell, own = np.array([6.0]), np.array([0]), np.array([1, 1, 2])
    said, reader, right, of_reader = [], [], 0, 0
    for _ in range(400):
        keys = rng.integers(0, KEY_SPAN, (3, 1)).astype(np.uint64)
        shown = noise.perturb(values, largest, keys)
        said.append(insider_within_level(shown, values, relations, own, cell, level)[0])
        assert insider_within_level(shown, values, relations, own + 2, cell, level)[0] == 0
        reader.append(linked_within_level(shown, relations, cell, level)[0])
        first, second = shown.first[0] - 60, shown.first[2] - 100
        of_reader += abs(first) <= 6
        right += abs(first + second) / 2 <= 6
    assert right > of_reader + 20, "the control must disclose more than the cell alone"
    assert np.mean(said) > np.mean(reader) + 0.02
    assert np.mean(said) > right / 400 - 0.03


def test_posterior_shows_that_adding_terms_discloses_their_sum():
    """Attack: turnover is domestic plus foreign, and each is published with separate noise."""
    noise = AmountNoise(AmountScaling(0.3, 0.3, 1e9), read(tables_of_tau_argus()[0]))
    rng, cell = np.random.default_rng(8), np.array([0])
    values = np.array([100.0, 52.0, 48.0])  # amounts of one contributor: the sum and its terms
    level, said, alone, right, of_reader = np.array([10.0]), [], [], 0, 0
    for _ in range(400):
        keys = rng.integers(0, KEY_SPAN, (3, 1)).astype(np.uint64)
        shown = noise.perturb(values, values[:, None], keys)
        second, spread = shown.first[1] + shown.first[2], uncertainty(shown)[0]
        off, variance = np.array([second - shown.first[0]]), np.array([spread[1] + spread[2]])
        said.append(looked_at_twice(shown, cell, level, off, variance)[0])
        alone.append(within_level(shown, cell, level)[0])
        of_reader += abs(shown.first[0] - 100) <= 10
        weights = np.array([1 / spread[0], 1 / variance[0]])
        right += abs(weights @ [shown.first[0], second] / weights.sum() - 100) <= 10
    assert right > of_reader + 40, "the terms must narrow the posterior of the control"
    assert np.mean(said) > np.mean(alone) + 0.05
    assert np.mean(said) > right / 400 - 0.03, "the gate must count what the attacker finds"


def test_posterior_uses_all_constraints_if_each_constraint_alone_leaves_many_combinations():
    noise = AmountNoise(AmountScaling(0.3, 0.1, 1000.0), read(tables_of_tau_argus()[0]))
    rng, count = np.random.default_rng(2), 7
    amounts = np.rint(rng.lognormal(10, 0.3, (count, count)))
    values, largest = (
        np.block([[amounts, each(1)[:, None]], [each(0)[None, :], each(None)]])
        for each in (
            lambda axis: np.asarray(amounts.sum(axis=axis)),
            lambda axis: np.asarray(amounts.max(axis)),
        )
    )
    shown = noise.perturb(
        values.ravel(), largest.reshape(-1, 1), rng.integers(0, KEY_SPAN, (values.size, 1)).astype(np.uint64)
    )
    lines, many, every = _margins(values.shape), np.full(values.size, 9), np.arange(values.size)
    assert solved(shown, values.ravel(), lines, many, every).min() > 0.99
    assert solved(shown, values.ravel(), lines[:1], many, every).max() < 0.6


def _first_amount(noise, published):
    """Return the likeliest first amount from three published numbers, the p-table and the scale alone."""

    def possible(shown):
        """Return the amounts of one contributor that a draw maps to this published amount, and their
        probabilities.
        """
        count = 2 * noise.table.noise.shape[1]
        amounts, draws = np.full(count, shown), np.arange(count)
        for _ in range(60):
            share = noise.scaling.share(amounts)
            values, odds = noise.table.possible(1 / share)
            amounts = (amounts + shown / np.maximum(1 + share * values[draws, draws], 1e-3)) / 2
        fits = (np.abs(amounts * (1 + share * values[draws, draws]) - shown) < 1) & (odds[draws, draws] > 0)
        return amounts[fits], odds[draws, draws][fits]

    (first, of_first), (second, of_second) = map(possible, published[:2])
    totals = first[:, None] + second
    largest = np.maximum(first[:, None], second)
    scale = largest * noise.scaling.share(largest)
    values, odds = noise.table.possible((totals / scale).ravel())
    off = np.abs(totals.ravel()[:, None] + scale.ravel()[:, None] * values - published[2])
    fits = np.where(off <= 3, odds, 0.0).sum(axis=1).reshape(totals.shape) * np.outer(of_first, of_second)
    return first[np.unravel_index(fits.argmax(), fits.shape)[0]] if fits.size else np.nan


def _margins(shape):
    position = np.arange(int(np.prod(shape))).reshape(shape)
    rows, columns, data, line = [], [], [], 0
    for axis in range(len(shape)):
        moved = np.moveaxis(position, axis, 0).reshape(shape[axis], -1)
        for *parts, total in moved.T:
            rows += [line] * len(moved)
            columns += [*parts, total]
            data += [1.0] * len(parts) + [-1.0]
            line += 1
    return sparse.csr_matrix((data, (rows, columns)), shape=(line, position.size))
