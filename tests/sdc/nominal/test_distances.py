"""Tests of ordinal, hierarchical and weighted distances against their definition and brute force."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
from microguard.sdc.errors import InvalidParameter, UnknownVariable
from microguard.sdc.nominal import Costs, Hierarchical, Nominal, Ordinal, anonymise, partition
from microguard.sdc.nominal.frequency import from_frame
from microguard.sdc.nominal.points import all_distances
from microguard.sdc.nominal.similarity import similarity_of
from microguard.sdc.nominal.transport import transport

from tests.sdc.nominal.brute_force import partitions

#: Classes, divisions and sections of economic activities, finest first.
TREE = {"a1": ("a", "all"), "a2": ("a", "all"), "b1": ("b", "all"), "b2": ("b", "all")}
DISTANCES = {"age": Ordinal(), "activity": Hierarchical(TREE, weight=2), "sex": Nominal(weight=3)}


def file(records: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(0, 5, records),
            "activity": rng.choice(list(TREE), records),
            "sex": rng.choice(["f", "m"], records),
        }
    )


def distance(one: tuple, other: tuple, ages: list[int]) -> int:
    """Return the distance: steps of age, twice the levels to a common ancestor, three times sex."""
    steps = abs(ages.index(one[0]) - ages.index(other[0]))
    levels = 0 if one[1] == other[1] else 1 if one[1][0] == other[1][0] else 2
    return steps + 2 * levels + 3 * (one[2] != other[2])


def test_similarity_has_the_defined_distances():
    frame = file(30, 1)
    coded = from_frame(frame)
    points = similarity_of(coded, DISTANCES).points
    rows = [tuple(row) for row in coded.carriers().itertuples(index=False)]
    ages = sorted(frame["age"].unique())
    distances = all_distances(points)
    for (i, one), (j, other) in combinations(enumerate(rows), 2):
        assert distances[i, j] == distance(one, other, ages)
    assert distances.max() <= points.diameter


def test_ordinal_accepts_gaps_and_missing_values():
    asked = Ordinal(weight=2, positions={"low": 0, "middle": 1, "high": 10}, missing=10)
    costs = asked.columns(["high", "low", "middle", None]).costs
    assert costs.tolist() == [[0, 20, 18, 20], [20, 0, 2, 20], [18, 2, 0, 20], [20, 20, 20, 0]]
    pairs, everything = asked.coarser(["high", "low", "middle", None])
    assert (pairs[0], everything[0]) == (2, 20)
    # the rows are distances of low and middle, of high, and of a missing value
    assert len(set(pairs[1].tolist())) == 3
    assert pairs[1][1] == pairs[1][2]
    with pytest.raises(InvalidParameter, match="no position"):
        Ordinal(positions={"low": 0}).columns(["low", "high"])


@pytest.mark.parametrize("seed", range(3))
def test_partition_with_a_cost_matrix_agrees_with_brute_force(seed: int):
    rng = np.random.default_rng(seed)
    prices = rng.integers(1, 30, (4, 4))
    prices = np.triu(prices, 1) + np.triu(prices, 1).T
    codes = rng.integers(0, 4, 7)
    best = min(
        sum(int(prices[codes[i], codes[j]]) for cluster in clusters for i, j in combinations(cluster, 2))
        for clusters in partitions(list(range(7)), 3)
    )
    frame = pd.DataFrame({"work": codes})
    result = partition(frame, 3, distances={"work": Costs(range(4), prices)})
    assert result.optimal
    assert result.weight == best


@pytest.mark.parametrize("seed", range(12))
def test_transport_with_a_cost_matrix_agrees_with_brute_force(seed: int):
    rng = np.random.default_rng(seed)
    prices = np.triu(rng.integers(1, 30, (4, 4)), 1)
    frame = pd.DataFrame({"work": rng.integers(0, 4, 6), "sex": rng.choice(["f", "m"], 6)})
    coded = from_frame(frame)
    costs = Costs(range(4), prices + prices.T)
    similarity = similarity_of(coded, {"work": costs, "sex": Nominal(weight=7)})
    counts = np.bincount(rng.integers(0, len(coded.frequencies), 6), minlength=len(coded.frequencies))
    flows = transport(coded.frequencies, counts, similarity)
    rows = [tuple(row) for row in coded.carriers().itertuples(index=False)]

    def cost(one: int, other: int) -> int:
        (work, sex), (new_work, new_sex) = rows[one], rows[other]
        return int(costs.matrix[work, new_work]) + 7 * (sex != new_sex)

    change = counts - coded.frequencies.counts
    giving, taking = (np.repeat(np.arange(len(rows)), np.maximum(sign * change, 0)) for sign in (-1, 1))
    paid = sum(cost(i, j) * int(n) for i, j, n in zip(flows.origin, flows.target, flows.count, strict=True))
    assert paid == min(
        sum(cost(i, j) for i, j in zip(giving, way, strict=True)) for way in permutations(taking)
    )


@pytest.mark.parametrize("seed", range(4))
def test_partition_with_distances_agrees_with_brute_force(seed: int):
    frame = file(7, seed)
    rows = [tuple(row) for row in frame.itertuples(index=False)]
    ages = sorted(frame["age"].unique())
    best = min(
        sum(distance(rows[i], rows[j], ages) for cluster in clusters for i, j in combinations(cluster, 2))
        for clusters in partitions(list(range(7)), 3)
    )
    result = partition(frame, 3, distances=DISTANCES)
    assert result.optimal
    assert result.weight == best


def test_anonymise_moves_records_to_ordinal_neighbours():
    frame = pd.DataFrame({"age": [1] * 3 + [2] + [8] * 3, "sex": ["f"] * 7})
    kept = anonymise(frame, 3, 1, algorithm="own-eee", distances={"age": Ordinal()})
    assert kept.protected["age"].tolist() == [1, 1, 1, 1, 8, 8, 8]


def test_distances_refuse_invalid_definitions():
    frame = file(20, 2)
    with pytest.raises(UnknownVariable):
        partition(frame, 3, distances={"income": Ordinal()})
    with pytest.raises(InvalidParameter, match="not in its tree"):
        partition(frame, 3, distances={"activity": Hierarchical({"a1": ("a",)})})
    with pytest.raises(InvalidParameter, match="one per level"):
        Hierarchical({"a1": ("a",), "b1": ("b", "all")})
    with pytest.raises(InvalidParameter, match="a code with two"):
        Hierarchical({"a1": ("a", "x"), "a2": ("a", "y")})
    with pytest.raises(InvalidParameter, match="weight"):
        Ordinal(weight=0)
    with pytest.raises(InvalidParameter, match="symmetric"):
        Costs("ab", np.array([[0, 1], [2, 0]]))
    with pytest.raises(InvalidParameter, match="whole numbers"):
        Costs("ab", np.array([[0, 0.5], [0.5, 0]]))
    with pytest.raises(InvalidParameter, match="largest distances"):
        partition(frame, 3, distances={"sex": Nominal(weight=40_000)})
