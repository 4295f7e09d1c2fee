"""How much work an effort does: of the blocks of a run, and of a file by its size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from microguard.sdc.microaggregation import microaggregate
from microguard.sdc.microaggregation.local_search.by_effort import (
    LEAST_VISITS,
    RECOMBINED_RECORDS,
    SEVERAL_RECORDS,
    WORK,
)

STANDARD, THOROUGH = WORK["standard"], WORK["thorough"]


@pytest.mark.parametrize("block", [20, 500, 2_500, 25_000, 250_000])
@pytest.mark.parametrize("run", [1_000_000, 10_000_000, 1_000_000_000])
def test_all_blocks_of_a_long_run_together_take_what_one_run_may(block, run):
    visits = STANDARD.shared(block, block / run).visits * run / block
    assert visits <= max(STANDARD.run_visits, LEAST_VISITS * run)


@pytest.mark.parametrize("run", [25_000, 100_000, 1_000_000, 10_000_000])
def test_records_in_small_blocks_are_searched_no_shorter_than_in_large_ones(run):
    sweeps = [STANDARD.shared(n, n / run).sweeps(n, 3) for n in (250, 2_500, 25_000)]
    assert sweeps == sorted(sweeps, reverse=True)


def test_a_file_that_is_its_whole_run_has_all_the_work():
    assert STANDARD.shared(2_500, 1.0) == STANDARD


def test_thorough_is_as_long_in_each_block():
    assert THOROUGH.shared(2_500, 0.001) == THOROUGH


def test_a_file_too_large_for_several_searches_is_annealed_again_and_loses_less(monkeypatch):
    points = np.random.default_rng(4).integers(0, 20, size=(SEVERAL_RECORDS + 1, 3)).astype(float)
    found = microaggregate(points, 3)
    monkeypatch.setitem(WORK, "standard", replace(STANDARD, again=0))
    alone = microaggregate(points, 3)
    assert found.work["searches"] > 1
    assert found.sse < alone.sse


def test_clusters_are_put_together_by_a_program_where_that_is_small():
    points = np.random.default_rng(4).normal(size=(RECOMBINED_RECORDS + 1, 2))
    assert microaggregate(points[1:], 3).work["columns"] > 0
    assert microaggregate(points, 3).work["columns"] == 0
