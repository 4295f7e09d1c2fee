"""Tests of Algorithm 2 against its literal form, and of the farthest pair against all pairs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from microguard.sdc.microaggregation import microaggregate
from microguard.sdc.microaggregation.heuristics.maximum_distance import FarthestPairs, solve
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.stop import Deadline

from tests.reference import reference_file

FOREVER = Deadline.after(None)


def _squares(values: np.ndarray) -> np.ndarray:
    return np.sum((values[:, None] - values[None]) ** 2, axis=2)


def _literal(values: np.ndarray, k: int) -> set[frozenset[int]]:
    free, clusters = list(range(len(values))), []
    centre = values.mean(axis=0)
    while len(free) >= 2 * k:
        distances = _squares(values[free])
        pair = [free[i] for i in np.unravel_index(np.argmax(distances), distances.shape)]
        pair.sort(key=lambda i: -np.sum((values[i] - centre) ** 2))
        for seed, other in (pair, pair[::-1]):
            cluster = [seed]
            while len(cluster) < k:
                mean = values[cluster].mean(axis=0)
                choice = [i for i in free if i not in cluster and i != other]
                cluster.append(min(choice, key=lambda i: np.sum((values[i] - mean) ** 2)))
            free = [i for i in free if i not in cluster]
            clusters.append(cluster)
    if len(free) >= k:
        clusters.append(free)
    else:
        means = [values[cluster].mean(axis=0) for cluster in clusters]
        for i in free:
            nearest = min(range(len(means)), key=lambda c: np.sum((values[i] - means[c]) ** 2))
            clusters[nearest].append(i)
    return {frozenset(cluster) for cluster in clusters}


@pytest.mark.parametrize(("n", "k"), [(12, 3), (13, 3), (14, 3), (17, 4), (30, 5), (9, 2)])
def test_maximum_distance_agrees_with_algorithm_2_for_every_remainder(n, k):
    values = np.random.default_rng(n).normal(size=(n, 3))
    labels = solve(Records(values, np.ones(n), 3), k, deadline=FOREVER, seed=0).labels
    clusters = {frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)}
    assert clusters == _literal(values, k)


@pytest.mark.parametrize("discrete", [False, True])
def test_farthest_pairs_agree_with_all_pairs_of_shrinking_sets(discrete):
    random = np.random.default_rng(1)
    values = random.integers(0, 3, (60, 4)).astype(float) if discrete else random.standard_cauchy((60, 4))
    farthest = FarthestPairs(values)
    free = np.arange(60)
    while len(free) >= 2:
        r, s = farthest.among(free)
        assert np.sum((values[r] - values[s]) ** 2) == pytest.approx(_squares(values[free]).max())
        assert r != s
        free = np.delete(free, random.integers(len(free)))


def test_maximum_distance_grows_clusters_by_distance_to_the_centroid():
    # The record after (0, 0) and (1, 0) is (2.2, 0), although (0.3, 2.09) is nearer to (0, 0).
    near = [(0.0, 0.0), (1.0, 0.0), (2.2, 0.0)]
    above = [(0.3, 2.09), (0.3, 2.3), (0.4, 2.4)]
    far = [(20.0, 0.0), (20.0, 1.0), (20.0, -1.0)]
    labels = solve(
        Records(np.array([*near, *above, *far]), np.ones(9), 2), 3, deadline=FOREVER, seed=0
    ).labels
    assert [len(set(labels[i : i + 3])) for i in (0, 3, 6)] == [1, 1, 1]
    assert len(set(labels)) == 3


def test_maximum_distance_clusters_equal_records_and_few_records():
    records = np.vstack([np.zeros((9, 2)), np.ones((2, 2))])
    assert microaggregate(records, 3, algorithm="maximum-distance").sizes.min() >= 3
    assert microaggregate(records, 6, algorithm="maximum-distance").clusters == 1


def test_maximum_distance_clusters_remaining_records_along_one_axis_after_the_deadline():
    records, _ = Records.of(np.random.default_rng(0).normal(size=(50, 2)), 3)
    clustering = solve(records, 3, deadline=Deadline(0.0), seed=0)
    assert clustering.stopped_by == "time"
    assert clustering.sizes.min() >= 3


def test_maximum_distance_does_not_depend_on_record_order():
    random = np.random.default_rng(4)
    records = random.integers(0, 4, (80, 3))
    order = random.permutation(80)
    first = microaggregate(records, 3, algorithm="maximum-distance")
    second = microaggregate(records[order], 3, algorithm="maximum-distance")
    assert first.sse == second.sse


@pytest.mark.reference
@pytest.mark.parametrize(("k", "loss"), [(3, 15.60), (4, 19.27)])
def test_maximum_distance_reproduces_the_losses_of_table_3(k, loss):
    data = pd.read_csv(reference_file("tarragona.csv"))
    clustering = microaggregate(data, k, algorithm="maximum-distance")
    assert 100 * clustering.information_loss == pytest.approx(loss, abs=0.0051)
