"""Tests of recoding: the search equals an exhaustive search, and its result is k-anonymous."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microguard.sdc.errors import InvalidParameter
from microguard.sdc.recoding import Ladder, Lattice, recode

MEASURES = ("granularity", "precision", "discernibility")


def ladder(*levels):
    """Return a hierarchy from the levels below the last one."""
    values = len(levels[0])
    return Ladder(np.array([*levels, [-1] * values], np.int64))


AGE = ladder([0, 1, 2, 3], [0, 0, 1, 1])
PLACE = ladder([0, 1, 2, 3, 4, 5], [0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 1, 1])
SEX = ladder([0, 1, -1])  # the last value is missing


def lattice(records, k, measure, weights=(1.0, 2.0, 1.0), regions=None):
    rows = np.array(
        [[*row, region] for row, region in zip(records, regions or [0] * len(records), strict=True)]
    )
    keys, counts = np.unique(rows, axis=0, return_counts=True)
    return Lattice(keys[:, :3], counts, keys[:, 3], (AGE, PLACE, SEX), np.array(weights), k, measure)


def published(one, levels, suppressed):
    """Return the published codes of each key combination, with its region last."""
    columns = [
        ladder.groups[level][one.codes[:, j]]
        for j, (ladder, level) in enumerate(zip(one.ladders, levels, strict=True))
    ]
    rows = np.column_stack(columns)
    rows[suppressed] = -1
    return np.column_stack([rows, one.regions])


def fewest(one, rows):
    return min(int(one.counts[(rows == row).all(axis=1)].sum()) for row in rows)


def loss_of(one, levels, suppressed):
    """Return the loss by its definition, record by record."""
    rows, n = published(one, levels, suppressed), one.counts.sum()
    if one.measure == "discernibility":
        sizes = [
            n if gone else one.counts[(rows == row).all(axis=1) & ~suppressed].sum()
            for row, gone in zip(rows, suppressed, strict=True)
        ]
        return float(np.array(sizes) @ one.counts) / n**2
    total = 0.0
    for j, each in enumerate(one.ladders):
        for i, code in enumerate(one.codes[:, j]):
            if each.groups[0][code] < 0:
                continue
            level = levels[j]
            if suppressed[i] or level == len(each.groups) - 1:
                loss = 1.0
            elif one.measure == "precision":
                loss = level / (len(each.groups) - 1)
            else:
                others = sum(each.groups[0] >= 0) - 1
                loss = (sum(each.groups[level] == each.groups[level][code]) - 1) / others
            total += one.weights[j] * loss * one.counts[i]
    return total / one.weights.sum() / n


def exhaustive(one, most):
    """Return the least loss of a node that is k-anonymous after its outliers are suppressed."""
    best = np.inf
    for levels in product(*map(range, one.shape)):
        found = one.evaluate(levels)
        if found.records <= most and fewest(one, published(one, levels, found.suppressed)) >= one.k:
            best = min(best, loss_of(one, levels, found.suppressed))
    return best


RECORDS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, 2), st.integers(0, 1)),
    min_size=8,
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(RECORDS, st.sampled_from([2, 3]), st.sampled_from(MEASURES), st.sampled_from([0, 4, 10]))
def test_recoding_search_finds_the_optimum_of_an_exhaustive_search(records, k, measure, most):
    regions = [row[3] for row in records]
    if min(regions.count(each) for each in set(regions)) < k:
        return
    one = lattice([row[:3] for row in records], k, measure, regions=regions)
    found = recode(one, most)
    assert found.optimal
    assert found.loss == pytest.approx(exhaustive(one, most))
    assert found.loss == pytest.approx(loss_of(one, found.levels, found.suppressed))
    assert found.lower_bound == pytest.approx(found.loss)
    assert found.records == one.counts[found.suppressed].sum() <= most
    assert fewest(one, published(one, found.levels, found.suppressed)) >= k
    descended = recode(one, most, most_nodes=1)
    assert not descended.optimal
    assert descended.lower_bound - 1e-9 <= found.loss <= descended.loss + 1e-9
    assert fewest(one, published(one, descended.levels, descended.suppressed)) >= k


def test_recoding_search_publishes_a_rare_place_one_level_coarser():
    records = [(0, place, 0) for place in (0, 0, 1, 2, 2, 2, 3, 3)]
    found = recode(lattice(records, 2, "precision"))
    assert found.levels == (0, 1, 0)
    assert (found.records, found.optimal) == (0, True)
    assert found.loss == pytest.approx(2 / 4 / 3)


def test_recoding_search_suppresses_another_class_with_a_single_outlier():
    records = [(0, 0, 0)] * 20 + [(1, 1, 0)] * 2 + [(3, 5, 1)]
    one = lattice(records, 2, "granularity")
    node = one.evaluate((0, 0, 0))
    assert (node.outliers, node.records) == (1, 3)
    assert recode(one, 3).levels == (0, 0, 0)
    assert recode(one, 2).levels != (0, 0, 0)


def test_recoding_search_excludes_most_nodes_of_a_lattice_without_counting_them():
    rng = np.random.default_rng(0)
    records = np.column_stack([rng.integers(0, n, 400) for n in (4, 6, 3)])
    steps = np.arange(6)
    deep = ladder(*[steps // width * width for width in range(1, 7)])
    keys, counts = np.unique(
        np.column_stack([records, rng.integers(0, 6, (400, 3))]), axis=0, return_counts=True
    )
    one = Lattice(
        keys,
        counts,
        np.zeros(len(keys), int),
        (AGE, PLACE, SEX, deep, deep, deep),
        np.ones(6),
        5,
        "granularity",
    )
    found = recode(one, 20)
    assert found.optimal
    assert found.nodes == 3 * 4 * 2 * 7**3
    assert found.counted < found.nodes / 4


def test_recoding_search_refuses_a_region_with_fewer_than_k_records():
    with pytest.raises(InvalidParameter, match="at least k = 3 records in each"):
        recode(lattice([(0, 0, 0)] * 5, 3, "precision", regions=[0, 0, 0, 1, 1]))
