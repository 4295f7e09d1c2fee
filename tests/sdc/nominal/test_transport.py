"""Tests of transport of records: correct counts, few moved records, short distances."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.sdc.errors import ShapeMismatch
from microguard.sdc.nominal import transport as module
from microguard.sdc.nominal.distances import Hierarchical, Ordinal
from microguard.sdc.nominal.frequency import FrequencyVector, collapse, from_frame
from microguard.sdc.nominal.similarity import Similarity
from microguard.sdc.nominal.transport import carry_back, transport


def applied(frequencies: FrequencyVector, flows) -> np.ndarray:
    counts = frequencies.counts.copy()
    for origin, target, count in zip(flows.origin, flows.target, flows.count, strict=True):
        assert count >= 1
        counts[origin] -= count
        counts[target] += count
    return counts


def hamming(frequencies: FrequencyVector, flows) -> int:
    differing = (frequencies.codes[flows.origin] != frequencies.codes[flows.target]).sum(axis=1)
    return int((differing * flows.count).sum())


def test_transport_moves_a_record_to_the_combination_that_differs_in_one_value():
    frame = pd.DataFrame({"x": list("aaab"), "y": list("pppp"), "z": list("uuuu")}, index=[4, 5, 6, 7])
    coded = from_frame(frame)
    flows = transport(coded.frequencies, np.array([4, 0]))
    assert (flows.origin.tolist(), flows.target.tolist(), flows.count.tolist()) == ([1], [0], [1])
    moved = coded.decode_combinations(carry_back(coded.combination, flows))
    assert moved["x"].tolist() == list("aaaa")
    assert moved.index.tolist() == [4, 5, 6, 7]


@given(st.data())
def test_transport_of_few_records_has_minimal_total_distance(data):
    rows = data.draw(st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=2, max_size=7))
    frequencies = from_frame(pd.DataFrame(rows)).frequencies
    targets = sorted(
        data.draw(st.lists(st.integers(0, len(frequencies) - 1), min_size=len(rows), max_size=len(rows)))
    )
    counts = np.bincount(targets, minlength=len(frequencies))
    flows = transport(frequencies, counts)
    assert np.array_equal(applied(frequencies, flows), counts)
    change = counts - frequencies.counts
    assert flows.count.sum() == np.maximum(change, 0).sum()
    giving = np.repeat(np.arange(len(counts)), np.maximum(-change, 0))
    taking = np.repeat(np.arange(len(counts)), np.maximum(change, 0))
    least = min(
        sum(
            int((frequencies.codes[i] != frequencies.codes[j]).sum())
            for i, j in zip(giving, way, strict=True)
        )
        for way in permutations(taking)
    )
    assert hamming(frequencies, flows) == least


def test_transport_by_rings_keeps_regions_and_counts_near_the_least_distance(monkeypatch):
    rng = np.random.default_rng(2)
    sizes = np.array([2, 3, 5, 7])
    codes = np.column_stack([rng.integers(0, size, 2_000) for size in sizes])
    frequencies, combination = collapse(codes, sizes, tuple("abcd"), regions=rng.integers(0, 3, 2_000))
    counts = frequencies.counts.copy()
    for region in range(3):
        mine = np.flatnonzero(frequencies.regions == region)
        for i in rng.choice(mine, 60, replace=False):
            counts[i], extra = 0, counts[i]
            counts[rng.choice(mine)] += extra
    exact = transport(frequencies, counts)
    monkeypatch.setattr(module, "_EXACT", 0)
    near = transport(frequencies, counts)
    for flows in (exact, near):
        assert np.array_equal(applied(frequencies, flows), counts)
        assert np.array_equal(frequencies.regions[flows.origin], frequencies.regions[flows.target])
        after = carry_back(combination, flows)
        assert np.array_equal(np.bincount(after, minlength=len(counts)), counts)
    assert near.count.sum() == exact.count.sum()
    assert hamming(frequencies, exact) <= hamming(frequencies, near) <= 1.25 * hamming(frequencies, exact)


def test_transport_of_many_variables_does_not_need_every_ring():
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 3, (400, 25))
    frequencies, _ = collapse(codes, np.full(25, 3), tuple(range(25)))
    counts = np.zeros_like(frequencies.counts)
    counts[:100] = 4
    assert np.array_equal(applied(frequencies, transport(frequencies, counts)), counts)


def test_transport_refuses_a_change_of_region_totals():
    frequencies = from_frame(pd.DataFrame({"x": [1, 2]})).frequencies
    with pytest.raises(ShapeMismatch):
        transport(frequencies, np.array([2, 1]))


@pytest.mark.parametrize("exact", [True, False])
def test_transport_follows_ordinal_and_hierarchical_distances(monkeypatch: pytest.MonkeyPatch, exact: bool):
    if not exact:
        monkeypatch.setattr(module, "_EXACT", 0)
    # both records differ in age and in the ancestor of the code
    codes = np.array([[0, 0], [1, 0], [6, 0], [7, 1]])
    frequencies = FrequencyVector(codes, np.array([4, 1, 1, 4]), np.array([8, 2]), ("age", "code"))
    tree = Hierarchical({"x": ("one",), "y": ("other",)})
    similarity = Similarity.of(frequencies, [list(range(8)), ["x", "y"]], {"age": Ordinal(), "code": tree})
    flows = transport(frequencies, np.array([5, 0, 0, 5]), similarity)
    assert list(zip(flows.origin.tolist(), flows.target.tolist(), strict=True)) == [(1, 0), (2, 3)]


def test_rings_are_ordered_by_distance():
    costs = [[0, 1], [0, 2, 5]]
    rings = list(module._rings(costs))
    assert rings == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]
