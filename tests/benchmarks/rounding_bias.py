"""Controlled rounding over many keys: every result is checked, and the mean of each cell is compared.

The random walk is unbiased if it ends at multiples, and so is the draw of small tables. In larger tables an
integer program completes the walk, which can favour a direction. The bias of a cell is its mean over the keys
minus its count. The distribution of a rounding also has an exact bias, without sampling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from microguard.sdc.cta import CellTable
from microguard.sdc.cta.controlled_rounding.controlled_rounding import controlled_rounding
from microguard.sdc.cta.controlled_rounding.multiples import FEW_CELLS, UNBIASED
from microguard.sdc.cta.controlled_rounding.unbiased_draw import draw_rounding, walk_ends_whole
from microguard.sdc.cta.table.summation import Summation

from tests.benchmarks.parts import Parts
from tests.benchmarks.table import Table
from tests.sdc.cta.controlled_rounding.test_controlled_rounding import (
    assert_rounded,
    grid_table,
    hierarchical_table,
    names,
)

BASE = 5
TABLES = 4
#: Keyed distributions of a table whose exact bias is computed.
DISTRIBUTIONS = 5
#: Limit of a mean's deviation in standard errors: one in a million unbiased cells exceeds it.
CHANCE = 5.0
#: Draw a table with the names of its cells by a seed.
Draw = Callable[[int], tuple[CellTable, list[str]]]


def _grid(shape: tuple[int, ...], seed: int) -> tuple[CellTable, list[str]]:
    table = grid_table(np.random.default_rng(seed).poisson(3.0, shape) * 1.0, BASE)
    return table, names(table.cells)


#: Tables by kind, and the number of keys. The last tables are larger than those drawn without bias.
KINDS: dict[str, tuple[Draw, int]] = {
    "4x5": (partial(_grid, (4, 5)), 2_000),
    "10x10": (partial(_grid, (10, 10)), 2_000),
    "two hierarchies, 6x6": (lambda seed: hierarchical_table(BASE, seed, (4, 4)), 2_000),
    "two hierarchies, 12x9": (lambda seed: hierarchical_table(BASE, seed), 200),
    "3x3x3": (partial(_grid, (3, 3, 3)), 2_000),
    "4x4x3": (partial(_grid, (4, 4, 3)), 2_000),
    "two hierarchies, 21x15": (lambda seed: hierarchical_table(BASE, seed, (14, 10)), 200),
}


def run(quick: bool = False) -> Iterator[Table]:
    """Round four tables of each kind with up to 2,000 keys (quick: one table with 50 keys)."""
    count = 1 if quick else TABLES
    rooms = ("sdc/cta/controlled_rounding", "sdc/cta/table", "sdc/solver")
    parts = Parts("rounding_bias-quick" if quick else "rounding_bias", rooms=rooms)
    rows: list[tuple[object, ...]] = []
    for kind, (draw, most_keys) in KINDS.items():
        keys = min(most_keys, 50) if quick else most_keys
        measured = [
            parts.answer(f"{kind} {seed} {keys}", partial(bias, draw, seed, keys))[0] for seed in range(count)
        ]
        largest = max(float(np.abs(mean).max()) for mean, _, _ in measured)
        chance = max(float(error.max()) for _, error, _ in measured)
        unbiased = float(np.mean([share for _, _, share in measured]))
        exact = [exact_bias(draw(seed)[0]) for seed in range(count)]
        every = np.concatenate([mean for mean, _, _ in measured])
        rows.append(
            (
                kind,
                count,
                keys,
                100 * unbiased,
                largest,
                float(np.sqrt(np.mean(every**2))),
                chance,
                every.mean(),
                max((each for each in exact if each is not None), default=None),
            )
        )
        if unbiased == 1.0:
            assert all((np.abs(mean) <= CHANCE * error + 1e-9).all() for mean, error, _ in measured), kind
    parts.forget()
    columns = (
        "table", "tables", "keys", "unbiased, %", "largest bias of a cell", "root mean square",
        "deviation by chance", "mean bias", "exact bias of the draw",
    )  # fmt: skip
    note = (
        "In counts. Every result is additive, at multiples next to the counts, and asserted. Where all are "
        "unbiased (the walk alone decides, or a rounding is drawn), no cell is further than "
        f"{CHANCE:.0f} deviations of chance from its count, asserted."
    )
    yield Table(f"Controlled rounding to base {BASE}: mean over keys less the count", columns, rows, note)


def bias(draw: Draw, seed: int, keys: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the bias of each cell, its standard error, and the share of unbiased results."""
    table, called = draw(seed)
    total, unbiased = np.zeros(table.cells), 0
    for number in range(keys):
        result = controlled_rounding(table, BASE, number.to_bytes(32, "big"), called)
        assert_rounded(table, result, BASE)
        total += result.deviations
        unbiased += result.algorithm in UNBIASED
    rest = table.values % BASE
    return total / keys, np.sqrt(rest * (BASE - rest) / keys), unbiased / keys


def exact_bias(table: CellTable) -> float | None:
    """Return the largest bias of a cell over the distributions of some keys; None without such a
    distribution.
    """
    summation = Summation.from_relations(table.relations)
    if table.cells > FEW_CELLS or summation is None or walk_ends_whole(summation):
        return None
    shares = table.values / BASE
    moving = np.flatnonzero(np.ceil(shares) > np.floor(shares))
    rests = -(table.relations @ np.floor(shares))
    odds = (shares - np.floor(shares))[moving]
    draws = [draw_rounding(table.relations[:, moving], rests, odds, key, 0.5) for key in range(DISTRIBUTIONS)]
    assert all(draw is not None for draw in draws)
    return max(BASE * draw.bias for draw in draws if draw is not None)
