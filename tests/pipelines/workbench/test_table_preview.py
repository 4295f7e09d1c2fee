"""Cells of a table in the workbench: sums, sensitive cells and who learns what, against counts by hand."""

import pandas as pd
import pytest
from microguard.pipelines.workbench.table_preview import preview_table
from microguard.schemas.errors import SpecificationError
from microguard.schemas.specification.read import build_specification

RECORDS = pd.DataFrame(
    [("A", "x", 90.0), ("A", "x", 6.0), ("A", "x", 4.0), ("A", "y", 50.0), ("A", "y", 40.0), ("A", "y", 30.0),
     ("B", "x", 20.0), ("B", "x", 10.0), ("B", "y", 7.0), ("B", "y", 7.0), ("B", "y", 7.0)],
    columns=["branch", "size", "turnover"],
)  # fmt: skip


def specification(folder, table, **variables):
    content = {
        "release": {"name": "table", "k": 3},
        "input": {"path": "data.parquet", "unmentioned": "drop"},
        "variables": {name: {"role": "other"} for name in ("branch", "size")} | variables,
        "table": {"tables": [["branch", "size"]]} | table,
        "publish": {"path": "lake", "evidence": "evidence"},
    }
    return build_specification(content, folder)


@pytest.fixture
def folder(tmp_path):
    RECORDS.to_parquet(tmp_path / "data.parquet", index=False)
    return tmp_path


def cells(found):
    return {tuple(codes): cell for cell, codes in enumerate(found.labels[["branch", "size"]].to_numpy())}


AMOUNT = {"turnover": {"role": "sensitive", "kind": "numeric"}}


def test_records_are_added_up_and_rules_mark_cells(folder):
    found = preview_table(specification(folder, {"value": "turnover", "p_percent": 10}, **AMOUNT))
    cell = cells(found)
    assert len(cell) == 9
    assert found.values[cell["Total", "Total"]] == RECORDS["turnover"].sum()
    assert found.values[cell["A", "Total"]] == 220
    marked = {codes for codes, place in cell.items() if found.sensitive[place]}
    assert marked == {("A", "x"), ("B", "x")}  # 4 of 90 are not 10 %, and 2 contributors
    assert "the second largest knows it within 4.44 %" in found.learned(cell["A", "x"])
    assert "each learns the amount of the other" in found.learned(cell["B", "x"])


def test_another_rule_marks_other_cells(folder):
    table = {"value": "turnover", "dominance": {"n": 1, "k": 95}, "minimum_frequency": 2}
    found = preview_table(specification(folder, table, **AMOUNT))
    assert not found.sensitive.any()
    table["dominance"] = {"n": 1, "k": 89}
    found = preview_table(specification(folder, table, **AMOUNT))
    assert [tuple(row) for row in found.labels[found.sensitive].to_numpy()] == [("A", "x")]


def test_counts_below_the_minimum_are_sensitive(folder):
    found = preview_table(specification(folder, {"kind": "frequency"}))
    marked = {tuple(row) for row in found.labels[["branch", "size"]][found.sensitive].to_numpy()}
    assert marked == {("B", "x")}


def test_finished_table_is_read_as_it_is(tmp_path):
    rows = [("A", 3, 100), ("B", 2, 30), ("Total", 5, 130)]
    frame = pd.DataFrame(rows, columns=["branch", "n", "turnover"])
    frame.to_csv(tmp_path / "data.csv", index=False, sep=";")
    content = {
        "release": {"name": "table", "k": 3},
        "input": {"path": "data.csv", "format": "csv", "delimiter": ";"},
        "variables": {
            "branch": {"role": "other", "kind": "nominal"},
            "n": {"role": "other", "kind": "numeric"},
            "turnover": {"role": "other", "kind": "numeric"},
        },
        "table": {"source": "cells", "value": "turnover", "tables": [["branch"]], "contributors": "n"},
        "publish": {"path": "lake", "evidence": "evidence"},
    }
    found = preview_table(build_specification(content, tmp_path))
    assert found.labels["branch"][found.sensitive].tolist() == ["B"]
    content["input"]["positions"] = {"branch": [1, 5], "n": [6, 2], "turnover": [8, 4]}
    del content["input"]["delimiter"]
    with pytest.raises(SpecificationError, match="positions"):
        preview_table(build_specification(content, tmp_path))
