"""Tests of finished tables: recognised, with codes nested by their sums, drafted as a valid specification."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pandas as pd
import pytest
from microguard.pipelines.draft import draft
from microguard.pipelines.drafting.finished_table import recognised
from microguard.pipelines.tables.cells.finished import cells_of_rows
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.read import build_specification, read_specification

from tests.reference import reference_file


def drafted(path: Path) -> Specification:
    content = tomllib.loads(draft(str(path)).summary())
    return build_specification(content, path.parent)


def cells_by(specification: Specification, frame: pd.DataFrame):
    """Return the cells of a table as the drafted specification reads them; all totals are verified."""
    table = specification.table
    rows = {f"c{i}": frame[name] for i, name in enumerate(table.columns)}
    rows |= {f"n{i}": frame[name].astype(float) for i, name in enumerate(table.numbers)}
    return cells_of_rows(pd.DataFrame(rows), table)


def test_levels_in_consecutive_columns_are_nested_by_their_sums():
    path = reference_file("turnover_activity_size.csv")
    specification = drafted(path)
    table = specification.table
    assert (table.source, table.value, table.contributors, table.largest) == (
        "cells", "tot", "n_obs", ("max",))  # fmt: skip
    nested = pd.read_csv(reference_file("business_survey.csv"), dtype=str)
    for coarse, fine in (("a10", "a21"), ("a21", "a88")):
        for above, below in nested[[coarse, fine]].drop_duplicates().itertuples(index=False):
            if above != below and below in table.parents["activity"]:
                assert table.parents["activity"][below] == above
    frame = pd.read_csv(path, dtype=str)
    cells = cells_by(specification, frame)
    assert len(cells) == len(frame)


def test_codes_nest_by_their_first_characters_if_the_sums_agree():
    frame = pd.DataFrame({"nuts": ["Total", "FR1", "FR2", "FR11", "FR12", "FR21"],
                          "value": ["60", "30", "30", "10", "20", "30"]})  # fmt: skip
    assert recognised(frame).parents == {"nuts": {"FR11": "FR1", "FR12": "FR1", "FR21": "FR2"}}
    flat = frame.assign(value=["120", "30", "30", "10", "20", "30"])
    assert recognised(flat).parents == {}
    neither = recognised(frame.assign(value=["77", "30", "30", "10", "20", "30"]))
    assert neither.open_dimensions == ["nuts"]


def test_statuses_and_largest_contributions_are_recognised_by_their_values():
    frame = pd.DataFrame({"a": ["T", "x", "y"], "amount": ["9.5", "4.5", "5.0"], "nb_obs": ["5", "2", "3"],
                          "top1": ["3.0", "3.0", "2.5"], "top2": ["2.5", "1.5", "1.0"],
                          "flag": ["S", "U", "S"], "note": ["", "b", "c"]})  # fmt: skip
    assert recognised(frame) is None  # "T" alone does not prove that a code is a total
    table = recognised(frame.replace({"a": {"T": "_T"}}))
    assert (table.value, table.contributors, table.largest) == ("amount", "nb_obs", ["top1", "top2"])
    assert (table.status, dict(table.statuses)) == ("flag", {"S": "safe", "U": "sensitive"})
    assert table.others == ["note"]


@pytest.mark.parametrize("codes", [["F"] * 3, ["S"] * 3, ["N"] * 3, ["C", "D", "C"]])
def test_column_that_does_not_distinguish_safe_from_sensitive_is_no_status(codes):
    """As statuses, SEX (F) and FREQ (S) would make all cells of a table of women or half-years safe."""
    frame = pd.DataFrame({"a": ["_T", "x", "y"], "amount": ["9.5", "4.5", "5.0"], "SEX": codes})
    table = recognised(frame)
    assert table.status is None
    assert table.others == ["SEX"]
    frame["SEX"] = ["F", "N", "F"]
    assert recognised(frame).status == "SEX"


@pytest.mark.parametrize("code", [*"ACDEGMNOSTX"])
@pytest.mark.parametrize("free", ["F", "", "same"])
def test_conf_status_is_read_by_the_code_list_of_sdmx(code, free):
    """In SDMX, S is secondary confidentiality; only tau-ARGUS uses S for safe."""
    other = code if free == "same" else free
    frame = pd.DataFrame({"a": ["_T", "x", "y"], "OBS_VALUE": ["9.5", "4.5", "5.0"],
                          "OBS_STATUS": ["A", "S", "A"], "CONF_STATUS": [other, code, other]})  # fmt: skip
    table = recognised(frame)
    assert table.status == "CONF_STATUS"
    assert table.statuses == {each: "safe" if each == "F" else "sensitive" for each in {code, other} - {""}}


def test_status_of_a_table_of_counts_is_drafted(tmp_path):
    path = tmp_path / "cells.csv"
    path.write_text("a,count,CONF_STATUS\n_T,9,F\nx,4,S\ny,5,F\n")
    table = drafted(path).table
    assert (table.kind, table.method, table.status) == ("frequency", "suppression", "CONF_STATUS")
    assert table.statuses == {"F": "safe", "S": "sensitive"}


def test_codes_of_tau_argus_are_no_statuses_of_sdmx():
    frame = pd.DataFrame({"a": ["_T", "x", "y"], "OBS_VALUE": ["9.5", "4.5", "5.0"]})
    assert recognised(frame.assign(flag=["S", "U", "S"])).status is None
    with pytest.raises(InputRejected, match="expected codes of CL_CONF_STATUS"):
        recognised(frame.assign(CONF_STATUS=["S", "U", "S"]))
    assert recognised(frame.assign(CONF_STATUS="F")).status is None


@pytest.mark.parametrize("code", ["Q", "C", "c"])
def test_withheld_values_without_a_confidentiality_status_are_refused(code):
    frame = pd.DataFrame({"a": ["_T", "x", "y"], "OBS_VALUE": ["9.5", "4.5", "5.0"],
                          "OBS_STATUS": ["A", code, "A"]})  # fmt: skip
    with pytest.raises(InputRejected, match=f"The column OBS_STATUS: .* found {code}"):
        recognised(frame)
    assert recognised(frame.assign(CONF_STATUS=["F", "C", "F"])).status == "CONF_STATUS"


@pytest.mark.parametrize(("power", "counts"), [("0", True), ("3", False)])
def test_numbers_of_units_are_drafted_as_counts_unless_they_are_in_thousands(power, counts):
    frame = pd.DataFrame({"SEX": ["_T", "M", "F"], "OBS_VALUE": ["9", "4", "5"]})
    table = recognised(frame.assign(UNIT_MEASURE="PS", UNIT_MULT=power))
    assert (table.value is None) == counts


def test_draft_recognises_counts_and_sdmx_csv(tmp_path):
    path = tmp_path / "flow.csv"
    path.write_text("DATAFLOW,SEX,AGE,OBS_VALUE\n" + "".join(
        f"X:F(1.0),{sex},{age},{value}\n" for sex, age, value in (
            ("_T", "_T", 10), ("F", "_T", 6), ("M", "_T", 4), ("_T", "Y", 7), ("_T", "O", 3),
            ("F", "Y", 4), ("F", "O", 2), ("M", "Y", 3), ("M", "O", 1))))  # fmt: skip
    text = draft(str(path)).summary()
    content = tomllib.loads(text)
    assert content["table"]["value"] == "OBS_VALUE"
    assert content["table"]["total"] == "_T"
    assert content["variables"]["DATAFLOW"]["role"] == "identifier"
    assert "A rule is missing" in text
    path.write_text(path.read_text().replace("OBS_VALUE", "count"))
    assert drafted(path).table.kind == "frequency"


@pytest.mark.parametrize(
    ("name", "other"), [("records", "a,b\nx,1\ny,2\n"), ("two totals", "a,n\nTotal,1\nTotal,2\n")]
)
def test_records_are_not_recognised_as_a_table(tmp_path, name, other):
    rows = [line.split(",") for line in other.splitlines()]
    assert recognised(pd.DataFrame(rows[1:], columns=rows[0])) is None


def test_tau_argus_files_are_drafted_by_their_metadata(tmp_path):
    for name in ("pp.tab", "pp.rda"):
        (tmp_path / name).write_bytes(reference_file(f"tauargus/tableinput/{name}").read_bytes())
    (tmp_path / "region2.hrc").write_bytes(reference_file("tauargus/region2.hrc").read_bytes())
    draft_file = tmp_path / "draft.toml"
    draft_file.write_text(draft(str(tmp_path / "pp.tab")).summary())
    table = read_specification(draft_file).table
    assert (table.source, table.value, table.status) == ("cells", "Var2", "StatusVar")
    (tmp_path / "t.rda").write_text(reference_file("tauargus/Tau_TestW.rda").read_text())
    (tmp_path / "t.asc").write_text("84 34100 1  1\n")
    draft_file.write_text(draft(str(tmp_path / "t.asc")).summary())
    specification = read_specification(draft_file)
    assert specification.table.tables == (("Year", "IndustryCode"),)
    assert specification.table.code_widths == {"IndustryCode": (3, 4, 5)}


def test_decimal_comma_is_drafted(tmp_path):
    path = tmp_path / "cells.csv"
    path.write_text("a;amount;n\nTotal;9,5;5\nx;4,5;2\ny;5,0;3\n")
    assert drafted(path).input.decimal == ","
