"""Tests of guarantees of tables: counts equal plain Python, on whole tables and on all kinds of broken
tables.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.pipelines.guarantees.additive_table import AdditiveTable
from microguard.pipelines.guarantees.bounded_noise import BoundedNoise
from microguard.pipelines.guarantees.guarantee import unmet
from microguard.pipelines.guarantees.original_cells import OriginalCells
from microguard.pipelines.guarantees.rounded_table import RoundedTable
from microguard.pipelines.guarantees.small_counts import SmallCounts
from microguard.pipelines.guarantees.suppressed_table import SuppressedTable
from microguard.pipelines.guarantees.table_files import table_files, wrong_columns
from microguard.schemas.requirements.requirement import MetricKey

from tests.contract.guarantees import oracle

TOTAL = "Total"
RECORD = st.fixed_dictionaries(
    {
        "coarse": st.just(""),
        "fine": st.sampled_from(["a1", "a2", "b1"]),
        "region": st.sampled_from(["n", "s"]),
        "v": st.integers(0, 12),
    }
)
RECORDS = st.lists(RECORD, min_size=1, max_size=12)
BREAKS = st.lists(
    st.tuples(st.sampled_from(["change", "drop", "repeat", "empty"]), st.integers(0, 10**6)), max_size=3
)
KINDS = st.sampled_from(["magnitude", "frequency"])
#: Columns of the tables, and the levels of their dimensions.
DESIGNS = {
    "one table, nested": [(["coarse", "fine", "region"], [["coarse", "fine"], ["region"]])],
    "linked tables": [
        (["coarse", "fine"], [["coarse", "fine"]]),
        (["coarse", "region"], [["coarse"], ["region"]]),
    ],
}  # fmt: skip


def written(folder, records, breaks, kind, design, *, suppressed=False):
    """Write the tables of some records, with errors in places; return their layout."""
    records = [each | {"coarse": each["fine"][0]} for each in records]
    tables = []
    for number, (columns, levels) in enumerate(DESIGNS[design]):
        nested = [
            each
            for each in oracle.cube(records, columns, "v", TOTAL)
            if "fine" not in columns or each["coarse"] != TOTAL or each["fine"] == TOTAL
        ]
        for how, place in breaks if number == 0 else ():
            cell = nested[place % len(nested)]
            if how == "change":
                cell["v"] = 1 + (cell["v"] or 0)
            elif how == "empty":
                cell["v"] = None
            elif how == "repeat":
                nested.append(dict(cell))
            elif len(nested) > 1:
                nested.remove(cell)
        schema = [*((name, pa.string()) for name in columns), ("v", pa.int64())]
        if suppressed:
            schema.append(("status", pa.string()))
            for cell in nested:
                cell["status"] = "published" if cell["v"] is not None else "suppressed"
        (folder / "table").mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist(nested, pa.schema(schema)), folder / f"table/{number}.parquet")
        dimensions = [{"levels": each, "parents": None} for each in levels]
        tables.append({"file": f"table/{number}.parquet", "columns": columns, "dimensions": dimensions})
    value = {"name": "v", "type": "int64"}
    return {"kind": kind, "total": TOTAL, "value": value, "tables": tables, "suppressed": suppressed}


def counted(guarantee, folder, layout, original=None):
    with table_files(folder, layout, original) as files:
        return guarantee.count(files)


@pytest.mark.parametrize("design", DESIGNS)
@given(records=RECORDS, breaks=BREAKS, kind=KINDS)
def test_counts_on_tables_equal_plain_python(tmp_path_factory, design, records, breaks, kind):
    folder = tmp_path_factory.mktemp("table")
    layout = written(folder, records, breaks, kind, design)
    tables = oracle.Tables(folder, layout)
    lines, values = list(tables.lines()), tables.values
    open_lines, repeated = sum(not oracle.additive(*line) for line in lines), tables.repeated()
    far = sum(not oracle.within_noise(*line, 2) for line in lines)
    empty = sum(value is None for value in values)
    off = sum(value is None or value % 3 != 0 for value in values)
    small = sum(value is None or 0 < value < 4 for value in values)
    for guarantee, broken, forbidden in (
        (AdditiveTable(), open_lines, empty),
        (RoundedTable(3), open_lines, off),
        (BoundedNoise(2, 1.0, 4), far, small),
    ):
        count = counted(guarantee, folder, layout)
        assert count.metrics[MetricKey("lines_open")] == broken + repeated, guarantee.name
        assert count.metrics[MetricKey("values_not_allowed")] == forbidden, guarantee.name
        assert count.facts == {"cells": len(values), "lines": len(lines)}
        kept = broken + repeated + forbidden == 0
        assert kept is not bool(unmet(guarantee.requirements(), count))


@pytest.mark.parametrize("design", DESIGNS)
@given(records=RECORDS, breaks=BREAKS)
def test_counts_on_suppressed_tables_equal_plain_python(tmp_path_factory, design, records, breaks):
    folder = tmp_path_factory.mktemp("table")
    layout = written(folder, records, breaks, "magnitude", design, suppressed=True)
    tables = oracle.Tables(folder, layout)
    lines = list(tables.lines())
    count = counted(SuppressedTable(), folder, layout)
    open_lines = sum(not oracle.adds_up_if_shown(*line) for line in lines)
    assert count.metrics[MetricKey("lines_open")] == open_lines + tables.repeated()
    assert count.metrics[MetricKey("cells_by_subtraction")] == tables.follow()
    assert count.metrics[MetricKey("status_wrong")] == 0


def test_suppressed_cell_with_a_number_violates_the_guarantee(tmp_path):
    records = [
        {"coarse": "", "fine": fine, "region": region, "v": 5} for fine in ("a1", "a2") for region in "ns"
    ]
    layout = written(tmp_path, records, [("empty", 0)], "magnitude", "one table, nested", suppressed=True)
    path = tmp_path / "table/0.parquet"
    cells = pq.read_table(path)
    assert wrong_columns(tmp_path, layout) == 0
    assert wrong_columns(tmp_path, layout | {"suppressed": False}) == 1
    number = cells.set_column(cells.column_names.index("v"), "v", cells["v"].fill_null(7))
    pq.write_table(number, path)
    count = counted(SuppressedTable(), tmp_path, layout)
    assert count.metrics[MetricKey("status_wrong")] == 1
    assert unmet(SuppressedTable().requirements(), count)


def beside(tmp_path, shown, **changes):
    """Count an additive table of three cells (Total = a + b) against its original of 30 = 10 + 20."""
    codes = pd.DataFrame({"coarse": [TOTAL, "a", "b"]})
    cells = [
        {"coarse": code, "v": v} for code, v in zip(codes["coarse"], shown, strict=True) if v != "absent"
    ]
    (tmp_path / "table").mkdir(exist_ok=True)
    for cell in cells:
        cell["status"] = "suppressed" if cell["v"] is None else "published"
    schema = pa.schema([("coarse", pa.string()), ("v", pa.int64()), ("status", pa.string())])
    pq.write_table(pa.Table.from_pylist(cells, schema), tmp_path / "table/0.parquet")
    layout = {
        "kind": "magnitude", "total": TOTAL, "value": {"name": "v", "type": "int64"},
        "tables": [{"file": "table/0.parquet", "columns": ["coarse"],
                    "dimensions": [{"levels": ["coarse"], "parents": None}]}],
    }  # fmt: skip
    arrays = {
        "units": np.array([30.0, 10, 20]), "lower": np.array([0.0, 3, 0]), "upper": np.array([0.0, 3, 0]),
        "sensitive": np.array([False, True, False]), "fall": np.full(3, 8.0), "rise": np.full(3, 8.0),
    } | changes  # fmt: skip
    guarantee = arrays.pop("guarantee", AdditiveTable())
    metrics = counted(guarantee, tmp_path, layout, OriginalCells(codes, **arrays)).metrics
    return tuple(
        int(metrics[MetricKey(name)]) for name in ("lines_open", "cells_unprotected", "cells_astray")
    )


@pytest.mark.parametrize(
    ("shown", "changes", "found"),
    [
        ((30, 14, 16), {}, (0, 0, 0)),
        ((30, 10, 20), {}, (0, 1, 0)),
        ((30, 12, 18), {}, (0, 1, 0)),
        ((30, 19, 11), {}, (0, 0, 2)),
        ((31, 14, 16), {}, (1, 0, 0)),
        ((30, 14, "absent"), {}, (1, 0, 1)),
        ((30, 14, "absent"), {"zeros_absent": True}, (1, 0, 1)),
        ((30, 14, None), {}, (1, 0, 1)),
        ((30, 14, 16), {"base": 2}, (0, 0, 0)),
        ((30, 13, 17), {"base": 2}, (0, 0, 2)),
        ((30, 14, 16), {"lower": np.zeros(3), "upper": np.zeros(3)}, (0, 1, 0)),
        ((33, 14, 18), {"guarantee": BoundedNoise(4, 1.0, 3)}, (0, 0, 0)),
        ((30, 2, 20), {"guarantee": BoundedNoise(9, 1.0, 3)}, (0, 1, 0)),
        ((30, 15, 20), {"guarantee": BoundedNoise(4, 1.0, 3)}, (0, 0, 1)),
        ((30, 14, 16), {"guarantee": SmallCounts(3)}, (0, 0, 0)),
        ((30, 2, 28), {"guarantee": SmallCounts(3)}, (0, 1, 0)),
        ((30, None, 20), {"guarantee": SuppressedTable()}, (0, 0, 0)),
        ((30, 10, 20), {"guarantee": SuppressedTable()}, (0, 1, 0)),
        ((30, None, 21), {"guarantee": SuppressedTable()}, (0, 0, 1)),
    ],
)
def test_changes_are_counted_by_comparing_cells_with_original_values(tmp_path, shown, changes, found):
    assert beside(tmp_path, shown, **changes) == found


@pytest.mark.parametrize("named", ["coarse=a", "region=Total", "fine=a1"])
def test_folders_named_like_columns_do_not_change_the_counts(tmp_path, named):
    records = [
        {"coarse": "", "fine": fine, "region": region, "v": 5} for fine in ("a1", "a2") for region in "ns"
    ]
    counts = []
    for folder in (tmp_path / "plain", tmp_path / named):
        folder.mkdir()
        layout = written(folder, records, [("change", 0)], "magnitude", "one table, nested", suppressed=True)
        counts.append(counted(SuppressedTable(), folder, layout))
    assert counts[0] == counts[1]
    assert counts[0].metrics[MetricKey("lines_open")] > 0


@pytest.mark.parametrize("name", ["code", "parent"])
def test_dimension_with_parents_may_have_the_name_of_a_column_of_the_count(tmp_path, name):
    rows = [{name: code, "amount": amount} for code, amount in (("1", 1), ("2", 2), ("A", 3), ("Total", 4))]
    (tmp_path / "table").mkdir()
    schema = pa.schema([(name, pa.string()), ("amount", pa.int64())])
    pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / "table/0.parquet")
    dimension = {"levels": [name], "parents": {"1": "A", "2": "A"}}
    tables = [{"file": "table/0.parquet", "columns": [name], "dimensions": [dimension]}]
    layout = {
        "kind": "magnitude",
        "total": TOTAL,
        "value": {"name": "amount", "type": "int64"},
        "tables": tables,
    }
    assert counted(AdditiveTable(), tmp_path, layout).metrics[MetricKey("lines_open")] == 1


@pytest.mark.parametrize(
    ("guarantee", "true", "stated"),
    [(SmallCounts(5), 1, 6), (RoundedTable(3), 4, 3), (BoundedNoise(0, 1.0, 3), 2, 7)],
)
def test_values_are_counted_independently_of_the_statistics_of_a_file(tmp_path, guarantee, true, stated):
    rows = [{"coarse": code, "v": v} for code, v in (("a", true), ("b", 12), (TOTAL, true + 12))]
    (tmp_path / "table").mkdir()
    path = tmp_path / "table/0.parquet"
    schema = pa.schema([("coarse", pa.string()), ("v", pa.int64())])
    pq.write_table(pa.Table.from_pylist(rows, schema), path, use_dictionary=False)
    layout = {
        "kind": "magnitude", "total": TOTAL, "value": {"name": "v", "type": "int64"},
        "tables": [{"file": "table/0.parquet", "columns": ["coarse"],
                    "dimensions": [{"levels": ["coarse"], "parents": None}]}],
    }  # fmt: skip
    honest = counted(guarantee, tmp_path, layout)
    assert unmet(guarantee.requirements(), honest)
    forge_statistics(path, {true: stated, true + 12: stated})
    assert pq.ParquetFile(path).metadata.row_group(0).column(1).statistics.max == stated
    assert pq.read_table(path)["v"].to_pylist() == [true, 12, true + 12]
    assert counted(guarantee, tmp_path, layout) == honest


def forge_statistics(path, changes):
    """Replace whole numbers in the footer of a Parquet file, which contains its statistics."""
    content = path.read_bytes()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer = content[start:-8]
    for number, other in changes.items():
        assert number.to_bytes(8, "little") in footer
        footer = footer.replace(number.to_bytes(8, "little"), other.to_bytes(8, "little"))
    path.write_bytes(content[:start] + footer + content[-8:])
