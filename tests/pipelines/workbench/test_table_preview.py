"""Tests of table cells in the workbench: sums, sensitive cells and attackers, against counts by hand."""

import pandas as pd
import pytest
from microguard.pipelines.workbench.table_preview import Frames, preview_table
from microguard.schemas.errors import InputRejected, SpecificationError
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


def test_table_preview_sums_records_and_marks_cells_by_rules(folder):
    found = preview_table(specification(folder, {"value": "turnover", "p_percent": 10}, **AMOUNT))
    cell = cells(found)
    assert len(cell) == 9
    assert found.values[cell["Total", "Total"]] == RECORDS["turnover"].sum()
    assert found.values[cell["A", "Total"]] == 220
    marked = {codes for codes, place in cell.items() if found.sensitive[place]}
    assert marked == {("A", "x"), ("B", "x")}  # 4 of 90 is less than 10 %, and the cell has 2 contributors
    assert "the second largest knows it within 4.44 %" in found.learned(cell["A", "x"])
    assert "each learns the amount of the other" in found.learned(cell["B", "x"])


def test_table_preview_marks_other_cells_with_another_rule(folder):
    table = {"value": "turnover", "dominance": {"n": 1, "k": 95}, "minimum_frequency": 2}
    found = preview_table(specification(folder, table, **AMOUNT))
    assert not found.sensitive.any()
    table["dominance"] = {"n": 1, "k": 89}
    found = preview_table(specification(folder, table, **AMOUNT))
    assert [tuple(row) for row in found.labels[found.sensitive].to_numpy()] == [("A", "x")]


def test_table_preview_marks_counts_below_the_minimum(folder):
    found = preview_table(specification(folder, {"kind": "frequency"}))
    marked = {tuple(row) for row in found.labels[["branch", "size"]][found.sensitive].to_numpy()}
    assert marked == {("B", "x")}


def test_table_preview_reads_a_finished_table_without_changes(tmp_path):
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


def margins(folder, records, table=None, **variables):
    """Return contributors and sensitivity of each cell."""
    pd.DataFrame(records).to_parquet(folder / "data.parquet", index=False)
    found = preview_table(specification(folder, {"value": "turnover"} | (table or {}), **AMOUNT, **variables))
    assert found.contributors is not None
    return {
        codes: (int(found.contributors[cell]), bool(found.sensitive[cell]))
        for codes, cell in cells(found).items()
    }


FIRMS = [
    *({"branch": "A", "size": size, "turnover": 10.0, "firm": "f"} for size in "xyz"),
    *({"branch": "B", "size": "x", "turnover": 10.0, "firm": f"g{i}"} for i in range(20)),
]


@pytest.mark.parametrize(
    ("table", "firm"), [({}, {"role": "unit"}), ({"holding": "firm"}, {"role": "other", "kind": "nominal"})]
)
def test_only_unit_of_a_margin_is_one_contributor(folder, table, firm):
    found = margins(folder, FIRMS, table, firm=firm)
    assert found["A", "Total"] == (1, True)
    assert found["Total", "Total"] == (21, False)
    alone = margins(folder, FIRMS, firm={"role": "identifier"})  # in this table each record is a contributor
    assert alone["A", "Total"][0] == 3


def test_largest_contributions_of_a_margin_are_summed_by_unit(folder):
    records = [
        {"branch": "A", "size": size, "turnover": 30.0, "firm": "f"} for size in "xyz"
    ] + [{"branch": "A", "size": "x", "turnover": 4.0 + i, "firm": f"g{i}"} for i in range(3)]  # fmt: skip
    rule = {"dominance": {"n": 1, "k": 80}}
    assert margins(folder, records, rule, firm={"role": "unit"})["A", "Total"] == (4, True)
    assert margins(folder, records, rule, firm={"role": "identifier"})["A", "Total"] == (6, False)


def test_table_preview_counts_missing_codes_and_units_as_a_run_does(folder):
    records = [
        {"branch": None if i < 3 else "A", "size": None if i == 5 else 1, "turnover": 10.0,
         "firm": None if i in (3, 4) else f"f{i}"}
        for i in range(9)
    ]  # fmt: skip
    frame = pd.DataFrame(records).assign(size=pd.array([each["size"] for each in records], "Int64"))
    found = margins(folder, frame, firm={"role": "unit"})
    assert found["(missing)", "Total"] == (3, False)
    assert found["A", "(missing)"] == (1, True)
    assert found["A", "1"][0] == 4  # two records without a unit are one contributor
    assert found["Total", "Total"] == (8, False)


def test_table_preview_recodes_and_rejects_values_as_a_run_does(folder):
    records = [
        {"branch": "A" if i else "unknown", "size": 10 * i, "turnover": 10.0 if i != 7 else None}
        for i in range(8)
    ]
    size = {"size": {"role": "quasi_identifier", "kind": "ordinal", "bands": [25]}}
    branch = {"branch": {"role": "other", "kind": "nominal", "missing": ["unknown"]}}
    found = margins(folder, records, **size, **branch)
    assert found["Total", "under 25"][0] == 3
    assert found["(missing)", "Total"][0] == 1
    assert found["Total", "25 and over"][0] == 4


def test_table_preview_names_a_column_that_the_file_lacks(folder):
    pd.DataFrame(FIRMS).drop(columns="size").to_parquet(folder / "data.parquet", index=False)
    with pytest.raises(InputRejected, match=r"has no column.*size"):
        preview_table(specification(folder, {"value": "turnover"}, **AMOUNT))


def test_table_preview_reads_columns_again_only_if_other_columns_are_needed(folder):
    frames = Frames()
    first = preview_table(specification(folder, {"value": "turnover", "p_percent": 10}, **AMOUNT), frames)
    (folder / "data.parquet").unlink()
    again = preview_table(specification(folder, {"value": "turnover", "p_percent": 50}, **AMOUNT), frames)
    assert first.values.tolist() == again.values.tolist()
    assert first.sensitive.sum() < again.sensitive.sum()
    RECORDS.assign(turnover=1.0).to_parquet(folder / "data.parquet", index=False)
    fewer = {"value": "turnover", "p_percent": 10, "tables": [["branch"]]}
    assert preview_table(specification(folder, fewer, **AMOUNT), frames).values.max() == len(RECORDS)
