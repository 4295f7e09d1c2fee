"""Tests of cuts on five and seven records: violated when separated, and valid for every clustering."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from microguard.sdc.microaggregation.certified.odd_set_cuts import separate_larger
from microguard.sdc.microaggregation.certified.subset_row_cuts import WIDTH
from microguard.sdc.microaggregation.column_generation.columns import as_members
from microguard.sdc.microaggregation.column_generation.master import cut_entries, cut_limits
from microguard.sdc.microaggregation.column_generation.set_partitioning import incidence_of

NONE = np.empty((0, WIDTH), dtype=np.int64)


def ring(length: int) -> np.ndarray:
    """Return one cluster per record of a ring: the record, its neighbour and a further record."""
    return as_members([(i, (i + 1) % length, length + i) for i in range(length)], 3)


@pytest.mark.parametrize("length", [5, 7])
def test_separate_larger_excludes_a_ring_of_half_chosen_clusters(length: int) -> None:
    cuts = separate_larger(ring(length), np.full(length, 0.5), 2 * length, NONE)
    assert [*range(length), *[-1] * (WIDTH - length)] in cuts.tolist()


def test_separate_larger_does_not_return_known_cuts() -> None:
    x = np.full(5, 0.5)
    first = separate_larger(ring(5), x, 10, NONE)
    again = separate_larger(ring(5), x, 10, first)
    assert not {tuple(row) for row in first.tolist()} & {tuple(row) for row in again.tolist()}


@pytest.mark.parametrize("seed", range(8))
def test_separate_larger_returns_violated_and_valid_cuts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, k = 12, 3
    clusters = {tuple(sorted(rng.choice(n, rng.integers(k, 2 * k), replace=False))) for _ in range(30)}
    members = as_members(sorted(clusters), k)
    x = rng.uniform(0.1, 0.6, size=len(members))
    cuts = separate_larger(members, x, n, NONE)
    left = cut_entries(cuts, incidence_of(members, n)) @ x
    assert len(cuts)
    assert np.all(left > cut_limits(cuts) + 0.02 - 1e-9)
    triples = as_members(combinations(range(n), 3), k)
    held = cut_entries(cuts, incidence_of(triples, n)).toarray()
    place = {tuple(row[:3]): at for at, row in enumerate(triples.tolist())}
    for _ in range(50):  # random clusterings of four triples
        chosen = [place[tuple(part)] for part in np.sort(rng.permutation(n).reshape(4, 3), axis=1).tolist()]
        assert np.all(held[:, chosen].sum(axis=1) <= cut_limits(cuts))


def test_separate_larger_finds_no_cut_of_an_integer_solution() -> None:
    members = as_members([(0, 1, 2), (3, 4, 5), (6, 7, 8, 9)], 3)
    assert len(separate_larger(members, np.ones(3), 10, NONE)) == 0
