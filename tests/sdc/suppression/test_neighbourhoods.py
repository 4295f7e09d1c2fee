"""Tests of cells near a primary cell: the incremental search equals its definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from microguard.sdc.suppression.neighbourhoods import Neighbourhoods, sizes_up_to

from tests.sdc.suppression.tables import KINDS_OF_TABLES, tiny_problem


def _grown(near: Neighbourhoods, cells: np.ndarray, price: np.ndarray, most: int) -> np.ndarray:
    """Return the cells near given cells, counting in each step the constraints of all cells found so far."""
    inside, count = np.unique(cells), 0
    while len(inside) < most:
        count += 1
        found, times = np.unique(near.members(near.relations_of(inside)), return_counts=True)
        found = np.setdiff1d(found[(times >= count) & np.isfinite(price[found])], inside)
        found = found[np.argsort(price[found], kind="stable")[: most - len(inside)]]
        if len(found) == 0 and count == 1:
            break
        count = count if len(found) else 0
        inside = np.union1d(inside, found)
    return inside


@pytest.mark.parametrize("kind", KINDS_OF_TABLES)
def test_around_equals_its_definition_in_repeated_calls(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Neighbourhoods, "_balanced", lambda self, cells: cells)
    rng = np.random.default_rng(0)
    for seed in range(5):
        problem = tiny_problem(kind, seed)
        near = Neighbourhoods(problem.relations)
        for most in (1, 4, 9, problem.cells):
            price = np.where(rng.random(problem.cells) < 0.7, rng.integers(1, 4, problem.cells), np.inf)
            cells = rng.integers(0, problem.cells, 2)
            found = near.around(cells, price.__getitem__, most)
            assert np.array_equal(found, _grown(near, cells, price, most))


def test_sizes_grow_to_the_whole_table_by_at_most_a_constant_factor() -> None:
    assert sizes_up_to(100) == (250, 2_000, 100)
    sizes = sizes_up_to(1_000_000)
    assert sizes[-1] == 1_000_000
    assert all(small < large <= 8 * small for small, large in itertools.pairwise(sizes))
