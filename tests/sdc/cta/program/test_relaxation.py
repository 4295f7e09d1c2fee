"""Tests of relaxation: capacities are widened only if necessary, in the given order, by the least amount."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from microguard.sdc.cta import CellTable, adjust
from microguard.sdc.cta.program.infeasible import ImpossibleConstraints
from microguard.sdc.cta.program.relaxation import relax
from microguard.sdc.cta.table.check import check

#: A 2 x 2 table: a b | a+b / c d | c+d / a+c b+d | all.
CELLS = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8))
LINES = np.zeros((6, 9))
for number, (one, other, total) in enumerate(CELLS):
    LINES[number, [one, other]], LINES[number, total] = 1, -1
REACH = 4
"""Twice the level: no least change of a cell goes further."""
STEPS = np.array(list(product(range(-REACH, REACH + 1), repeat=4)), dtype=float)


def two_by_two(inner: list[int], level: int, capacity: np.ndarray) -> CellTable:
    a, b, c, d = inner
    values = np.array([a, b, a + b, c, d, c + d, a + c, b + d, a + b + c + d], dtype=float)
    sensitive = np.arange(9) == 0
    lower, upper = np.minimum(capacity, values), capacity.astype(float)
    lower[0], upper[0] = min(level, a), level
    return CellTable(
        values=values,
        relations=LINES,
        sensitive=sensitive,
        lower_protection=np.where(sensitive, level, 0.0),
        upper_protection=np.where(sensitive, level, 0.0),
        lower_capacity=lower,
        upper_capacity=upper,
    )


def least_room(table: CellTable, open_: np.ndarray) -> float:
    """Return the least cost over all changes of the inner cells; infinity if none protects."""
    a, b, c, d = STEPS.T
    changes = np.stack([a, b, a + b, c, d, c + d, a + c, b + d, a + b + c + d], axis=1)
    level = table.upper_protection[0]
    beyond = np.maximum(changes - table.upper_capacity, 0) + np.maximum(-changes - table.lower_capacity, 0)
    good = (np.abs(a) >= level) & (table.values + changes >= 0).all(axis=1)
    good &= (beyond[:, ~open_] == 0).all(axis=1)
    return float(beyond[good].sum(axis=1).min()) if good.any() else np.inf


@pytest.mark.parametrize("mode", ["at-least", "exact"])
def test_relax_adds_the_least_capacity_of_brute_force(mode: str) -> None:
    rng = np.random.default_rng(3)
    counted = {"solvable": 0, "capacities": 0, "fixed": 0, "never": 0}
    for _ in range(40):
        table = two_by_two(list(rng.integers(2, 9, 4)), 2, rng.choice([0, 0, 1, 2], 9))
        moves = (table.upper_capacity > 0) | (table.lower_capacity > 0)
        held = rng.random(9) < 0.25
        free = ~table.sensitive & ~held & (table.values > 0)
        unrelaxed, first = least_room(table, np.zeros(9, dtype=bool)), least_room(table, free & moves)
        try:
            adjust(table, mode=mode, algorithm="alternate")
        except ImpossibleConstraints:
            assert np.isinf(unrelaxed)
        else:
            assert unrelaxed == 0
            counted["solvable"] += 1
            continue
        relaxation = relax(table, mode, ("capacities", "fixed"), held)
        expected = first if np.isfinite(first) else least_room(table, free)
        if relaxation is None:
            assert np.isinf(expected)
            counted["never"] += 1
            continue
        assert (relaxation.added, relaxation.least) == (expected, True)
        assert list(relaxation.cells) == (["capacities"] if np.isfinite(first) else ["capacities", "fixed"])
        counted[list(relaxation.cells)[-1]] += 1
        wider = relaxation.apply(table)
        adjusted = adjust(wider, mode=mode, algorithm="alternate")
        assert check(wider, adjusted.values, mode).sound
        assert not np.any((adjusted.values != table.values) & held & ~moves)
        same = table.sensitive | held
        assert np.array_equal(relaxation.upper_capacity[same], table.upper_capacity[same])
    assert all(counted.values()), counted
