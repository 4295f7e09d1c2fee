"""Tests of unit fingerprints: they find a source under another name and nothing in unrelated files."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from microguard.pipelines.publication.source_fingerprints.unit_fingerprint import (
    SIZE,
    UnitFingerprint,
    similarity,
)


def keyed(units):
    return np.array(
        [int.from_bytes(hashlib.blake2b(b"%d" % u, key=b"k", digest_size=8).digest(), "big") for u in units],
        np.uint64,
    )


def marked(*columns):
    return np.column_stack([np.asarray(column).astype(np.int64) for column in columns]).astype(np.uint64)


def fingerprint_of(units, marks):
    distinct, first = np.unique(units, return_index=True)
    return UnitFingerprint(distinct[:SIZE], marks[first[:SIZE]], len(distinct))


def persons(random, n, first=0):
    """Return records with a running number, a sex, an age and an income."""
    return keyed(range(first, first + n)), marked(
        random.integers(0, 2, n), random.integers(0, 90, n), random.integers(0, 10**6, n)
    )


@pytest.fixture
def register():
    units, marks = persons(np.random.default_rng(1), 20_000)
    return units, marks


def test_similarity_finds_the_same_file_under_any_name(register):
    found = similarity(fingerprint_of(*register), fingerprint_of(*register))
    assert (found.share, found.agreement, found.same) == (1.0, 1.0, True)


@pytest.mark.parametrize("kept", [0.99, 0.5, 0.05])
def test_similarity_finds_a_subset_of_the_file(register, kept):
    units, marks = register
    chosen = np.random.default_rng(2).random(len(units)) < kept
    found = similarity(fingerprint_of(units[chosen], marks[chosen]), fingerprint_of(units, marks))
    assert found.same
    assert found.share > 0.9


def test_similarity_finds_files_with_other_and_coarser_columns(register):
    units, marks = register
    assert similarity(fingerprint_of(units, marks[:, [2, 0]]), fingerprint_of(units, marks[:, 1:])).same
    coarser = np.column_stack([marks[:, 1] // np.uint64(10), marks[:, 0]])
    assert similarity(fingerprint_of(units, coarser), fingerprint_of(units, marks)).same


def test_similarity_ignores_running_numbers(register):
    other = persons(np.random.default_rng(9), 20_000)
    found = similarity(fingerprint_of(*register), fingerprint_of(*other))
    assert found.share == 1.0
    assert not found.same


def test_similarity_is_low_for_two_hundred_pairs_of_unrelated_files():
    random = np.random.default_rng(4)
    fingerprints = [
        fingerprint_of(*persons(random, int(random.integers(50, 4000)), int(random.integers(0, 2000))))
        for _ in range(21)
    ]
    pairs = [(a, b) for i, a in enumerate(fingerprints) for b in fingerprints[:i]]
    assert len(pairs) >= 200
    assert sum(similarity(a, b).same for a, b in pairs) == 0
    assert sum(similarity(a, b).shared > 0 for a, b in pairs) > 100  # the files have common unit numbers
