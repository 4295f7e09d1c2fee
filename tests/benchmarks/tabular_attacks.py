"""Attacks on published tables: each must succeed on the control and fail on the default method.

The control is the usual method of other tools: least cost to the nearest permitted count, factors from 1 to
1.5, and every table solved separately. The attacker knows method, parameters, all published numbers and which
cells are absent, but not the key. Each program asserts the result for the control and for the default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from microguard.sdc.cta import CellTable, adjust
from microguard.sdc.cta.controlled_rounding.controlled_rounding import (
    controlled_rounding,
    with_adjacent_multiples,
)
from microguard.sdc.cta.controlled_rounding.transition import rounding_odds
from microguard.sdc.cta.counts.count_table import totals, with_draws
from microguard.sdc.cta.counts.draw import drawn_counts, transition
from microguard.sdc.cta.counts.posterior import count_posterior
from microguard.sdc.cta.rules.keyed_draw import keyed_numbers
from microguard.sdc.cta.rules.secret_factor import largest_factors, with_secret_levels
from microguard.sdc.cta.rules.sensitivity import minimum_frequency

from tests.benchmarks.table import Table
from tests.benchmarks.tabular.grids import random_table

KEY = bytes(range(32))
LEAST = 3
#: Limit on the posterior of a small count: 0.6 of `[table.quality]`, and sampling error of a few tables.
MOST_POSTERIOR = 0.7
#: Rounding bases: the smallest permitted one, and one with more uncertainty.
BASES = (LEAST, 5)
#: Minimum number of tables or cells with equal published numbers for which shares of true counts are
#: computed.
FEWEST_ALIKE = 60
#: An estimate with at most this relative error counts as the true value.
KNOWN_WITHIN = 0.01


def run(quick: bool = False) -> Iterator[Table]:
    """Run all attacks (posterior of counts, averaging, known direction), and measure the cost of defence."""
    repetitions = 4 if quick else 20
    yield counts_from_what_is_shown(repetitions)
    yield counts_from_a_whole_rounded_table(3000 if quick else 12_000)
    yield counts_from_many_rounded_periods(4 if quick else 24)
    yield values_from_two_tables(repetitions)
    yield values_from_a_known_direction(repetitions)
    yield cost_of_hiding((10, 10) if quick else (15, 15), (1,) if quick else (1, 2, 3))


def counts_from_what_is_shown(repetitions: int) -> Table:
    """Return the largest share of one true small count among cells with one published value."""
    rows: list[tuple[object, ...]] = []
    rounded = tuple((f"rounded to {base}", _rounded(base)) for base in BASES)
    for name, protect in (("least cost", _least_cost), ("drawn", _drawn), *rounded):
        pairs = [protect(_counts(seed), seed) for seed in range(repetitions)]
        true = np.concatenate([t for t, _ in pairs])
        shown = np.concatenate([s for _, s in pairs])
        shares = {
            value: np.bincount(true[shown == value].astype(int), minlength=LEAST)[:LEAST]
            / np.sum(shown == value)
            for value in np.unique(shown)
            if value <= max(BASES) and np.sum(shown == value) >= FEWEST_ALIKE
        }
        worst = max(float(share[1:].max()) for share in shares.values())
        moved = np.mean(shown[true == LEAST] != LEAST) if np.any(true == LEAST) else None
        rows.append((name, 100 * worst, None if moved is None else 100 * moved))
        if protect is _least_cost:
            assert worst > MOST_POSTERIOR, "the attack on the control must succeed"
            continue
        base, odds = LEAST, transition(LEAST)
        if protect is not _drawn:
            base = int(name.split()[-1])
            odds = rounding_odds(base)
        said = count_posterior(true, shown, base, odds, least=LEAST).largest
        assert worst < said + 0.06, "the gate must count what the attacker finds"
        if name != f"rounded to {LEAST}":  # the gate refuses this base for this table
            assert max(worst, said) < MOST_POSTERIOR, "the published value determines a small count"
    columns = ("method", "largest posterior of a count below 3, %", "genuine 3s that move, %")
    note = (
        f"Poisson counts of mean 2 in 6x8 tables, {repetitions} of them, without true zeros. The gate "
        f"refuses a posterior above 60 %: here base {LEAST}, whose 0 hides only 1 and 2."
    )
    return Table("Small counts from what is shown", columns, rows, note)


def counts_from_a_whole_rounded_table(tables: int) -> Table:
    """Return the posterior of one count given all cells of 2x2 tables and the distribution of counts."""
    rows: list[tuple[object, ...]] = []
    rng = np.random.default_rng(0)
    for base in BASES:
        alike: dict[tuple[float, ...], list[float]] = {}
        for _ in range(tables):
            counts = rng.poisson(2.0, (2, 2)) * 1.0
            true, shown = _all_rounded(counts, base, rng.bytes(32))
            alike.setdefault(tuple(shown.tolist()), []).append(true[0])
        many = [np.array(counts) for counts in alike.values() if len(counts) >= FEWEST_ALIKE]
        worst = max(float(np.mean(counts == c)) for counts in many for c in range(1, LEAST))
        rows.append((base, len(alike), len(many), 100 * worst))
        assert worst < MOST_POSTERIOR, "the margins disclose a small count"
    columns = ("base", "tables shown", f"of them {FEWEST_ALIKE} times", "largest posterior below 3, %")
    note = f"{tables} tables, true zeros among them, each with a key of its own."
    return Table("A small count from a whole rounded table", columns, rows, note)


def counts_from_many_rounded_periods(periods: int) -> Table:
    """Estimate constant counts by the mean over periods in which other counts change."""
    rng = np.random.default_rng(1)
    counts, base = rng.poisson(3.0, (10, 10)) * 1.0, max(BASES)
    steady = np.zeros((10, 10), dtype=bool)
    steady[::2, ::2] = True
    seen = []
    for _ in range(periods):
        changing = ~steady & (rng.random((10, 10)) < 0.05)
        counts = np.where(changing, rng.poisson(3.0, (10, 10)), counts)
        _, shown = _all_rounded(counts, base, KEY)
        seen.append(shown.reshape(11, 11)[:10, :10][steady])
    values, true = np.array(seen), counts[steady]
    first = np.abs(values[0] - true).mean()
    last = np.abs(values.mean(axis=0) - true).mean()
    still = float(np.mean(np.all(values == values[0], axis=0)))
    known = float(np.mean(np.rint(values.mean(axis=0)) == true))
    rows: list[tuple[object, ...]] = [(periods, first, last, 100 * still, 100 * known)]
    columns = (
        "periods",
        "mean error of one",
        "of their mean",
        "shown alike in all, %",
        "mean is the truth, %",
    )
    note = (
        "Three in four cells change with odds of 5 % a period. Rounding does not remember other periods: the "
        "manifest says so. Drawn small counts stay as they are."
    )
    return Table("Counts that stay the same over rounded periods, base 5", columns, rows, note)


def values_from_two_tables(repetitions: int) -> Table:
    """Count midpoints of the values of one cell in two tables of a survey within 1 % of the true value."""
    rows: list[tuple[object, ...]] = []
    for name in ("solved for itself", "one value for ever"):
        hit = single = cells = 0
        for seed in range(repetitions):
            table = random_table((6, 6), seed, room=100.0, lognormal=True)
            names = [str(cell) for cell in range(table.cells)]
            spread = 0.25 if name == "solved for itself" else 1.0
            secret = with_secret_levels(table, KEY, names, spread)
            first = adjust(secret, effort="fast", seed=0).values
            again = _turned(secret, first) if name == "solved for itself" else first
            s, x = table.sensitive & (table.values > 0), table.values
            hit += int(np.sum(np.abs((first + again)[s] / 2 - x[s]) <= KNOWN_WITHIN * x[s]))
            single += int(np.sum(np.abs(first[s] - x[s]) <= KNOWN_WITHIN * x[s]))
            cells += int(s.sum())
        rows.append((name, cells, single, hit))
        assert single == 0
        assert (hit > 0) == (name == "solved for itself"), "averaging must succeed only on the control"
    columns = ("second table", "sensitive cells", "known from one table", "known from the mean of two")
    return Table("Averaging over two tables of one survey", columns, rows)


def values_from_a_known_direction(repetitions: int) -> Table:
    """Return the error of the best estimate with known directions; the protection is 20 %."""
    rows: list[tuple[object, ...]] = []
    for name, spread in (("factors to 1.5", 0.25), ("wide bands", 1.0)):
        errors, widest = [], []
        for seed in range(repetitions):
            table = random_table((6, 6), seed, room=100.0)
            names = [str(cell) for cell in range(table.cells)]
            d = adjust(with_secret_levels(table, KEY, names, spread), effort="fast", seed=seed)
            factors = largest_factors(table, spread)
            s = table.sensitive & (table.values > 0)
            t, x, up = d.values[s], table.values[s], (d.deviations > 0)[s]
            near = np.where(up, t / 1.2, t / 0.8)
            far = np.where(up, t / (1 + 0.2 * factors.upper[s]), t / (1 - 0.2 * factors.lower[s]))
            errors.append(np.abs((near + far) / 2 - x) / x)
            widest.append(np.abs(near - far) / (near + far))
        rows.append((name, 100 * np.median(np.concatenate(errors)), 100 * np.median(np.concatenate(widest))))
    assert rows[0][1] < 6, "the attack on the control must succeed"
    assert rows[1][2] >= 20 * 0.95, "a known direction discloses the protected percentage"
    columns = ("levels", "median error of the guess, %", "what the guess cannot exclude to either side, %")
    return Table("Values from a known direction, 20 % protected", columns, rows)


def cost_of_hiding(shape: tuple[int, ...], seeds: tuple[int, ...]) -> Table:
    """Compare the objective of the secure default with plain CTA on the same tables."""
    rows: list[tuple[object, ...]] = []
    for seed in seeds:
        table = random_table(shape, seed, room=100.0)
        names = [str(cell) for cell in range(table.cells)]
        plain = adjust(table, effort="fast").objective
        costs = [
            adjust(with_secret_levels(table, KEY, names, spread), effort="fast").objective / plain
            for spread in (0.25, 0.5, 1.0)
        ]
        rows.append(("x".join(map(str, shape)), seed, 1.0, *costs))
    columns = ("table", "seed", "plain CTA", "spread 0.25", "spread 0.5", "spread 1 (default)")
    return Table("Cost of hiding, objective over that of plain CTA", columns, rows)


def _counts(seed: int) -> np.ndarray:
    counts = np.random.default_rng(seed).poisson(2.0, (6, 8)) * 1.0
    return np.where(counts == 0, 1.0, counts)


def _count_table(counts: np.ndarray) -> CellTable:
    table = random_table(counts.shape, 0)
    full = counts
    for axis in range(counts.ndim):
        full = np.concatenate([full, full.sum(axis=axis, keepdims=True)], axis=axis)
    values, nothing = full.ravel(), np.zeros(full.size)
    return replace(
        table,
        values=values,
        sensitive=nothing > 0,
        lower_protection=nothing,
        upper_protection=nothing,
        lower_capacity=values,
        upper_capacity=values,
    )


def _least_cost(counts: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    table = _count_table(counts)
    rule = minimum_frequency(table.values, LEAST)
    room = np.maximum(table.values, rule.upper)
    table = replace(table, sensitive=rule.sensitive, lower_protection=rule.lower, upper_protection=rule.upper,
                    upper_capacity=room)  # fmt: skip
    inside = ~totals(table)
    return table.values[inside], np.rint(adjust(table, effort="fast", seed=seed).values[inside])


def _drawn(counts: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    table = _count_table(counts)
    names = [f"{seed} {cell}" for cell in range(table.cells)]
    drawn = drawn_counts(table.values, LEAST, KEY, names)
    inside = ~totals(table)
    secret = with_draws(table, table.values, drawn, LEAST)
    return table.values[inside], np.rint(adjust(secret, effort="fast", seed=seed).values[inside])


def _all_rounded(counts: np.ndarray, base: int, key: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Return true and published values of all cells including margins, each (cells,)."""
    table = with_adjacent_multiples(_count_table(counts), base)
    names = [f"{cell:04d}" for cell in range(table.cells)]
    return table.values, controlled_rounding(table, base, key, names).values


def _rounded(base: int) -> Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]:
    def protect(counts: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
        true, shown = _all_rounded(counts, base, seed.to_bytes(32, "big"))
        inside = ~totals(_count_table(counts))
        return true[inside], shown[inside]

    return protect


def _turned(table: CellTable, first: np.ndarray) -> np.ndarray:
    """Return another table of the survey with the same levels and directions of another seed."""
    number = keyed_numbers(KEY, b"another table", [str(cell) for cell in range(table.cells)])
    up = (first > table.values) ^ (number < 0.5)
    turning = table.sensitive & (table.values > 0)
    free = replace(
        table,
        lower_capacity=np.where(turning & up, 0.0, table.lower_capacity),
        upper_capacity=np.where(turning & ~up, 0.0, table.upper_capacity),
    )
    return adjust(free, effort="fast").values
