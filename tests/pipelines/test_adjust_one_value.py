"""Tests that a published cell keeps its value in every table, under any name, unit or level."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from microguard.schemas.errors import GateRefused

from tests.pipelines.published_tables import example, tables
from tests.pipelines.turnover import records, specification

RULE = {"dominance": None, "p_percent": 15.0}


def at(chosen, path):
    """Return the same specification with another publication folder."""
    return chosen.model_copy(update={"publish": chosen.publish.model_copy(update={"path": path})})


def test_cell_of_the_same_records_keeps_its_value_under_any_table_name(adjusted, tmp_path):
    """Tables with another name, another source and another period follow one after the other."""
    (first,) = tables(adjusted(specification(tmp_path, records(), **RULE)))
    other = {"tables": [["a21"]], "hierarchies": None, "costs": "inverse", **RULE}
    called = (
        {"name": "again"},
        {"name": "firms", "source": "firms"},
        {"name": "later", "source": "turnover", "period": "2026"},
    )
    for release in called:
        shuffled = records().sample(frac=1, random_state=1)
        chosen = specification(tmp_path, shuffled, release={"seed": 7, **release}, **other)
        (second,) = tables(adjusted(at(chosen, release["name"])))
        both = first[first["region"] == "Total"].merge(second, on="a21")
        both = both[(both["a21"] != "Total") | (both["a10"] == "Total")]
        assert len(both) == len(second) == 6
        assert (both["turnover_x"] == both["turnover_y"]).all()


def test_same_amounts_under_another_name_or_unit_get_no_second_value(adjusted, tmp_path):
    """Weights of 1 change nothing; other amounts of the same firms have separate values."""
    adjusted(specification(tmp_path, records()))
    sales = {"sales": {"role": "sensitive", "kind": "numeric"}, "weight": {"role": "weight"}}
    frame = records().assign(weight=1.0)
    given = {"value": "sales", "decimals": 3}
    for factor, value in ((1.0, given), (0.001, given), (1.0, {"weighted": True})):
        alike = frame.assign(sales=frame["turnover"] * factor)
        with pytest.raises(GateRefused, match="are those of turnover"):
            adjusted(
                at(specification(tmp_path, alike, sales, release={"name": "again"}, **value), "elsewhere")
            )
    unrelated = frame.assign(sales=frame["turnover"].sample(frac=1, random_state=1).to_numpy())
    chosen = specification(tmp_path, unrelated, sales, release={"name": "again"}, value="sales")
    adjusted(at(chosen, "elsewhere"))


def test_table_of_few_cells_in_another_unit_gets_no_second_values(adjusted, tmp_path):
    """The table has three regions and their total in cents, each of which would have a second draw."""
    frame = records().assign(turnover=lambda each: (1e5 * each["turnover"]).round())
    adjusted(specification(tmp_path, frame, decimals=0))
    cents = frame.assign(cents=100 * frame["turnover"])
    chosen = specification(
        tmp_path, cents, {"cents": {"role": "sensitive", "kind": "numeric"}}, release={"name": "again"},
        value="cents", decimals=0, tables=[["region"]], hierarchies=None,
    )  # fmt: skip
    with pytest.raises(GateRefused, match="are those of turnover"):
        adjusted(at(chosen, "elsewhere"))


@pytest.mark.parametrize(
    ("variables", "source"),
    [({}, "turnover"), ({"firm": {"role": "unit"}}, "another")],
    ids=["records", "units of another source"],
)
def test_section_with_one_branch_has_the_value_of_its_branch_in_another_table(
    adjusted, tmp_path, variables, source
):
    rule = {"dominance": None, "p_percent": 15.0}
    few = records(count=60)  # with so few records, cells of sections with one branch are sensitive
    sections = specification(tmp_path, few, variables, **rule)
    (first,) = tables(adjusted(sections))
    branches = {"A": "01", "B": "05", "C": "10", "D": "35", "E": "35"}
    frame = few.assign(branch=lambda each: each["a21"].map(branches))
    chosen = specification(tmp_path, frame, {"branch": {"role": "other"}, **variables},
                           release={"name": "branches", "source": source, "seed": 7},
                           tables=[["branch", "region"]], hierarchies=None, **rule)  # fmt: skip
    elsewhere = chosen.publish.model_copy(update={"path": "elsewhere", "successive": "accept"})
    (second,) = tables(adjusted(chosen.model_copy(update={"publish": elsewhere})))
    first["branch"] = first["a21"].map(branches)
    both = first[first["a21"].isin(["A", "B", "C"])].merge(second, on=["branch", "region"])
    assert len(both) == 12
    assert (both["turnover_x"] == both["turnover_y"]).all()
    true = frame.assign(true=frame["turnover"].round(1)).groupby(["branch", "region"])["true"].sum()
    inner = both[both["region"] != "Total"].set_index(["branch", "region"])["turnover_x"].astype(float)
    assert ((inner - true).abs().dropna() > 1).any()


@pytest.mark.parametrize("order", [("a21", "a10"), ("a10", "a21")], ids=["finer first", "coarser first"])
def test_tables_by_section_and_by_branch_have_equal_sums(adjusted, tmp_path, order):
    rule = {"dominance": None, "p_percent": 15.0, "hierarchies": None}
    (first,) = tables(adjusted(specification(tmp_path, records(), tables=[[order[0], "region"]], **rule)))
    chosen = specification(tmp_path, records(), tables=[[order[1], "region"]], release={"name": "second"},
                           **rule)  # fmt: skip
    second = chosen.model_copy(update={"publish": chosen.publish.model_copy(update={"path": "elsewhere"})})
    with pytest.raises(GateRefused, match="add up to the same records"):
        adjusted(second)
    both = {"tables": (("a21", "region"),), "hierarchies": (("a10", "a21"),)}
    assert second.table is not None
    together = second.model_copy(update={"table": second.table.model_copy(update=both)})
    (published,) = tables(adjusted(together))
    joined = published[published["a21"] != "Total"] if order[0] == "a21" else published[
        (published["a10"] != "Total") & (published["a21"] == "Total")
    ]  # fmt: skip
    joined = joined.merge(first[first[order[0]] != "Total"], on=[order[0], "region"])
    assert len(joined) >= 8
    assert (joined["turnover_x"] == joined["turnover_y"]).all()


def test_linked_tables_by_section_and_by_branch_publish_one_value_for_a_single_branch(adjusted, tmp_path):
    frame = records(count=60).assign(branch=lambda each: each["a21"].map({"A": "01", "B": "05"}).fillna("10"))
    chosen = specification(tmp_path, frame, {"branch": {"role": "other"}, "firm": {"role": "unit"}},
                           tables=[["a21", "region"], ["branch", "region"]], hierarchies=None,
                           dominance=None, p_percent=15.0)  # fmt: skip
    by_section, by_branch = tables(adjusted(chosen))
    by_section["branch"] = by_section["a21"].map({"A": "01", "B": "05"})
    both = by_section.merge(by_branch, on=["branch", "region"])
    assert len(both) >= 7
    assert (both["turnover_x"] == both["turnover_y"]).all()


@pytest.mark.reference
def test_second_table_of_a_source_publishes_its_cells_with_their_first_values(adjusted, tmp_path):
    coarse = 'table.tables=[["a21", "nuts2"]]', 'table.hierarchies=[["a10", "a21"], ["nuts1", "nuts2"]]'
    fast = (*coarse, "table.effort=fast", "publish.successive=accept")
    (first,) = tables(adjusted(example("turnover_tables", tmp_path, *fast)))
    again = adjusted(example("turnover_tables", tmp_path, *fast, "release.seed=99"))
    (second,) = tables(again)
    pd.testing.assert_frame_equal(first, second)
    assert Path(again["release"]).name != "current.json"
    for path in (tmp_path / "evidence").rglob("published_cells.parquet"):
        path.unlink()
    with pytest.raises(GateRefused, match="is lost"):
        adjusted(example("turnover_tables", tmp_path, *fast, "release.seed=100"))
