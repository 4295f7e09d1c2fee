"""Tests of the mitigation of the minimality attack: perturbed records, decoys and randomised mergers."""

import numpy as np
import pytest
from microguard.sdc.clusters.diversity import Diversity, diversify
from microguard.sdc.microaggregation import microaggregate
from microguard.sdc.microaggregation.minimality_attack_mitigation import (
    PERTURBATION,
    SMALL_PERTURBATION,
    SMALL_RECORDS,
    merge_until_diverse,
    perturb_records,
)
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.microaggregation.sse import typical_cost


def records(n=400, known=False, least=2):
    random = np.random.default_rng(4)
    values = random.normal(size=(n, 3))
    values[: n // 4] = values[n // 4 : n // 2]  # this value occurs twice
    codes = np.column_stack([random.integers(0, 4, n), random.integers(0, 9, n), random.integers(0, 3, n)])
    diversity = Diversity.of(codes, [least, 1, least], [known, False, True])
    return Records.of(values, 3, diversity=diversity)[0], np.arange(n) // 4


@pytest.mark.parametrize("options", [{"known": True}, {"least": 1}])
def test_perturb_records_returns_records_without_hidden_requirements(options):
    original, labels = records(**options)
    assert perturb_records(original, labels, 1) is original


@pytest.mark.parametrize(("n", "share"), [(4000, PERTURBATION), (SMALL_RECORDS, SMALL_PERTURBATION)])
def test_perturb_records_perturbs_coordinates_by_a_share_of_the_deviation_within_clusters(n, share):
    original, labels = records(n)
    perturbation = perturb_records(original, labels, 1).values - original.values
    typical = typical_cost(original.values, np.ones(n), labels)
    assert perturbation.std() == pytest.approx(share * (typical / 3) ** 0.5, rel=0.05)
    assert np.abs(perturbation.mean(axis=0)).max() < 4 * perturbation.std() / n**0.5


def test_perturb_records_keeps_equal_records_equal():
    original, labels = records()
    perturbed = perturb_records(original, labels, 1)
    order = np.lexsort(original.values.T)
    same = np.all(np.diff(original.values[order], axis=0) == 0, axis=1)
    assert same.sum() == 100
    assert np.array_equal(same, np.all(np.diff(perturbed.values[order], axis=0) == 0, axis=1))


def test_perturb_records_adds_decoys_that_permute_hidden_variables():
    original, labels = records()
    perturbed = perturb_records(original, labels, 1).diversity
    assert perturbed.codes.shape == (400, 4)
    assert np.array_equal(perturbed.codes[:, :3], original.diversity.codes)
    assert perturbed.least.tolist() == [2, 1, 2, 2]
    true, decoy = perturbed.codes[:, 0], perturbed.codes[:, 3]
    assert np.array_equal(np.bincount(true), np.bincount(decoy))
    assert np.mean(true == decoy) < 0.4


def test_perturb_records_depends_on_the_seed():
    original, labels = records()
    one, again, other = (perturb_records(original, labels, seed) for seed in (1, 1, 2))
    assert np.array_equal(one.values, again.values)
    assert np.array_equal(one.diversity.codes, again.diversity.codes)
    assert not np.array_equal(one.values, other.values)
    assert not np.array_equal(one.diversity.codes, other.diversity.codes)


@pytest.mark.parametrize("least", [2, 3])
def test_merge_until_diverse_merges_whole_clusters_until_each_is_diverse(least):
    original, labels = records(least=least)
    perturbed = perturb_records(original, labels, 1)
    found = merge_until_diverse(perturbed, labels, 1)
    assert np.array_equal(np.unique(found), np.arange(found.max() + 1))
    assert perturbed.diversity.lacking(labels).any()
    assert not perturbed.diversity.lacking(found).any()
    assert all(len(np.unique(found[labels == label])) == 1 for label in range(labels.max() + 1))
    assert np.array_equal(found, merge_until_diverse(perturbed, labels, 1))


def test_merge_until_diverse_without_hidden_variables_chooses_the_cheapest_merger():
    original, labels = records(known=True)
    found = merge_until_diverse(original, labels, 1)
    assert np.array_equal(found, diversify(original.values, labels, original.diversity))


def test_merge_until_diverse_draws_the_partner_from_the_mutual_neighbourhood():
    # 1 is nearest to 2, and 0 is nearest to 1
    values = np.array([[0.0], [0.1], [2.0], [2.1], [3.0], [3.1], [9.0], [9.1]])
    codes = np.array([[0], [1], [0], [0], [0], [1], [0], [1]])
    perturbed, order = Records.of(values, 2, standardise=False, diversity=Diversity.of(codes, 2))
    labels = (np.arange(8) // 2)[order]
    together = set()
    for seed in range(20):
        found = merge_until_diverse(perturbed, labels, seed)
        together.add(tuple(np.unique(labels[found == found[labels == 1][0]]).tolist()))
    assert together == {(0, 1), (1, 2)}


@pytest.mark.parametrize("effort", ["fast", "standard", "thorough"])
def test_microaggregate_measures_the_loss_of_the_original_values(effort):
    random = np.random.default_rng(5)
    values, codes = random.normal(size=(200, 3)), random.integers(0, 3, size=(200, 1))
    found = microaggregate(values, 3, effort=effort, standardise=False, diversity=Diversity.of(codes, 2))
    means = np.array([values[found.labels == label].mean(axis=0) for label in range(found.labels.max() + 1)])
    assert found.sse == pytest.approx(np.square(values - means[found.labels]).sum(), rel=1e-9)
    assert found.lower_bound is None or found.lower_bound <= found.sse
