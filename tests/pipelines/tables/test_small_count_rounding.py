"""Tests of small-count rounding as specified: measured, verified, refused with a reason."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from microguard.pipelines.guarantees.original_cells import Published
from microguard.pipelines.guarantees.registry import table_guarantee
from microguard.pipelines.guarantees.small_counts import SmallCounts
from microguard.pipelines.method import table_method
from microguard.pipelines.tables.adjusted import with_small_counts_rounded
from microguard.pipelines.tables.disclosure_audit import intervals_of
from microguard.pipelines.tables.measures import measured
from microguard.pipelines.tables.problem import table_problem
from microguard.pipelines.tables.product import original_cells
from microguard.schemas.errors import SpecificationError
from microguard.schemas.requirements.tables import table_requirements

from tests.pipelines.tables.manifests import manifest_of
from tests.pipelines.tables.test_published_before import COUNTS, KEY, counted
from tests.schemas.specification.test_table import TABLE, build

SMALL = COUNTS | {"method": "small_count_rounding", "base": 5}


def rounded(specification, cells, key=KEY):
    problem = table_problem(cells, specification, key)
    return with_small_counts_rounded(problem, specification, specification.table, key)


def test_small_counts_are_rounded_and_large_inner_counts_are_unchanged() -> None:
    specification = build(SMALL)
    cells = counted(specification)
    problem, adjustment = rounded(specification, cells)
    shown = adjustment.values[problem.variables]
    assert not np.any((shown > 0) & (shown < 5))
    assert not np.any(cells.tabulation.relations @ shown)
    inside = ~np.isin(np.arange(len(cells)), cells.tabulation.relations.indices[
        cells.tabulation.relations.data < 0])  # fmt: skip
    large = inside & (cells.units >= 5)
    assert large.any()
    assert np.array_equal(shown[large], cells.units[large])
    assert np.any(shown != cells.units)


def test_reader_intervals_are_one_base_wide_and_the_written_values_are_counted() -> None:
    specification = build(SMALL)
    table, cells = specification.table, counted(specification)
    problem, adjustment = rounded(specification, cells)
    intervals = intervals_of(problem, adjustment, table, most_cells=50, seed=0)
    assert len(intervals.cells)
    assert np.all(intervals.upper - np.maximum(intervals.lower, 0) >= 4)
    metrics = measured(cells, problem, adjustment, intervals, table)["metrics"]
    required = [each for each in table_requirements(table, True) if each.key.metric in metrics]
    assert {"posterior", "intervals_below_unit", "attacker_interval"} <= {e.key.metric for e in required}
    assert metrics["intervals_below_unit"] == 0
    original = original_cells(cells, problem, table)
    shown = adjustment.values[problem.variables]
    missing = np.zeros(len(cells), bool)
    guarantee = table_method(specification).guarantee()
    published = Published(shown - cells.units, shown, missing, 0)
    assert guarantee.compare(published, original) == (0, 0)
    as_they_are = Published(np.zeros(len(cells)), cells.units, missing, 0)
    assert guarantee.compare(as_they_are, original)[0] > 0
    large = int(np.argmax(original.rise == 0))
    moved = replace(published, change=published.change + 5.0 * (np.arange(len(cells)) == large))
    assert guarantee.compare(moved, original)[1] == 1


def test_guarantee_is_built_from_the_manifest_and_refuses_small_counts() -> None:
    specification = build(SMALL)
    guarantee = table_method(specification).guarantee()
    assert table_guarantee(manifest_of(specification)) == SmallCounts(5)
    assert "v > 0 AND v < 5" in guarantee.forbidden
    assert "No count between 0 and 5" in guarantee.statement


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (TABLE | {"method": "small_count_rounding", "base": 5}, "only unweighted numbers of contributors"),
        (COUNTS | {"method": "small_count_rounding"}, "a base for rounding"),
        (SMALL | {"base": 2}, "too small"),
        (SMALL | {"relax": ["adjacent"]}, "relax"),
    ],
)
def test_refusal_of_a_faulty_specification_names_the_key(table, said) -> None:
    with pytest.raises(SpecificationError, match=said):
        build(table)
