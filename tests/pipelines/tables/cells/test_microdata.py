"""Tests that cells counted from records equal those of pandas for any partitions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.intake.read import read
from microguard.pipelines.intake.validate import validate
from microguard.pipelines.tables.cells.microdata import cells_of_microdata
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.table_input import as_input

from tests.pipelines.turnover import records, specification


def tabulated(spark, chosen, partitions: int = 2):
    reader = as_input(chosen)
    screened = validate(read(spark, reader), reader)
    return cells_of_microdata(screened.frame.repartition(partitions), chosen)


def test_cells_do_not_depend_on_partitions(spark, tmp_path):
    chosen = specification(tmp_path, records(), p_percent=10.0)
    one, other = tabulated(spark, chosen, 1), tabulated(spark, chosen, 7)
    assert one.codes.equals(other.codes)
    assert (one.units == other.units).all()
    assert (one.largest == other.largest).all()


def test_cells_equal_the_sums_of_pandas_over_every_hierarchy(spark, tmp_path):
    frame = records()
    frame["branch"] = frame["a21"].map({"A": "x", "B": "y", "C": "x", "D": "y", "E": "x"})
    tables = {"tables": [["a21", "region"], ["branch"]], "hierarchies": [["a10", "a21"], ["branch", "a21"]]}
    variables = {"branch": {"role": "other"}}
    cells = tabulated(spark, specification(tmp_path, frame, variables, p_percent=10.0, **tables))
    assert set(cells.codes["branch"]) == {"x", "y", "Total"}
    assert not np.any(cells.tabulation.relations @ cells.units)
    (grouping,) = cells.groupings
    assert dict(grouping.codes[["a21", "branch"]].to_numpy())["D"] == "y"
    units = np.rint(frame["turnover"] * 10)
    for row, codes in enumerate(cells.codes.to_dict("records")):
        inside = np.ones(len(frame), dtype=bool)
        for name, code in codes.items():
            inside &= (frame[name] == code).to_numpy() | (code == "Total")
        assert cells.units[row] == units[inside].sum()
        assert cells.contributors is not None
        assert cells.contributors[row] == inside.sum()
        expected = np.sort(units[inside])[::-1][:2]
        assert cells.largest[row, : len(expected)] == pytest.approx(expected)


def with_parts(frame):
    """Return turnover at home and abroad; every third record has no turnover abroad."""
    abroad = np.where(np.arange(len(frame)) % 3 == 0, 0.0, np.round(frame["turnover"] / 4, 1))
    return frame.assign(home=frame["turnover"] - abroad, abroad=abroad)


PARTS = {
    "tables": [["a21", "market"], ["region"]],
    "hierarchies": [["a10", "a21"]],
    "parts": {"market": ["home", "abroad"]},
}
NUMBERS = {name: {"role": "other", "kind": "numeric"} for name in ("home", "abroad")}


@pytest.mark.parametrize("further", [{}, PARTS], ids=["hierarchy", "parts"])
def test_units_with_one_record_and_units_with_several_are_tabulated_alike(spark, tmp_path, further):
    frame = with_parts(records()).assign(weight=lambda given: 1.0 + given.index % 3)
    variables = NUMBERS | {"firm": {"role": "unit"}, "weight": {"role": "weight"}}
    chosen = specification(tmp_path, frame, variables, p_percent=10.0, weighted=True, **further)
    once = tabulated(spark, chosen)
    beside = {"firm": "of two records", "turnover": 8.0, "home": 8.0, "abroad": 0.0, "weight": 2.0}
    again = pd.concat([frame, frame.head(2).assign(**beside)], ignore_index=True)
    several = tabulated(
        spark, specification(tmp_path, again, variables, p_percent=10.0, weighted=True, **further)
    )
    joint = once.codes.merge(several.codes.reset_index(), on=list(once.codes), how="left")["index"]
    assert joint.notna().all()
    same = several.contributors[joint] == once.contributors
    assert same.any()
    assert not same.all()
    for array in ("units", "largest", "gross", "members"):
        ours, theirs = getattr(once, array), getattr(several, array)[joint]
        assert (ours[same] == theirs[same]).all()
    assert (once.members != "").all()


@pytest.mark.parametrize("unit", [None, "firm"], ids=["records", "units"])
def test_parts_of_a_value_are_a_dimension_whose_total_is_the_value(spark, tmp_path, unit):
    frame = with_parts(records())
    variables = NUMBERS | ({unit: {"role": "unit"}} if unit else {})
    cells = tabulated(spark, specification(tmp_path, frame, variables, p_percent=10.0, **PARTS))
    assert not np.any(cells.tabulation.relations @ cells.units)
    units = {name: np.rint(frame[name] * 10) for name in ("home", "abroad")}
    units["Total"] = units["home"] + units["abroad"]
    codes = cells.codes.to_dict("records")
    assert {(each["market"], each["region"]) for each in codes} >= {("home", "Total"), ("Total", "south")}
    assert not any(each["market"] != "Total" and each["region"] != "Total" for each in codes)
    for row, each in enumerate(codes):
        inside = np.ones(len(frame), dtype=bool)
        for name in ("a10", "a21", "region"):
            inside &= (frame[name] == each[name]).to_numpy() | (each[name] == "Total")
        amounts = units[each["market"]]
        if each["market"] != "Total":
            inside &= (amounts != 0).to_numpy()
        by_unit = amounts[inside].groupby(frame[unit][inside]).sum() if unit else amounts[inside]
        assert cells.units[row] == by_unit.sum()
        assert cells.contributors is not None
        assert cells.contributors[row] == len(by_unit)
        expected = np.sort(by_unit)[::-1][:2]
        assert cells.largest[row, : len(expected)] == pytest.approx(expected)


def test_refusal_counts_records_whose_value_differs_from_the_sum_of_its_parts(spark, tmp_path):
    frame = with_parts(records())
    frame.loc[[3, 7], "home"] += 0.2
    with pytest.raises(
        InputRejected, match=r"In 2 record\(s\), turnover differs from the sum of home, abroad"
    ):
        tabulated(spark, specification(tmp_path, frame, NUMBERS, **PARTS))


def test_unit_with_several_records_is_one_contributor_of_every_cell(spark, tmp_path):
    frame = records()
    cells = tabulated(spark, specification(tmp_path, frame, {"firm": {"role": "unit"}}))
    whole = int(np.flatnonzero((cells.codes == "Total").all(axis=1))[0])
    firms = frame.assign(units=np.rint(frame["turnover"] * 10)).groupby("firm")["units"].sum()
    assert cells.contributors is not None
    assert cells.contributors[whole] == len(firms) < len(frame)
    assert cells.largest[whole, 0] == pytest.approx(firms.max())


@pytest.mark.parametrize("unit", [None, "firm"], ids=["records", "units"])
def test_cells_of_the_same_records_have_the_same_members_under_any_codes(spark, tmp_path, unit):
    frame = records()
    frame["twin"] = frame["a21"].map({"A": "1", "B": "2", "C": "3", "D": "4", "E": "4"})
    variables = {"twin": {"role": "other"}} | ({unit: {"role": "unit"}} if unit else {})
    by_section = tabulated(spark, specification(tmp_path, frame, variables), 3)
    other = frame.sample(frac=1, random_state=1).astype({"firm": str})
    tables = {"tables": [["twin", "region"]], "hierarchies": []}
    by_twin = tabulated(spark, specification(tmp_path, other, variables, **tables))
    members = {tuple(codes): each for codes, each in zip(*_codes_and_members(by_section), strict=True)}
    for (code, region), each in zip(*_codes_and_members(by_twin), strict=True):
        section = {"1": "A", "2": "B", "3": "C"}.get(code)
        if section is not None:
            assert each == members[section, region]
            assert each
    assert len(set(members.values())) == len(members)
    kept = [by_section.keyed(secret).members for secret in (b"k" * 32, b"o" * 32)]
    # members are unpredictable without the key
    assert not set(kept[0]) & (set(kept[1]) | set(members.values())) - {""}
    assert [each == "" for each in kept[0]] == [each == "" for each in by_section.members]
    assert len(set(kept[0])) == len(set(by_section.members))
    assert code_of_two(by_twin) not in members.values()


def _codes_and_members(cells):
    assert cells.members is not None
    codes = cells.codes[["twin" if "twin" in cells.codes else "a21", "region"]]
    if "a10" in cells.codes:
        kept = (cells.codes["a21"] != "Total").to_numpy()
        return codes[kept].to_numpy().tolist(), cells.members[kept].tolist()
    return codes.to_numpy().tolist(), cells.members.tolist()


def code_of_two(cells):
    whole = (cells.codes["twin"] == "4") & (cells.codes["region"] == "Total")
    return cells.members[int(np.flatnonzero(whole)[0])]


SUPPRESSION = {"method": "suppression", "effort": None}


@pytest.mark.parametrize("unit", [None, "firm"], ids=["records", "units"])
def test_contributions_add_up_to_every_cell_and_name_its_contributors(spark, tmp_path, unit):
    frame = records()
    variables = {unit: {"role": "unit"}} if unit else {}
    cells = tabulated(spark, specification(tmp_path, frame, variables, **SUPPRESSION), 3)
    other = tabulated(spark, specification(tmp_path, frame.iloc[::-1], variables, **SUPPRESSION), 1)
    given = cells.contributions
    assert given is not None
    assert np.array_equal(np.bincount(given.cell), cells.contributors)
    assert np.bincount(given.cell, given.amount) == pytest.approx(cells.units)
    for name in ("cell", "unit", "amount"):
        assert np.array_equal(getattr(given, name), getattr(other.contributions, name))
    assert not set(given.unit) & set(cells.keyed(b"k" * 32).contributions.unit)
    if unit:
        assert len(np.unique(given.unit)) == frame["firm"].nunique()


def test_units_of_a_holding_are_one_contributor_and_other_units_are_separate_contributors(spark, tmp_path):
    frame = records()
    firms = frame["firm"].astype(int)
    frame["holding"] = np.where(firms % 3 == 0, (firms % 2).astype(str), None)
    variables = {"firm": {"role": "unit"}, "holding": {"role": "other"}}
    chosen = specification(tmp_path, frame, variables, holding="holding", **SUPPRESSION)
    cells = tabulated(spark, chosen)
    whole = int(np.flatnonzero((cells.codes == "Total").all(axis=1))[0])
    alone = frame[frame["holding"].isna()]["firm"].nunique()
    assert cells.contributors is not None
    assert cells.contributors[whole] == alone + 2
    assert np.array_equal(np.bincount(cells.contributions.cell), cells.contributors)


def test_contributions_of_parts_and_of_other_hierarchies_add_up_to_their_cells(spark, tmp_path):
    frame = records()
    frame["branch"] = frame["a21"].map({"A": "x", "B": "y", "C": "x", "D": "y", "E": "x"})
    tables = {"tables": [["a21", "region"], ["branch"]], "hierarchies": [["a10", "a21"], ["branch", "a21"]]}
    branches = specification(tmp_path, frame, {"branch": {"role": "other"}}, **tables, **SUPPRESSION)
    parts = specification(tmp_path, with_parts(frame), NUMBERS, **PARTS, **SUPPRESSION)
    for chosen in (branches, parts):
        cells = tabulated(spark, chosen)
        positive = cells.units > 0
        sums = np.bincount(cells.contributions.cell, cells.contributions.amount, minlength=len(cells))
        assert sums[positive] == pytest.approx(cells.units[positive])


def test_record_is_one_contributor_in_all_its_nested_codes_and_in_all_parts(spark, tmp_path):
    frame = records()
    nested = {"tables": [["a21", "region"]], "hierarchies": [], "parents": {"A": "x", "C": "x", "B": "y"}}
    nested["parents"] = {"a21": nested["parents"]}
    codes = specification(tmp_path, frame, **nested, **SUPPRESSION)
    parts = specification(tmp_path, with_parts(frame), NUMBERS, **PARTS, **SUPPRESSION)
    for chosen in (codes, parts):
        given, other = (tabulated(spark, chosen, n).contributions for n in (1, 3))
        assert len(np.unique(given.unit)) == np.sum(frame["turnover"] > 0)
        assert sorted(zip(given.cell, given.unit, strict=True)) == sorted(
            zip(other.cell, other.unit, strict=True)
        )
