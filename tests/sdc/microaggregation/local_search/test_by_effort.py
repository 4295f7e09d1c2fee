"""Tests of work limits of the efforts, by size of the file and share of the run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from microguard.sdc.microaggregation import microaggregate
from microguard.sdc.microaggregation.local_search.by_effort import RECOMBINED_RECORDS, SEVERAL_RECORDS
from microguard.sdc.microaggregation.local_search.work import WORK

STANDARD, THOROUGH = WORK["standard"], WORK["thorough"]


@pytest.mark.parametrize("block", [20, 500, 2_500, 25_000, 250_000])
@pytest.mark.parametrize("run", [1_000_000, 10_000_000, 1_000_000_000])
def test_work_shared_sums_to_the_limit_of_the_run_or_to_the_least_sweeps(block, run):
    sweeps = STANDARD.shared(block / run).sweeps(block, 3)
    assert sweeps * run <= max(STANDARD.run_visits, STANDARD.fewest_sweeps * run)


@pytest.mark.parametrize("run", [25_000, 100_000, 1_000_000, 10_000_000])
def test_work_shared_gives_small_blocks_at_least_as_many_visits_per_record(run):
    sweeps = [STANDARD.shared(n / run).sweeps(n, 3) for n in (250, 2_500, 25_000)]
    assert sweeps == sorted(sweeps, reverse=True)


@pytest.mark.parametrize("k", [3, 5, 10])
def test_sweeps_of_effort_standard_are_at_least_twenty_in_files_of_any_size(k):
    assert all(STANDARD.shared(share).sweeps(10**7, k) >= 20 for share in (1.0, 1e-6))


def test_work_shared_of_a_whole_run_is_the_full_work():
    assert STANDARD.shared(1.0) == STANDARD


def test_work_of_effort_thorough_does_not_depend_on_the_share():
    assert THOROUGH.shared(0.001) == THOROUGH


def test_search_of_a_large_file_improves_by_repeated_annealing(monkeypatch):
    points = np.random.default_rng(4).integers(0, 20, size=(SEVERAL_RECORDS + 1, 3)).astype(float)
    found = microaggregate(points, 3)
    monkeypatch.setitem(WORK, "standard", replace(STANDARD, again=0))
    alone = microaggregate(points, 3)
    assert found.work["searches"] > 1
    assert found.sse < alone.sse


def test_search_recombines_clusters_only_of_small_files():
    points = np.random.default_rng(4).normal(size=(RECOMBINED_RECORDS + 1, 2))
    assert microaggregate(points[1:], 3).work["columns"] > 0
    assert microaggregate(points, 3).work["columns"] == 0
