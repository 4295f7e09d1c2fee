"""Tests of rounded counts: measured, verified, equal to earlier releases, refused with a reason."""

from __future__ import annotations

import numpy as np
import pytest
from microguard.pipelines.tables.adjusted import rounded as round_cells
from microguard.pipelines.tables.cells.identity import COUNT
from microguard.pipelines.tables.disclosure_audit import attacks, intervals_of
from microguard.pipelines.tables.problem import table_problem
from microguard.pipelines.tables.product import original_cells
from microguard.pipelines.tables.published_before import (
    PublishedValues,
    StandingValueFails,
    new_cells,
    standing_cells,
)
from microguard.schemas.errors import ProtectionFailed
from microguard.sdc.cta.counts.posterior import count_posterior

from tests.pipelines.tables.manifests import manifest_of
from tests.pipelines.tables.test_published_before import COUNTS, KEY, ORIGIN, OTHER_KEY, counted
from tests.schemas.specification.test_table import build

ROUNDED = COUNTS | {"method": "rounding", "base": 5}


def rounded(specification, cells, key=KEY, standing=None):
    """Return the problem, its adjustment, and the published value of every cell."""
    problem = table_problem(cells, specification, key, standing)
    problem, adjustment = round_cells(problem, specification, specification.table, key)
    return problem, adjustment, adjustment.values[problem.variables]


@pytest.mark.parametrize("zeros", ["all", "omit"])
def test_rounded_cells_are_multiples_next_to_their_counts_and_totals_add_up(zeros: str) -> None:
    specification = build(ROUNDED | {"zeros": zeros})
    cells = counted(specification)
    _, adjustment, shown = rounded(specification, cells)
    assert adjustment.algorithm.startswith("unbiased")
    assert not np.any(shown % 5)
    assert np.all(np.abs(shown - cells.units) < 5)
    assert not np.any(cells.tabulation.relations @ shown)
    assert np.all(shown[cells.units == 0] == 0)


def test_attacker_intervals_are_nearly_one_base_wide_and_identify_no_small_count() -> None:
    specification = build(ROUNDED)
    problem, adjustment, _ = rounded(specification, counted(specification))
    intervals = intervals_of(problem, adjustment, specification.table, most_cells=20, seed=0)
    assert len(intervals.cells)
    assert np.all(intervals.upper - np.maximum(intervals.lower, 0) >= 4)
    attack = attacks(problem, adjustment, intervals)
    assert (attack.section["base"], attack.section["least"]) == (5, 3)
    assert attack.metrics["posterior"] == attack.section["largest_posterior"] < 0.7


def test_rounding_audit_counts_the_probabilities_of_a_completing_program_if_they_disclose_more() -> None:
    specification = build(ROUNDED)
    moves = table_problem(counted(specification), specification, KEY).moves
    counts = np.repeat(np.arange(10.0), 60)
    ones_alone_go_up = np.where(counts == 1, 5.0, np.where(counts < 5, 0.0, 10.0))
    by_method = count_posterior(counts, ones_alone_go_up, 5, moves.odds, least=3)
    as_moved = count_posterior(counts, ones_alone_go_up, 5, moves.odds, least=3, as_moved=True)
    assert by_method.largest < 0.7 * as_moved.largest


def test_later_rounded_table_keeps_published_values_and_refuses_another_base() -> None:
    specification = build(ROUNDED)
    cells = counted(specification)
    _, _, shown = rounded(specification, cells)
    listed = new_cells(cells, specification.table, shown, None, ORIGIN)
    assert {cell.measure for cell in listed} == {COUNT}
    standing = standing_cells(cells, specification.table, listed[::2])
    _, _, again = rounded(specification, cells, OTHER_KEY, standing)
    assert np.array_equal(again[standing.published], shown[standing.published])
    assert not np.any(cells.tabulation.relations @ again)
    other = build(ROUNDED | {"base": 7})
    with pytest.raises(
        StandingValueFails,
        match=r"table.base = 7: expected a base of which all published values are multiples",
    ):
        table_problem(cells, other, KEY, standing)


def test_published_total_outside_the_rounding_range_is_refused_unless_relaxation_is_allowed() -> None:
    specification = build(ROUNDED)
    cells = counted(specification)
    total = (cells.codes == "Total").all(axis=1).to_numpy()
    far = np.where(total, np.ceil(cells.units / 5) * 5 + 25, 0.0)
    standing = PublishedValues(total, far)
    with pytest.raises(ProtectionFailed, match=r"table.relax = \[\"adjacent\"\]"):
        rounded(specification, cells, standing=standing)
    relaxing = build(ROUNDED | {"relax": ["adjacent"]})
    problem, _, shown = rounded(relaxing, cells, standing=standing)
    assert shown[total] == far[total]
    assert not np.any(cells.tabulation.relations @ shown)
    assert problem.relaxation is not None
    assert problem.relaxation.cells["adjacent"] >= 1
    assert np.all(problem.known.upper_capacity >= problem.secret.upper_capacity)
    manifest = manifest_of(relaxing, original_cells(cells, problem, relaxing.table).relaxed)
    assert manifest["method"] == {"name": "controlled rounding", "base": 5}
    assert any("exceed their adjacent multiples" in limit for limit in manifest["limits"])
    untouched = manifest_of(relaxing)
    assert len(untouched["limits"]) == len(manifest["limits"]) - 1
