"""Tests of JSON-stat tables: cells in the order of the dimensions, parents of their codes, and refusals."""

from __future__ import annotations

import json
import math
import tomllib

import pandas as pd
import pytest
from microguard.jobs.command import run_command
from microguard.pipelines.draft import draft
from microguard.pipelines.drafting.json_stat import read_json_stat
from microguard.pipelines.intake.input_file import foreign_format
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.read import build_specification

from tests.pipelines.drafting.test_finished_table import cells_by

REGIONS = {"_T": 0, "N": 1, "N1": 2, "N2": 3, "S": 4}
#: Region by sex: the totals, men and women of each region.
VALUES = [21, 9, 12, 11, 4, 7, 5, 1, 4, 6, 3, 3, 10, 5, 5]


def dataset(**changes: object) -> dict[str, object]:
    return {
        "version": "2.0", "class": "dataset", "id": ["unit", "region", "sex"], "size": [1, 5, 3],
        "dimension": {
            "unit": {"category": {"label": {"NR": "Number"}}},
            "region": {"category": {"index": REGIONS, "child": {"_T": ["N", "S"], "N": ["N1", "N2"]}}},
            "sex": {"category": {"index": ["_T", "M", "F"]}},
        },
        "value": VALUES,
    } | changes  # fmt: skip


def with_sex(category: dict[str, object]) -> dict[str, object]:
    """Return the table with another description of the sexes."""
    table = dataset()
    return table | {"dimension": table["dimension"] | {"sex": {"category": category}}}


def renamed(old: str, new: str) -> dict[str, object]:
    """Return the changes of the table that rename a dimension."""
    table = dataset()
    dimensions = {new if name == old else name: each for name, each in table["dimension"].items()}
    return {"id": list(dimensions), "dimension": dimensions}


def written(tmp_path, content: object):
    path = tmp_path / "table.json"
    path.write_text(json.dumps(content))
    return path


def test_cells_are_in_row_major_order_of_the_dimensions(tmp_path):
    table = read_json_stat(written(tmp_path, dataset()))
    assert table is not None
    assert table.columns == ("unit", "region", "sex", "OBS_VALUE")
    assert table.rows[4] == ("NR", "N", "M", "4")
    assert len(table.rows) == 15
    assert table.parents == {"region": {"N": "_T", "S": "_T", "N1": "N", "N2": "N"}}


@pytest.mark.parametrize(
    "content",
    [
        dataset(value={str(i): value for i, value in enumerate(VALUES)}),
        {"updated": dataset()},
        dataset(status="A"),
    ],
    ids=["sparse values", "version 1", "one status for all cells"],
)
def test_equivalent_json_stat_encodings_of_a_table_have_the_same_cells(tmp_path, content):
    expected = {row[:4] for row in read_json_stat(written(tmp_path, dataset())).rows}
    assert {row[:4] for row in read_json_stat(written(tmp_path, content)).rows} == expected


def test_cells_without_a_value_are_omitted_and_measures_become_columns(tmp_path):
    table = read_json_stat(written(tmp_path, dataset(value=[None, *VALUES[1:]])))
    assert len(table.rows) == 14
    measures = read_json_stat(written(tmp_path, dataset(role={"metric": ["sex"]})))
    assert measures.columns == ("unit", "region", "_T", "M", "F")
    assert measures.rows[0] == ("NR", "_T", "21", "9", "12")


@pytest.mark.parametrize("code", ["S", "C", "c", "Q", "U"])
@pytest.mark.parametrize("several", [False, True], ids=["one value", "several measures"])
def test_draft_refuses_statuses_that_may_be_of_confidential_cells(tmp_path, code, several):
    """JSON-stat specifies no code list: S may be a strike, secondary confidentiality, or safe."""
    changes = {"role": {"metric": ["sex"]}} if several else {}
    table = dataset(status={"5": code}, **changes)
    with pytest.raises(InputRejected, match="Add a column CONF_STATUS"):
        draft(str(written(tmp_path, table)), str(tmp_path / "cells.csv"))
    (tmp_path / "cells.csv").unlink()
    table["status"] = {"5": "p"}
    assert draft(str(written(tmp_path, table)), str(tmp_path / "cells.csv")).summary()


def test_draft_of_json_stat_nests_codes_and_its_cells_add_up(tmp_path):
    cells = tmp_path / "cells.csv"
    content = tomllib.loads(draft(str(written(tmp_path, dataset())), str(cells)).summary())
    table = build_specification(content, tmp_path).table
    assert table.value == "OBS_VALUE"
    assert content["table"]["parents"]["region"] == {"N1": "N", "N2": "N"}
    frame = pd.read_csv(cells).set_index(["region", "sex"])["OBS_VALUE"]
    assert frame["N", "F"] == frame["N1", "F"] + frame["N2", "F"]


def test_draft_uses_the_parents_of_the_source_if_sums_do_not_show_them(tmp_path):
    values = [*VALUES[:9], None, None, None, *VALUES[12:]]  # the sums of N1 alone differ from those of N
    text = draft(str(written(tmp_path, dataset(value=values))), str(tmp_path / "cells.csv")).summary()
    assert tomllib.loads(text)["table"]["parents"]["region"] == {"N1": "N"}
    assert "[table.parents.region]    # named by the source; the sums of the cells do not show" in text


@pytest.mark.parametrize("place", [7, 8])
def test_missing_part_of_a_total_is_not_read_as_0(tmp_path, place):
    """Rounding would explain the 1 at position 7."""
    values = [None if i == place else value for i, value in enumerate(VALUES)]
    cells = tmp_path / "cells.csv"
    text = draft(str(written(tmp_path, dataset(value=values))), str(cells)).summary()
    assert "tolerance = 0    # 1 cell(s) of the source have no value" in text
    specification = build_specification(tomllib.loads(text), tmp_path)
    with pytest.raises(InputRejected, match="differ from the sum"):
        cells_by(specification, pd.read_csv(cells, dtype=str))


@pytest.mark.parametrize(
    "child", [{"_T": ["M", "F"]}, {"M": ["F"], "_T": ["M", "F"]}], ids=["flat", "several"]
)
def test_draft_requires_parents_that_neither_sums_nor_the_source_show(tmp_path, child):
    table = with_sex({"index": ["_T", "M", "F"], "child": child})
    table["value"] = [21, 9, 6, 11, 4, 3, 5, 1, 2, 6, 3, 1, 10, 5, 3]  # some cells have no sex
    text = draft(str(written(tmp_path, table)), str(tmp_path / "cells.csv")).summary()
    assert '# Codes of "sex" do not add up to the total' in text
    assert "sex" not in tomllib.loads(text)["table"]["parents"]


def test_code_with_the_label_total_is_the_total(tmp_path):
    labels = {"T": "Total", "M": "Men", "F": "Women"}
    table = with_sex({"index": ["T", "M", "F"], "label": labels})
    content = tomllib.loads(draft(str(written(tmp_path, table)), str(tmp_path / "cells.csv")).summary())
    assert content["table"]["tables"] == [["region", "sex"]]
    assert content["table"]["totals"] == {"sex": "T"}


def test_draft_refuses_a_table_with_a_dimension_without_total(tmp_path):
    years = dataset(id=["time", "region", "sex"], size=[2, 5, 3], value=[*VALUES, *VALUES])
    years["dimension"]["time"] = {"category": {"index": ["2023", "2024"]}}
    with pytest.raises(InputRejected, match="found none in time"):
        draft(str(written(tmp_path, years)), str(tmp_path / "cells.csv"))
    kept = [row for row in (tmp_path / "cells.csv").read_text().splitlines() if not row.startswith("2023")]
    (tmp_path / "one.csv").write_text("\n".join(kept) + "\n")
    assert tomllib.loads(draft(str(tmp_path / "one.csv")).summary())["table"]["tables"] == [["region", "sex"]]


def test_year_and_incomplete_measure_are_not_drafted_as_values_of_a_table(tmp_path):
    table = dataset(id=["time", "region", "measure"], role={"metric": ["measure"]})
    table["dimension"] |= {
        "time": {"category": {"index": ["2024"]}},
        "measure": {"category": {"index": ["turnover", "employees", "costs"]}},
    }
    content = tomllib.loads(draft(str(written(tmp_path, table)), str(tmp_path / "cells.csv")).summary())
    assert content["table"]["value"] == "turnover"
    table["value"] = [*VALUES[:6], None, *VALUES[7:]]
    text = draft(str(written(tmp_path, table)), str(tmp_path / "others.csv")).summary()
    assert 'turnover = { role = "identifier" }    # numbers that some cells lack: left out' in text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (dataset(value=VALUES[1:]), "found others. Save"),
        (dataset(size=[1, 5, 4]), "found others. Save"),
        (dataset(value=["x", *VALUES[1:]]), "found others. Save"),
        (dataset(value=[math.nan, *VALUES[1:]]), "cannot be read as JSON"),
        (dataset(value=[math.inf, *VALUES[1:]]), "cannot be read as JSON"),
        (dataset(value={"-1": 5}), "found others. Save"),
        (with_sex({"index": {"_T": 0, "M": 2, "F": 2}}), "found others. Save"),
        (with_sex({"index": {"_T": 1, "M": 2, "F": 3}}), "found others. Save"),
        (with_sex({"index": ["_T", "M", "M"]}), "found others. Save"),
        (with_sex({"label": {"_T": "Total", "M": "Men", "F": "Women"}}), "found others. Save"),
        (dataset(role={"metric": ["region"]}) | renamed("sex", "N1"), "found others. Save"),
        ({"a": dataset(), "b": dataset()}, "found a collection"),
        ({"records": [1]}, "which is no JSON-stat table"),
        ([1, 2], "which is no JSON-stat table"),
    ],
)
def test_draft_refuses_json_that_is_no_single_consistent_table(tmp_path, content, message):
    with pytest.raises(InputRejected, match=message):
        draft(str(written(tmp_path, content)), str(tmp_path / "cells.csv"))
    assert not (tmp_path / "cells.csv").exists()


def test_draft_of_amounts_states_that_a_rule_is_missing(tmp_path):
    amounts = dataset()
    amounts["dimension"]["unit"] = {"category": {"label": {"EUR": "Euro"}}}
    text = draft(str(written(tmp_path, amounts)), str(tmp_path / "cells.csv")).summary()
    assert "A rule is missing" in text


def test_draft_does_not_overwrite_a_file_of_cells(tmp_path):
    cells = tmp_path / "cells.csv"
    cells.write_text("mine")
    with pytest.raises(InputRejected, match="expected a new file"):
        draft(str(written(tmp_path, dataset())), str(cells))
    assert cells.read_text() == "mine"


def test_draft_of_a_json_file_without_the_option_states_what_to_do(tmp_path, capsys):
    assert run_command(["draft", str(written(tmp_path, dataset()))]) == 3
    assert "a JSON file" in capsys.readouterr().err
    for text, what in (
        ('[{"a": 1}]', "a JSON file"),
        ('\ufeff {\n "a": 1}', "a JSON file"),
        ("<?xml version='1.0'?>", "an XML or HTML file"),
        ("<!DOCTYPE html>", "an XML or HTML file"),
        ("{a},b\n1,2\n", None),
        ("[id],[name]\n1,2\n", None),
    ):
        path = tmp_path / "other.csv"
        path.write_text(text, encoding="utf-8")
        found = foreign_format(path)
        assert (None if found is None else found[0]) == what, text
