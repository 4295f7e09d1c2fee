"""Attacks on counts with cell-key noise: they succeed only on tables that the gate refuses to publish.

The attacker knows the method, its parameters, every published number, and that true margins are additive, but
not the keys. Averaging (Asghar and Kaafar 2020; Rinott, O'Keefe, Shlomo and Skinner 2018) uses that each
margin is another noisy observation of the sum of its parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from microguard.sdc.cta.cell_keys.differences import Differences
from microguard.sdc.cta.cell_keys.intervals import count_intervals
from microguard.sdc.cta.cell_keys.noise_table import KEY_SPAN, CellKeyParameters, NoiseTable
from microguard.sdc.cta.cell_keys.posterior import Candidates, candidates, given_all
from scipy import sparse

from tests.benchmarks.table import Table

LEAST = 3
#: Limit on the posterior of a small count, as in `[table.quality]`.
MOST_POSTERIOR = 0.7
NOISES = (CellKeyParameters(3, 5, 2.0), CellKeyParameters(3, 8, 4.0))
#: Shapes, mean counts of a cell, and description of the table.
CASES = (
    ((15, 20), 3.0, "two dimensions"),
    ((15, 20), 0.5, "two dimensions, sparse"),
    ((3, 4, 5), 3.0, "three dimensions"),
    ((2,) * 4, 3.0, "all tables of four variables"),
    ((2,) * 5, 3.0, "all tables of five variables"),
    ((2,) * 5, 30.0, "the same of larger counts"),
)
#: Number of small counts per table for which intervals are computed.
EXAMINED = 40
#: Probability from which the attacker's best guess counts as likely, in tables that pass the gate, and the
#: minimum number of such cells.
LIKELY, FEWEST = 0.5, 30


def run(quick: bool = False) -> Iterator[Table]:
    """Attack by averaging over all margins of a table, and by two cells that differ by one record."""
    yield averaging(2 if quick else 10)
    yield one_record_apart(300 if quick else 1500)


def averaging(repetitions: int) -> Table:
    """Compute the posterior of small counts given all margins, and the tables that the gate accepts."""
    rows: list[tuple[object, ...]] = []
    succeeded = False
    for (shape, mean, name), parameters in product(CASES, NOISES):
        noise, rng = NoiseTable.of(parameters), np.random.default_rng(7)
        lines, is_total = _margins(shape)
        alone_most, hot, hot_right, determined, passed = 0.0, 0, 0, 0, 0
        in_passed: list[np.ndarray] = []
        for _ in range(repetitions):
            inside = rng.poisson(mean, shape)
            keys = np.where(inside > 0, rng.integers(0, KEY_SPAN, shape), 0)  # cell keys: sums of record keys
            counts = _with_margins(inside)
            shown = noise.perturb(counts, _with_margins(keys).astype(np.uint64))
            alone = candidates(noise, counts, shown, is_total.astype(int))
            everything = np.arange(len(counts))
            differences = Differences.of(lines, shown)
            linked = differences.known(given_all(alone, lines, everything), everything, alone)
            surest, sure = float(alone.surest(LEAST).max()), linked.surest(LEAST)
            right = _likeliest(linked) == counts
            small = np.flatnonzero((counts > 0) & (counts < LEAST))[:EXAMINED]
            intervals = count_intervals(alone.lower, alone.upper, lines, small)
            assert np.all((intervals.lower <= counts[small]) & (counts[small] <= intervals.upper))
            alone_most = max(alone_most, surest)
            hot, hot_right = hot + _above(sure), hot_right + _above(sure[right])
            determined += int(intervals.determined.sum())
            if max(surest, sure.max()) <= MOST_POSTERIOR and not intervals.determined.any():
                passed += 1
                in_passed.append(right[sure > LIKELY])
        pooled = np.concatenate([*in_passed, np.zeros(0, bool)])
        guessed = 100 * float(pooled.mean()) if len(pooled) >= FEWEST else None
        assert guessed is None or guessed < 100 * MOST_POSTERIOR, (
            "the gate must count what the attacker finds"
        )
        noise_text = f"{parameters.largest}, {parameters.variance:g}"
        shares = (hot / repetitions, 100 * hot_right / hot if hot else None, determined / repetitions)
        head = (name, f"{mean:g}", noise_text, len(counts), 100 * alone_most)
        rows.append((*head, *shares, f"{passed} of {repetitions}", guessed))
        succeeded |= hot_right > 0
    assert succeeded, "the attack on the control must succeed"
    columns = (
        "tables",
        "mean count",
        "D, V",
        "cells",
        "surest small count alone, %",
        "above 70 % given all, a table",
        "of these right, %",
        "determined, a table",
        "pass the gate",
        "of cells above 50 % there, right, %",
    )
    note = (
        f"Poisson counts, {repetitions} tables a row, every margin published with noise of its own. Above "
        "70 %: cells of which one true count of 1 or 2 is that likely, given everything. The gate refuses "
        "the table where there is any."
    )
    return Table("Averaging over margins", columns, rows, note)


def one_record_apart(repetitions: int) -> Table:
    """Attack two published totals whose true counts differ by at most one record."""
    rows: list[tuple[object, ...]] = []
    lines = sparse.csr_matrix(np.array([[1.0, 1.0, -1.0]]))
    for parameters in NOISES:
        noise, rng = NoiseTable.of(parameters), np.random.default_rng(3)
        one = (rng.random(repetitions) < 0.5).astype(np.int64)
        most = rng.integers(20, 60, repetitions)
        counts = np.stack([most, one, most + one], axis=1)
        keys = rng.integers(0, KEY_SPAN, (repetitions, 2)) * np.stack([np.ones_like(one), one], axis=1)
        keys = np.column_stack([keys, keys.sum(axis=1)]).astype(np.uint64)
        shown = np.stack([noise.perturb(counts[:, place], keys[:, place]) for place in range(3)], axis=1)
        by_difference = np.mean((shown[:, 2] != shown[:, 0]) == (one == 1))
        sure, told = [], 0
        for true, seen in zip(counts, shown, strict=True):
            alone = candidates(noise, np.array([99, 0, 99]), seen, np.array([0, 1, 0]))
            linked = given_all(alone, lines, np.array([1]))
            known = Differences.of(lines, seen).known(linked, np.array([1]), alone)
            if seen[1] == 0 and seen[2] != seen[0]:
                assert true[1] > 0
                told += 1
                sure.append((linked.surest(LEAST)[0], known.surest(LEAST)[0]))
        without, seeing = np.mean(sure, axis=0)
        noise_text = f"{parameters.largest}, {parameters.variance:g}"
        shares = (100 * by_difference, 100 * told / int(one.sum()), 100 * without, 100 * seeing)
        rows.append((noise_text, *shares))
        assert by_difference > MOST_POSTERIOR, "the attack on the control must succeed"
        assert seeing > without, "the gate must count what the attacker finds"
    columns = (
        "D, V",
        "whether a record is there, by the difference, right %",
        "of those published as 0 that are, told, %",
        "likeliest small count by margins alone, %",
        "and by the difference, %",
    )
    note = "A record is there in half of the cases: 50 % is chance."
    return Table("Two totals that differ by one record or none", columns, rows, note)


def _above(sure: np.ndarray) -> int:
    return int(np.sum(sure > MOST_POSTERIOR))


def _likeliest(found: Candidates) -> np.ndarray:
    return np.asarray(found.counts[np.arange(len(found.first)), np.argmax(found.odds, axis=1)])


def _with_margins(counts: np.ndarray) -> np.ndarray:
    for axis in range(counts.ndim):
        counts = np.concatenate([counts, counts.sum(axis=axis, keepdims=True)], axis=axis)
    return counts.ravel()


def _margins(shape: tuple[int, ...]) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Return the constraints of a complete table with all its margins, and the total cells."""
    whole = tuple(size + 1 for size in shape)
    position = np.arange(int(np.prod(whole))).reshape(whole)
    lines = []
    for axis, size in enumerate(shape):
        totals = np.take(position, [size], axis=axis).ravel()
        parts = np.moveaxis(np.take(position, range(size), axis=axis), axis, 0).reshape(size, -1)
        rows = np.concatenate([np.tile(np.arange(len(totals)), size), np.arange(len(totals))])
        entries = np.concatenate([np.ones(parts.size), -np.ones(len(totals))])
        cells = np.concatenate([parts.ravel(), totals])
        lines.append(sparse.csr_matrix((entries, (rows, cells)), shape=(len(totals), position.size)))
    is_total = np.ones(whole, dtype=bool)
    is_total[tuple(slice(0, size) for size in shape)] = False
    return sparse.vstack(lines).tocsr(), is_total.ravel()
