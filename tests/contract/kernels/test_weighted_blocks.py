"""Tests of blocks of several numbers with survey weights, whose clusters are merged, through the block
function.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from microguard.pipelines.intake.fixed_point import Scale
from microguard.pipelines.records.block import protect_block
from microguard.pipelines.records.block_config import BlockConfig
from microguard.pipelines.records.blocks import BLOCK, Plan
from microguard.pipelines.records.coordinates import Coordinates
from microguard.pipelines.records.sampling_weights import SamplingWeights
from microguard.sdc.clusters.weight_shares import largest_share

NAMES = ("income", "age")


def protected(numbers, weights, k, effort):
    """Return protected numbers (n, p), unrounded means, and the report of a block; units are 1."""
    n = len(numbers)
    columns = dict(zip(NAMES, numbers.T, strict=False))
    table = pa.table({**columns, "weight": weights, BLOCK: np.zeros(n, dtype=np.int64)})
    scales = {name: Scale(0.0, 0.0, n) for name in columns}
    one = pa.table({"records": [n], "__first": [0], "__tree": [-1]})
    task = BlockConfig(
        secret=1,
        k=k,
        seed=1,
        effort=effort,
        algorithm="auto",
        parameters=None,
        representative="auto",
        counted=None,
        min_diversity=1,
        sensitive=(),
        plan=Plan(one, (), Coordinates(scales, {}), 1),
        nominal=(),
        dominance=(1, 85.0),
        resume=None,
        sampling_weights=SamplingWeights("weight", 1.0, k, None),
    )
    after, report, _ = protect_block(table, task)
    assert report["status"] == "done", report.get("why")
    return np.column_stack([after[name].to_numpy() for name in columns]), report


def loss(numbers, weights, members):
    """Return the exact weighted sum of squares about the weighted mean of some records."""
    mass = sum(Fraction(weights[i]) for i in members)
    total = Fraction(0)
    for column in numbers.T:
        mean = sum(Fraction(weights[i]) * Fraction(column[i]) for i in members) / mass
        total += sum(Fraction(weights[i]) * (Fraction(column[i]) - mean) ** 2 for i in members)
    return float(total)


def too_large(weights, members, k):
    return max(weights[list(members)]) > largest_share(k) * sum(weights[list(members)])


@pytest.mark.parametrize(("effort", "n"), [("fast", 900), ("standard", 150), ("thorough", 60)])
def test_block_of_two_numbers_with_survey_weights_is_protected_and_reports_its_weighted_loss(effort, n):
    random = np.random.default_rng(n)
    numbers, weights = random.normal(size=(n, 2)), random.lognormal(size=n)
    after, report = protected(numbers, weights, 3, effort)
    classes = np.unique(after, axis=0, return_inverse=True)[1].ravel()
    members = [np.flatnonzero(classes == c) for c in range(classes.max() + 1)]
    assert min(map(len, members)) >= 3
    assert report["objective"] == pytest.approx(sum(loss(numbers, weights, each) for each in members))
    means = [each for each in members if not too_large(weights, each, 3)]
    assert len(members) - len(means) == report["trimmed"]
    for each in means:
        expected = np.average(numbers[each], axis=0, weights=weights[each])
        assert after[each] == pytest.approx(np.broadcast_to(expected, (len(each), 2)))


def least_loss(numbers, weights, k):
    """Return the least weighted loss of all partitions in which no record has too large a share, by
    enumeration.
    """

    @cache
    def least(left):
        if not left:
            return 0.0
        found, first = np.inf, left[0]
        for size in range(k, len(left) + 1):
            for others in combinations(left[1:], size - 1):
                cluster = (first, *others)
                if not too_large(weights, cluster, k):
                    rest = least(tuple(i for i in left if i not in cluster))
                    found = min(found, rest + loss(numbers, weights, cluster))
        return found

    return least(tuple(range(len(numbers))))


@pytest.mark.parametrize("effort", ["fast", "standard", "thorough"])
def test_weighted_clusters_of_a_tiny_block_are_the_best_that_hide_the_record_with_the_largest_weight(effort):
    """Three pairs are far apart; the pair with the heavy record merges with the nearer of the other two."""
    numbers = np.array([[0.0, 0.0], [1.0, 0.0], [10.0, 1.0], [11.0, 0.0], [40.0, 0.0], [41.0, 2.0]])
    weights = np.array([1.0, 1.0, 4.0, 1.0, 5.0, 5.0])
    assert too_large(weights, (2, 3), 2)
    _, report = protected(numbers, weights, 2, effort)
    assert report["clusters"] == 2
    assert report["objective"] == pytest.approx(least_loss(numbers, weights, 2))
