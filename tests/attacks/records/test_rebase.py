"""Tests of two clusterings of the same units: they expose units, so the joint audit refuses a rebase.

`tests/pipelines/series/test_accepted.py` tests that a whole run refuses it.
"""

from __future__ import annotations

import numpy as np
import pytest
from microguard.pipelines.audit.differencing.classes import Classes
from microguard.pipelines.audit.differencing.exposure import JointExposure, joint_exposure
from microguard.pipelines.demo import QUASI_IDENTIFIERS
from microguard.pipelines.synthetic.dataset import generate_persons
from microguard.sdc.clusters.codes import category_codes
from microguard.sdc.clusters.diversity import Diversity
from microguard.sdc.microaggregation import microaggregate

from tests.attacks.records.rebase import Found, attack

K, LEAST, PERSONS, CHANGED = 3, 2, 200, 10


def persons(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers and diagnoses of persons in each release: the last ones entered, the first ones left."""
    frame = next(generate_persons(PERSONS + CHANGED, 2026 + seed))
    numbers = [frame[name].to_numpy() for name in QUASI_IDENTIFIERS["numeric"]]
    values = np.nan_to_num(np.column_stack(numbers).astype(float))
    return values, category_codes(frame["diagnosis"]).astype(np.int64)


def released(values: np.ndarray, hidden: np.ndarray, units: np.ndarray, seed: int) -> np.ndarray:
    """Return the class of every unit of a release, and -1 for other units."""
    chosen = values[units]
    points = (chosen - chosen.mean(axis=0)) / chosen.std(axis=0, ddof=1)
    diversity = Diversity.of(hidden[units][:, np.newaxis], LEAST)
    labels = microaggregate(points, K, standardise=False, diversity=diversity, seed=seed).labels
    classes = np.full(len(values), -1)
    classes[units] = labels
    return classes


def means(values: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the means of the classes, by unit."""
    published = np.zeros_like(values)
    for label in np.unique(classes[classes >= 0]):
        published[classes == label] = values[classes == label].mean(axis=0)
    return published


def audited(classes: tuple[np.ndarray, ...], hidden: np.ndarray) -> JointExposure:
    """Return the counts of the joint audit for these releases."""
    releases = []
    for number, of in enumerate(classes):
        units = np.flatnonzero(of >= 0)
        labels = np.unique(of[units], return_inverse=True)[1].ravel()
        region = np.zeros(labels.max() + 1, np.int64)
        shown = {"diagnosis": hidden[units]}
        releases.append(Classes(f"r{number}", K, ("x",), units, labels, region, sensitive=shown))
    return joint_exposure(releases)


def both(seed: int) -> tuple[Found, JointExposure]:
    """Attack and audit a release, and another protected from scratch after some persons changed."""
    values, hidden = persons(seed)
    first = released(values, hidden, np.arange(PERSONS), seed)
    second = released(values, hidden, np.arange(CHANGED, PERSONS + CHANGED), 100 + seed)
    told = attack(values, hidden, (first, second), (means(values, first), means(values, second)), K)
    return told, audited((first, second), hidden)


def test_control_two_clusterings_expose_most_units_and_the_joint_audit_counts_them_all() -> None:
    for seed in range(2):
        told, exposure = both(seed)
        assert told.below_k > 0.5 * told.units
        assert told.one_value > 0.1 * told.units
        assert told.near > 1.3 * told.near_before
        assert exposure.below_k >= told.below_k
        assert exposure.one_value >= told.one_value
        assert not exposure.safe


def test_second_release_of_the_same_classes_discloses_nothing() -> None:
    values, hidden = persons(0)
    units = np.arange(PERSONS)
    one, again = (released(values, hidden, units, 0) for _ in range(2))
    told = attack(values, hidden, (one, again), (means(values, one), means(values, again)), K)
    assert (told.below_k, told.one_value, told.follow) == (0, 0, 0.0)
    assert told.near == pytest.approx(told.near_before)
    assert audited((one, again), hidden).safe


@pytest.mark.long
def test_joint_audit_counts_the_exposure_by_two_clusterings_for_every_seed() -> None:
    for seed in range(10):
        told, exposure = both(seed)
        assert exposure.below_k >= told.below_k
        assert exposure.one_value >= told.one_value
