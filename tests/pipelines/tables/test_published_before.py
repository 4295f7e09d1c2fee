"""Tests that a published cell keeps its value in every later table, under any name or seed."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.tables.cells.cells import Cells, tabulated
from microguard.pipelines.tables.cells.identity import COUNT
from microguard.pipelines.tables.problem import table_problem
from microguard.pipelines.tables.published_before import (
    PublishedValues,
    StandingValueFails,
    new_cells,
    of_the_same_records,
    standing_cells,
)
from microguard.schemas.specification.model import Specification

from tests.schemas.specification.test_table import build

COUNTS = {"kind": "frequency", "tables": [["a21", "region"]], "hierarchies": [["a10", "a21"]]}
ORIGIN = {"source": "register", "period": "2026", "release_id": "r1"}
KEY, OTHER_KEY = bytes(range(32)), bytes(range(1, 33))


def counted(specification: Specification, seed: int = 1) -> Cells:
    """Return counts by activity and region with all margins, in the format of Spark."""
    table = specification.table
    assert table is not None
    rng = np.random.default_rng(seed)
    rows = []
    for a21 in ("A", "B", "C", "Total"):
        for region in ("n", "s", "w", "Total"):
            rows.append({"a10": "AB" if a21 in "AB" else "CC", "a21": a21, "region": region})
    frame = pd.DataFrame([row for row in rows if row["a21"] != "Total" and row["region"] != "Total"])
    frame["v"] = rng.integers(0, 9, len(frame)).astype(float)
    frame.loc[0, "v"] = 0
    parts = [frame]
    for columns in (["a21"], ["a10", "a21"], ["region"], ["a21", "region"], ["a10", "a21", "region"]):
        parts.append(
            frame.assign(**dict.fromkeys(columns, "Total"))
            .groupby(["a10", "a21", "region"], as_index=False)
            .sum()
        )
    cells = pd.concat(parts)
    cells = cells[cells["v"] > 0]
    values = cells.pop("v").to_numpy()
    return tabulated(
        cells[["a10", "a21", "region"]].reset_index(drop=True), table, units=values, contributors=values
    )


def test_table_of_counts_contains_empty_combinations() -> None:
    specification = build(COUNTS)
    cells = counted(specification)
    assert (cells.units == 0).sum() >= 1
    finest = (cells.codes != "Total").all(axis=1)
    assert finest.sum() == 9
    without = counted(build(COUNTS | {"zeros": "omit"}))
    assert (without.units > 0).all()
    assert not np.any(cells.tabulation.relations @ cells.units)


def test_later_table_publishes_a_cell_with_its_first_value() -> None:
    specification = build(COUNTS)
    cells = counted(specification)
    first = table_problem(cells, specification, KEY)
    shown = first.secret.values + np.where(
        first.secret.upper_capacity >= first.secret.upper_protection,
        first.secret.upper_protection,
        -first.secret.lower_protection,
    )
    internal = first.known.sensitive
    published = np.where(internal, shown, first.secret.values)[first.variables]
    table = specification.table
    assert table is not None
    listed = new_cells(cells, table, published, None, ORIGIN)
    assert {cell.measure for cell in listed} == {COUNT}
    drawn = [cell for cell, row in zip(listed, internal[first.variables], strict=True) if row]
    standing = standing_cells(cells, table, drawn)
    second = table_problem(cells, specification, OTHER_KEY, standing).secret
    standing_variables = np.unique(first.variables[standing.published])
    rise = np.where(second.sensitive, second.upper_capacity - second.lower_capacity, 0.0)
    assert np.array_equal((second.values + rise)[standing_variables], shown[standing_variables])
    assert not [cell for cell in new_cells(cells, table, published, standing, ORIGIN) if cell in drawn]


def test_cell_is_identified_by_its_codes_in_any_table() -> None:
    whole, by_region = build(COUNTS), build(COUNTS | {"tables": [["region"]], "hierarchies": []})
    assert whole.table is not None
    assert by_region.table is not None
    cells = counted(whole)
    listed = new_cells(cells, whole.table, cells.units, None, ORIGIN)
    regions = cells.codes.loc[(cells.codes[["a10", "a21"]] == "Total").all(axis=1), ["region"]]
    units = cells.units[regions.index]
    alone = tabulated(regions.reset_index(drop=True), by_region.table, units=units, contributors=units)
    standing = standing_cells(alone, by_region.table, listed)
    assert standing.published.all()
    assert np.array_equal(standing.units, alone.units)


def test_part_of_a_value_is_the_same_cell_as_in_a_table_of_this_part() -> None:
    parts = {"tables": [["region", "market"]], "parts": {"market": ["firms", "home"]}}
    together = build({"value": "turnover", **parts}).table
    alone = build({"value": "firms", "tables": [["region"]]}).table
    assert together is not None
    assert alone is not None
    codes = pd.DataFrame(
        [(region, market) for region in ("n", "s", "Total") for market in ("firms", "home", "Total")],
        columns=["region", "market"],
    )
    units = np.array([1.0, 2, 3, 4, 5, 9, 5, 7, 12])
    cells = tabulated(codes, together, units=units)
    regions = tabulated(codes[["region"]][::3].reset_index(drop=True), alone, units=np.array([1.0, 4, 5]))
    listed = new_cells(regions, alone, regions.units + 100, None, ORIGIN)
    standing = standing_cells(cells, together, listed)
    assert np.array_equal(standing.published, (cells.codes["market"] == "firms").to_numpy())
    assert sorted(standing.units[standing.published]) == [101, 104, 105]
    assert {each.measure for each in new_cells(cells, together, units, standing, ORIGIN)} == {
        "home",
        "turnover",
    }


def test_refusal_of_a_published_value_that_no_longer_protects_does_not_contain_the_value() -> None:
    specification = build(COUNTS)
    cells = counted(specification)
    few = np.flatnonzero((cells.units > 0) & (cells.units < 3))
    assert len(few)
    standing = PublishedValues(np.isin(np.arange(len(cells)), few[:1]), cells.units)
    with pytest.raises(StandingValueFails, match="source was revised"):
        table_problem(cells, specification, KEY, standing)


def test_published_value_with_more_digits_than_the_later_table_is_refused() -> None:
    specification = build(COUNTS)
    cells = counted(specification)
    assert specification.table is not None
    (cell, *_) = new_cells(cells, specification.table, cells.units, None, ORIGIN)
    finer = type(cell)(cell.source, cell.period, cell.measure, cell.codes, Decimal("1.5"), 1, "r1")
    with pytest.raises(StandingValueFails, match="digits"):
        standing_cells(cells, specification.table, [finer])


def test_tables_of_the_same_records_are_recognised_under_any_source() -> None:
    specification = build(COUNTS)
    table = specification.table
    assert table is not None
    cells = counted(specification)
    elsewhere = {"source": "firms", "period": ""}
    listed = new_cells(cells, table, cells.units, None, ORIGIN)
    assert of_the_same_records(cells, table, listed, elsewhere) == listed
    changed = replace(cells, units=np.where(np.arange(len(cells)) == 5, cells.units + 7, cells.units))
    assert of_the_same_records(changed, table, listed, elsewhere) == [*listed[:5], *listed[6:]]
    assert of_the_same_records(changed, table, listed, ORIGIN) == listed
    others = replace(cells, units=cells.units + np.arange(len(cells)) % 5)
    assert of_the_same_records(others, table, listed, elsewhere) == []
    regions = cells.codes.index[(cells.codes[["a10", "a21"]] == "Total").all(axis=1)]
    fewer = build(COUNTS | {"tables": [["region"]], "hierarchies": []}).table
    assert fewer is not None
    codes = cells.codes.loc[regions, ["region"]].reset_index(drop=True)
    alone = tabulated(codes, fewer, units=cells.units[regions], contributors=cells.units[regions])
    assert of_the_same_records(alone, fewer, listed, elsewhere) == listed
    after = replace(alone, units=alone.units + np.array([3, 0, 0, 3]))
    beside = {cell.codes for cell in of_the_same_records(after, fewer, listed, elsewhere)}
    assert beside == {(("region", code),) for code in after.codes["region"][1:3]}
    unknown = [replace(cell, original=None) for cell in listed]
    assert of_the_same_records(cells, table, unknown, elsewhere) == []


def test_original_value_is_recognised_if_records_were_rounded_to_fewer_digits() -> None:
    finer, coarser = (
        build({"value": "turnover", "tables": [["region"]], "decimals": d}).table for d in (2, 0)
    )
    assert finer is not None
    assert coarser is not None
    codes = pd.DataFrame({"region": ["n", "s", "Total"]})
    firms = np.array([3.0, 4.0, 7.0])
    exact = tabulated(codes, finer, units=np.array([1037.0, 2149.0, 3186.0]), contributors=firms)
    rounded = tabulated(codes, coarser, units=np.array([11.0, 20.0, 31.0]), contributors=firms)
    listed = new_cells(exact, finer, exact.units, None, ORIGIN)
    assert of_the_same_records(rounded, coarser, listed, {"source": "firms", "period": ""}) == listed


@pytest.mark.parametrize(("first", "later"), [("{}", "{}.0"), ("{}.0", "{}"), ("{}.00", "{}.0")])
def test_count_of_a_code_with_and_without_decimals_is_one_cell(first, later) -> None:
    """A column of whole numbers becomes one of floating-point numbers if a value of it is missing."""
    specification = build({"kind": "frequency", "tables": [["a21"]]})
    table = specification.table
    assert table is not None

    def counts(code: str) -> Cells:
        codes = pd.DataFrame({"a21": [*(code.format(number) for number in range(1, 8)), "Total"]})
        values = np.array([1, 2, 4, 7, 9, 13, 22, 58.0])
        return tabulated(codes, table, units=values, contributors=values)

    cells = counts(first)
    before = new_cells(cells, table, cells.units + 3, None, ORIGIN)
    standing = standing_cells(counts(later), table, before)
    assert standing.published.all()
    assert (standing.units == counts(later).units + 3).all()
