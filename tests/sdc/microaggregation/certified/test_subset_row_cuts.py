"""Tests of subset-row cuts against all triples."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from microguard.sdc.microaggregation.certified.subset_row_cuts import separate
from microguard.sdc.microaggregation.column_generation.columns import as_members

NONE = np.empty((0, 3), dtype=np.int64)


def test_separate_excludes_three_half_chosen_clusters() -> None:
    members = as_members([(0, 1, 3), (1, 2, 4), (0, 2, 5), (3, 4, 5)], 3)
    x = np.array([0.5, 0.5, 0.5, 0.5])
    cuts = separate(members, x, 6, NONE)
    assert [0, 1, 2, -1, -1, -1, -1] in cuts.tolist()


def test_separate_does_not_return_known_cuts() -> None:
    members = as_members([(0, 1, 3), (1, 2, 4), (0, 2, 5), (3, 4, 5)], 3)
    x = np.array([0.5, 0.5, 0.5, 0.5])
    known = np.array([[0, 1, 2, -1, -1, -1, -1]])
    assert known[0].tolist() not in separate(members, x, 6, known).tolist()


@pytest.mark.parametrize("seed", range(8))
def test_separate_finds_every_violated_triple(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, k = 9, 3
    clusters = {tuple(sorted(rng.choice(n, rng.integers(k, 2 * k), replace=False))) for _ in range(14)}
    members = as_members(sorted(clusters), k)
    x = rng.uniform(0.0, 0.6, size=len(members))
    violated = set()
    for triple in combinations(range(n), 3):
        left = sum(
            value for row, value in zip(members, x, strict=True) if len(set(triple) & set(row.tolist())) >= 2
        )
        together = sum(
            any({i, j} <= set(row.tolist()) for row in members) for i, j in combinations(triple, 2)
        )
        # A single pair never exceeds one in a solution of the master problem.
        if left > 1.02 and together >= 2:
            violated.add(triple)
    cuts = separate(members, x, n, NONE)
    assert {tuple(row[:3]) for row in cuts.tolist()} == violated
    assert np.all(cuts[:, 3:] == -1)


def test_separate_finds_no_cut_of_an_integer_solution() -> None:
    members = as_members([(0, 1, 2), (3, 4, 5)], 3)
    assert len(separate(members, np.ones(2), 6, NONE)) == 0
