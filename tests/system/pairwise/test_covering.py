"""Tests of the covering array and of the guarantee checks, on instances that can be verified by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.system.pairwise.covering import all_pairs, covering, pairs_of
from tests.system.pairwise.jobs import FACTORS, NOTE, PairwiseJob
from tests.system.pairwise.promise import broken

SMALL = {"a": ("1", "2", "3"), "b": ("1", "2", "3"), "c": ("1", "2"), "d": ("1", "2")}


def test_covering_contains_every_pair_in_few_rows():
    rows, refused = covering(SMALL, lambda row: True)
    assert set().union(*map(pairs_of, rows)) == set(all_pairs(SMALL))
    assert refused == []
    assert len(rows) <= 11  # the minimum is 9, and there are 36 combinations


def test_covering_has_only_accepted_rows_and_returns_refused_pairs():
    def accepts(row):
        return not (row["a"] == "1" and row["b"] == "1") and (row["c"] == "1" or row["d"] == "2")

    rows, refused = covering(SMALL, accepts)
    assert all(map(accepts, rows))
    assert refused == [(("a", "1"), ("b", "1")), (("c", "2"), ("d", "1"))]
    assert set().union(*map(pairs_of, rows)) | set(refused) == set(all_pairs(SMALL))


def _job(**values):
    return PairwiseJob({factor: of[0] for factor, of in FACTORS.items()} | values)


def _release(job):
    """Return the records in one class, without columns that identify persons."""
    alike = dict.fromkeys(job.quasi_identifiers, 1.0)
    return job.accepted.assign(**alike).drop(columns=["name", "unit", "household"], errors="ignore")


def test_promise_accepts_a_release_that_meets_its_guarantees():
    job = _job(identity="unit and household", counted="household", diversity="two texts")
    assert list(broken(job, _release(job), job.accepted, NOTE)) == []


@pytest.mark.parametrize(
    ("values", "change", "found"),
    [
        ({}, lambda frame: frame.iloc[1:], "60 records were accepted and 59 published"),
        ({}, lambda frame: frame.assign(unit=1), "an identifier is published"),
        ({}, lambda frame: frame.assign(income=np.arange(60) // 58), "2 records share a combination"),
        (
            {"diversity": "published"},
            lambda frame: frame.assign(diagnosis=np.roll(frame["diagnosis"], 1)),
            "the column diagnosis is not what it was",
        ),
        (
            {"diversity": "two texts"},
            lambda frame: frame.assign(income=frame["diagnosis"].str[-1].map(ord)),
            "diagnosis has one value",
        ),
        (
            {"diversity": "two numbers"},
            lambda frame: frame.assign(income=frame["debt"].rank() // 3),
            "the values of debt are close",
        ),
        (
            {"identity": "household", "counted": "household"},
            lambda frame: frame.assign(income=np.arange(60) // 8),
            "2 households share a combination",
        ),
    ],
)
def test_promise_reports_every_violated_guarantee(values, change, found):
    job = _job(**values)
    faults = list(broken(job, change(_release(job)), job.accepted, NOTE))
    assert any(found in fault for fault in faults)
