"""Tests of contributors in the rules: weights, holdings, requests, waivers, nested codes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.intake.read import read
from microguard.pipelines.intake.validate import validate
from microguard.pipelines.tables.cells.microdata import cells_of_microdata
from microguard.pipelines.tables.nested_codes import parents_by_width, with_parents_of_codes
from microguard.pipelines.tables.problem import rule_table
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.table_input import as_input
from microguard.sdc.cta.rules.sensitivity import p_percent, weighted_contributions

from tests.pipelines.turnover import records, specification

ONE_LEVEL = {"tables": [["a21", "region"]], "hierarchies": None, "minimum_frequency": 1, "dominance": None}


def tabulated(spark, chosen):
    """Return the cells of the records of a specification, and the cells that the rules find sensitive."""
    reader = as_input(chosen)
    screened = validate(read(spark, reader), reader)
    chosen = with_parents_of_codes(screened.frame, chosen)
    cells = cells_of_microdata(screened.frame.repartition(3), chosen)
    return cells, rule_table(cells, chosen).sensitive


def inside(frame: pd.DataFrame, codes: dict) -> pd.DataFrame:
    """Return the records of a cell."""
    kept = np.ones(len(frame), bool)
    for name, code in codes.items():
        kept &= (frame[name] == code).to_numpy() | (code == "Total")
    return frame[kept]


def small(seed: int = 4, count: int = 60) -> pd.DataFrame:
    """Return records of cells with few contributors, in whole numbers."""
    frame = records(seed, count)
    return frame.assign(turnover=np.rint(frame["turnover"]) + 1.0)


def test_contribution_of_weight_w_counts_as_w_contributions():
    assert weighted_contributions([100, 10], [4, 7], 3).tolist() == [100, 100, 100]
    assert weighted_contributions([10, 100], [7, 1], 3).tolist() == [100, 10, 10]
    assert weighted_contributions([100, 10, 1], [1.5, 1, 1], 3).tolist() == [100, 55, 5.5]
    assert weighted_contributions([100, 10], [0.2, 1], 2).tolist() == [100, 10]
    assert weighted_contributions([100], [1], 2).tolist() == [100, 0]


def test_p_percent_rule_with_weights_equals_the_rule_on_repeated_contributions():
    """A weighted total with contributions without weights would find too few sensitive cells."""
    rng, found = np.random.default_rng(3), {True: 0, False: 0}
    for _ in range(300):
        sizes, weights = rng.lognormal(3, 2.5, 4).round(2) + 0.01, rng.integers(1, 3, 4)
        repeated = np.sort(np.repeat(sizes, weights))[::-1]
        top = np.argsort(-sizes)[:2]
        effective = weighted_contributions(sizes[top], weights[top], 2)
        assert effective == pytest.approx(repeated[:2])
        by_rule = p_percent([effective], [sizes @ weights], 10)
        x, total = repeated, repeated.sum()
        assert by_rule.sensitive[0] == (0.1 * x[0] > total - x[0] - x[1])
        found[bool(by_rule.sensitive[0])] += 1
        assert by_rule.upper[0] >= p_percent([sizes[top]], [sizes @ weights], 10).upper[0]
    assert min(found.values()) > 10


def test_p_percent_rule_protects_only_contributors_who_requested_protection():
    largest, totals = [[100.0, 30.0]], [135.0]
    assert p_percent(largest, totals, 10).sensitive[0]
    assert not p_percent(largest, totals, 20, protected=[20.0]).sensitive[0]
    assert p_percent(largest, totals, 20, protected=[30.0]).upper[0] == pytest.approx(6 - 5)
    assert not p_percent(largest, totals, 10, protected=[0.0]).sensitive[0]


@pytest.mark.spark
@pytest.mark.parametrize("unit", [None, "firm"], ids=["records", "units"])
def test_weighted_cells_equal_the_contributions_of_the_expanded_sample(spark, tmp_path, unit):
    frame = small(4, 30).assign(weight=np.random.default_rng(1).choice([1.0, 1.5, 3.0], 30))
    variables = {"weight": {"role": "weight"}} | ({unit: {"role": "unit"}} if unit else {})
    chosen = specification(tmp_path, frame, variables, weighted=True, p_percent=90.0, **ONE_LEVEL)
    cells, sensitive = tabulated(spark, chosen)
    weighted = frame.assign(amount=frame["turnover"] * frame["weight"])
    for row, codes in enumerate(cells.codes.to_dict("records")):
        part = inside(weighted, codes)
        part = part.groupby(unit)[["turnover", "amount"]].sum() if unit else part
        sizes, weights = part["turnover"] * 10, part["amount"] / part["turnover"]
        assert cells.units[row] == pytest.approx(part["amount"].sum() * 10)
        expected = weighted_contributions(sizes, weights, 2)
        assert cells.largest[row] == pytest.approx(expected)
        assert sensitive[row] == (0.9 * expected[0] > cells.units[row] - expected.sum() + 1e-9)
    assert 0 < sensitive.sum() < len(sensitive)


@pytest.mark.spark
@pytest.mark.parametrize("key", ["unit", "holding"])
def test_amounts_of_a_contributor_that_cancel_only_without_weights_count_as_weighted(spark, tmp_path, key):
    """100 with weight 2 and -100 with weight 1 are 100 of the 106 in the cell, and not 0."""
    frame = pd.DataFrame(
        {"a10": "AB", "a21": "A", "region": "north", "turnover": [100.0, -100.0, 2.0, 2.0, 2.0],
         "weight": [2.0, 1.0, 1.0, 1.0, 1.0], "firm": list("xxabc")}
    )  # fmt: skip
    role = {"firm": {"role": "unit" if key == "unit" else "other"}, "weight": {"role": "weight"}}
    given = {} if key == "unit" else {"holding": "firm"}
    chosen = specification(tmp_path, frame, role, weighted=True, p_percent=10.0, **ONE_LEVEL, **given)
    cells, sensitive = tabulated(spark, chosen)
    assert cells.units == pytest.approx(1060)
    assert cells.largest == pytest.approx(np.tile([500, 500], (len(cells), 1)))
    assert len(cells) == 4
    assert not sensitive.any()  # 100 with weight 2 is two contributions of 50
    frame.loc[0, "weight"] = 1.05
    frame.loc[1, "weight"] = 0.05
    cells, sensitive = tabulated(
        spark, specification(tmp_path, frame, role, weighted=True, p_percent=10.0, **ONE_LEVEL, **given)
    )
    assert sensitive.all()


@pytest.mark.spark
def test_request_rule_protects_the_largest_requesting_contributor_above_its_share(spark, tmp_path):
    frame = small(5)
    frame["asked"] = np.random.default_rng(2).choice(["0", "1", "2"], len(frame), p=[0.5, 0.25, 0.25])
    keys = ONE_LEVEL | {"minimum_frequency": 3, "request": "asked", "requests": {"1": 30, "2": 60}}
    cells, sensitive = tabulated(spark, specification(tmp_path, frame, {"asked": {"role": "other"}}, **keys))
    shares = {"0": np.inf, "1": 30.0, "2": 60.0}
    for row, codes in enumerate(cells.codes.to_dict("records")):
        part = inside(frame, codes).sort_values("turnover", ascending=False)
        first = part.iloc[0]
        above = 100 * first["turnover"] > shares[first["asked"]] * part["turnover"].sum()
        few = len(part) < 3 and (part["asked"] != "0").any()
        assert sensitive[row] == (above or few)
    assert 0 < sensitive.sum() < len(sensitive)


@pytest.mark.spark
@pytest.mark.parametrize("kind", [float, int, "blanks"])
def test_codes_of_requests_and_waivers_match_any_column_type(spark, tmp_path, kind):
    """An integer column with missing values is read as floating point: 1.0 must match the code "1"."""
    frame = small(5)
    codes = np.random.default_rng(2).choice(["0", "1", "2"], len(frame), p=[0.5, 0.25, 0.25])
    named = {"request": "asked", "requests": {"1": 30, "2": 60}}
    for keys in (named, {"waiver": "asked", "waived": ["1"], "p_percent": 15.0}):
        found = []
        for given in (codes, [f" {code} " for code in codes] if kind == "blanks" else codes.astype(kind)):
            chosen = specification(
                tmp_path, frame.assign(asked=given), {"asked": {"role": "other"}},
                **(ONE_LEVEL | {"minimum_frequency": 3} | keys),
            )  # fmt: skip
            found.append(tabulated(spark, chosen)[1])
        assert 0 < found[0].sum() < len(found[0])
        assert (found[0] == found[1]).all()


@pytest.mark.spark
def test_request_codes_that_no_record_has_are_refused(spark, tmp_path):
    keys = ONE_LEVEL | {"minimum_frequency": 3, "request": "asked", "requests": {"yes": 30}}
    chosen = specification(tmp_path, small(5).assign(asked="Yes"), {"asked": {"role": "other"}}, **keys)
    with pytest.raises(InputRejected, match="codes yes in the column asked, found none"):
        tabulated(spark, chosen)


@pytest.mark.spark
@pytest.mark.parametrize("rule", [{"p_percent": 15.0}, {"dominance": {"n": 2, "k": 70.0}}])
def test_waivers_leave_cells_sensitive_only_because_of_other_contributors(spark, tmp_path, rule):
    frame = small(6)
    frame["allows"] = np.random.default_rng(3).choice(["1", "0"], len(frame))
    frame.loc[frame.index[:5], "allows"] = None
    keys = ONE_LEVEL | {"minimum_frequency": 2, "waiver": "allows", "waived": ["1"]} | rule
    cells, sensitive = tabulated(spark, specification(tmp_path, frame, {"allows": {"role": "other"}}, **keys))
    for row, codes in enumerate(cells.codes.to_dict("records")):
        part = inside(frame, codes).sort_values(["turnover", "allows"], ascending=[False, True])
        sizes, waived = part["turnover"].to_numpy(), (part["allows"] == "1").to_numpy()
        expected = len(part) < 2 and not waived.all()
        if "dominance" in rule:
            expected |= sizes[:2].sum() > 0.7 * sizes.sum() and not waived[:2].all()
        elif not waived.all():
            target = int(np.argmin(waived))
            other = np.delete(sizes, target).max(initial=0.0)
            expected |= 0.15 * sizes[target] > sizes.sum() - sizes[target] - other
        assert sensitive[row] == expected
    assert 0 < sensitive.sum() < len(sensitive)


@pytest.mark.spark
def test_holding_is_one_contributor_to_the_rules_of_adjusted_tables(spark, tmp_path):
    """The example of tau-ARGUS's manual, section 4.4.4: 700 and 200 are of one enterprise group."""
    frame = pd.DataFrame({"a21": "900", "region": "30", "turnover": [700.0, 200, 60, 40, 10],
                          "entgroup": ["6", "6", "7", "8", "9"]})  # fmt: skip
    frame = frame.assign(a10="x", firm=[str(i) for i in range(5)])
    keys = ONE_LEVEL | {"p_percent": 10.0}
    group = {"entgroup": {"role": "other"}}
    _, alone = tabulated(spark, specification(tmp_path, frame, group, **keys))
    cells, together = tabulated(spark, specification(tmp_path, frame, group, holding="entgroup", **keys))
    assert not alone.any()
    assert together.all()
    assert (cells.contributors == 4).all()
    frame.loc[0, "entgroup"] = None
    with pytest.raises(InputRejected, match=r"1 row\(s\) have no code in table\.holding"):
        tabulated(spark, specification(tmp_path, frame, group, holding="entgroup", **keys))


def test_codes_nest_by_the_widths_of_their_levels():
    assert parents_by_width(["34110", "34120", "35"], (1, 3, 5)) == {
        "34110": "341", "34120": "341", "341": "3", "35": "3"}  # fmt: skip


@pytest.mark.spark
@pytest.mark.parametrize("unit", [None, "firm"], ids=["records", "units"])
@pytest.mark.parametrize("method", ["adjustment", "suppression"])
def test_nested_codes_give_the_same_cells_as_nested_columns(spark, tmp_path, unit, method):
    frame = records(7, 120).assign(a21=lambda x: x["a10"].str[0] + x["a21"])
    frame["a10"] = frame["a21"].str[0]
    variables = {unit: {"role": "unit"}} if unit else {}
    keys = {"p_percent": 10.0, "method": method, "effort": None}
    columns, by_columns = tabulated(spark, specification(tmp_path, frame, variables, **keys))
    widths = keys | {"hierarchies": None, "code_widths": {"a21": [1]}}
    nested, by_codes = tabulated(spark, specification(tmp_path, frame, variables, **widths))
    assert len(nested) == len(columns)

    def described(cells, sensitive, coarse):
        code = cells.codes["a21"].where(cells.codes["a21"] != "Total", cells.codes[coarse])
        rows = zip(code, cells.codes["region"], cells.units, cells.contributors, cells.largest[:, 0],
                   sensitive, strict=True)  # fmt: skip
        return sorted(rows)

    assert described(nested, by_codes, "a21") == described(columns, by_columns, "a10")
    if method == "suppression":
        amounts = [
            np.bincount(each.contributions.cell, each.contributions.amount) for each in (nested, columns)
        ]
        assert sorted(amounts[0]) == pytest.approx(sorted(amounts[1]))


@pytest.mark.spark
def test_records_with_a_parent_code_are_refused(spark, tmp_path):
    keys = ONE_LEVEL | {"parents": {"a21": {"A": "B"}}, "p_percent": 10.0}
    with pytest.raises(InputRejected, match=r"have a code in a21 that is a parent of other codes"):
        tabulated(spark, specification(tmp_path, records(), **keys))
