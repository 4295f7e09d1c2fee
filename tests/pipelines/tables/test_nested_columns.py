"""Tests of codes in two columns that have the same records."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.tables import nested_columns
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.cells.identity import COUNT
from microguard.pipelines.tables.nested_columns import (
    add_up,
    refuse_nested_columns,
    refuse_unknown_columns,
    unrelated,
)
from microguard.pipelines.tables.published_before import PublishedCell, new_cells
from microguard.schemas.errors import GateRefused
from microguard.schemas.specification.table import Table

from tests.attacks.office import cells_of
from tests.attacks.office import specification as described
from tests.pipelines.turnover import records, specification
from tests.schemas.specification.test_table import build


@pytest.mark.parametrize(
    ("pairs", "known", "found"),
    [
        ("a1 a2 b3", True, True),  # a is the sum of 1 and 2
        ("a1 b1 c2", True, True),
        ("a1 a2 b2 b3 c4", True, True),  # a and b together are 1, 2 and 3
        ("a1 a2 b1 b2", True, False),  # only the total is common to both columns
        ("a1 a2 b2 b3 c3", True, False),
        ("a1 b2 c3", True, False),
        ("a1 b2 c3", False, True),
        ("a1 a2 a3", False, False),
    ],
)
def test_add_up_finds_codes_of_the_same_records(pairs, known, found):
    assert add_up(pd.DataFrame([list(each) for each in pairs.split()]), known=known) is found


@pytest.mark.parametrize(
    ("table", "found"),
    [
        ({"tables": [["a21", "size"], ["a10", "size"]]}, [("a10", "a21")]),
        ({"tables": [["a21", "size"], ["a10", "size"]], "hierarchies": [["a10", "a21"]]}, []),
        ({"tables": [["a21", "size"], ["a10"]]}, [("a10", "a21"), ("a10", "size")]),
        ({"tables": [["a21", "a10", "size"], ["a10", "size"]]}, []),
        # the table with both columns does not have the size
        (
            {"tables": [["a21", "size"], ["a10", "size"], ["a21", "a10"]]},
            [("a10", "a21"), ("a10", "size"), ("a21", "size")],
        ),
        ({"tables": [["a21", "size"], ["a21", "region"]]}, [("region", "size")]),
        (
            {"tables": [["a88", "size"], ["branch", "size"]], "hierarchies": [["a21", "a88"]]},
            [("a21", "branch"), ("a88", "branch")],
        ),
    ],
)
def test_unrelated_columns_are_in_two_tables_and_in_no_hierarchy(table, found):
    variables = {name: {"role": "other"} for name in ("a10", "a21", "a88", "branch", "size", "region")}
    variables["turnover"] = {"role": "sensitive", "kind": "numeric"}
    chosen = build({"value": "turnover", **table}, variables=variables).table
    assert chosen is not None
    assert sorted(unrelated(chosen)) == found


@pytest.mark.spark
@pytest.mark.parametrize("method", ["adjustment", "suppression", "cell_key"])
def test_tables_of_nested_columns_without_a_hierarchy_are_refused(adjusted, tmp_path, method):
    counts = {"kind": "frequency", "value": None, "dominance": None, "decimals": None, "effort": None}
    table = {"tables": [["a21", "region"], ["a10", "region"]], "hierarchies": None, "method": method}
    table |= {**counts, "quality": {"max_posterior": 0.95}} if method == "cell_key" else {}
    unit = {"firm": {"role": "unit"}}
    frame = records().assign(firm=[str(number) for number in range(400)])
    with pytest.raises(GateRefused, match="Codes of a10 add up to the same records as codes of a21"):
        adjusted(specification(tmp_path, frame, unit, **table))
    if method != "cell_key":
        adjusted(specification(tmp_path, frame, unit, **{**table, "hierarchies": [["a10", "a21"]]}))


@pytest.mark.parametrize(
    ("table", "columns", "refused"),
    [
        (["section", "size"], ["section", "size"], True),
        (["section", "size"], ["branch", "section", "size"], False),
        (["name", "size"], ["name", "size"], False),  # each branch under another name
        (["size"], ["size"], False),
    ],
)
def test_columns_of_records_that_lack_those_of_an_earlier_table_are_refused(table, columns, refused):
    random = np.random.default_rng(0)
    branch = random.integers(0, 6, 80)
    frame = pd.DataFrame(
        {
            "branch": branch.astype(str),
            "name": np.array(list("abcdef"))[branch],
            "section": (branch // 2).astype(str),
            "size": random.choice(list("xyz"), 80),
            "turnover": random.lognormal(6, 1, 80).round(2),
        }
    )

    def counted(dimensions: list[str]) -> tuple[Cells, Table]:
        chosen = described(frame, {"value": "turnover", "tables": [dimensions]})
        assert chosen.table is not None
        return cells_of(frame, chosen).keyed(bytes(range(32))), chosen.table

    first, its_table = counted(["branch", "size"])
    origin = {"source": "survey", "period": "", "release_id": "r1"}
    before = new_cells(first, its_table, first.units, None, origin)
    cells, chosen = counted(table)
    if not refused:
        refuse_unknown_columns(columns, chosen, cells, before, origin)
        return
    with pytest.raises(GateRefused, match="The records lack branch"):
        refuse_unknown_columns(columns, chosen, cells, before, origin)


@pytest.mark.spark
@pytest.mark.parametrize("method", ["adjustment", "suppression"])
def test_table_of_records_without_a_column_of_an_earlier_table_is_refused(adjusted, tmp_path, method):
    chosen = {"tables": [["a21", "region"]], "hierarchies": None, "method": method}
    frame = records()
    adjusted(specification(tmp_path, frame, **chosen))
    other = {"name": "sections", "source": "turnover"}

    def by_section(lacking):
        spec = specification(tmp_path, lacking, {}, other, **{**chosen, "tables": [["a10", "region"]]})
        variables = {name: role for name, role in spec.variables.items() if name in lacking}
        publish = spec.publish.model_copy(update={"path": "elsewhere"})
        return spec.model_copy(update={"variables": variables, "publish": publish})

    with pytest.raises(GateRefused, match="The records lack a21"):
        adjusted(by_section(frame.drop(columns="a21")))
    renamed = frame.drop(columns=["a10"]).rename(columns={"a21": "a10"})
    adjusted(by_section(renamed))


def test_columns_that_fall_into_parts_by_chance_do_not_nest():
    random = np.random.default_rng(0)
    drawn = [
        pd.DataFrame({"here": random.integers(0, 16, 60), "there": random.integers(0, 88, 60)})
        for _ in range(20)
    ]
    assert sum((nested_columns._sizes(pairs.drop_duplicates()) > 2).sum() > 1 for pairs in drawn) > 10

    def nest(pairs: pd.DataFrame) -> bool:
        count: Any = SimpleNamespace(count=lambda: len(pairs))
        return nested_columns._nest(pairs.drop_duplicates(), count)

    assert not any(map(nest, drawn))
    branch = random.integers(0, 20, 60)
    assert nest(pd.DataFrame({"here": branch // 4, "there": branch}))


def test_a_table_of_another_source_is_known_by_a_common_cell_that_is_no_total():
    frame = pd.DataFrame({"region": list("abcd") * 5, "activity": list("vw") * 10})  # 5 + 5 = 10

    def counted(name: str) -> tuple[Cells, Table]:
        chosen = described(frame, {"kind": "frequency", "tables": [[name]]})
        assert chosen.table is not None
        return cells_of(frame, chosen).keyed(bytes(range(32))), chosen.table

    first, its_table = counted("region")
    before = new_cells(first, its_table, first.units, None, {"source": "a", "period": "", "release_id": "r1"})
    cells, table = counted("activity")
    refuse_unknown_columns(["activity"], table, cells, before, {"source": "b", "period": ""})
    with pytest.raises(GateRefused, match="The records lack region"):
        refuse_unknown_columns(["activity"], table, cells, before, {"source": "a", "period": ""})


@pytest.mark.spark
def test_columns_of_many_earlier_tables_are_compared_in_as_many_jobs_as_those_of_one(spark):
    random = np.random.default_rng(0)
    frame = pd.DataFrame({f"c{i}": random.integers(0, 5, 200).astype(str) for i in range(8)})
    chosen = described(frame, {"kind": "frequency", "tables": [["c6", "c7"]]}).table
    assert chosen is not None
    jobs = []
    for earlier in (1, 6):
        before = [
            PublishedCell("a", "", COUNT, ((f"c{i}", "1"),), None, 0, f"r{i}", Decimal(40))
            for i in range(earlier)
        ]
        spark.sparkContext.setJobGroup(f"{earlier} earlier tables", "")
        refuse_nested_columns(spark.createDataFrame(frame), chosen, before, known=False)
        jobs.append(len(spark.sparkContext.statusTracker().getJobIdsForGroup(f"{earlier} earlier tables")))
    spark.sparkContext.setJobGroup(None, None)
    assert jobs[0] == jobs[1]
