"""Tests of cells and their margins without Spark: constraints and refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.guarantees.additive_table import AdditiveTable
from microguard.pipelines.guarantees.original_cells import OriginalCells
from microguard.pipelines.guarantees.table_files import wrong_columns
from microguard.pipelines.tables.cells.cells import tabulated
from microguard.pipelines.tables.cells.microdata import grouping_sets
from microguard.pipelines.tables.files import FOLDER, decimals, published
from microguard.pipelines.tables.manifest import layout_of
from microguard.pipelines.tables.read_back import verify_written_table
from microguard.schemas.errors import InputRejected
from microguard.schemas.requirements.requirement import MetricKey
from microguard.schemas.specification.table import Table
from microguard.sdc.errors import InvalidParameter

NESTED = Table(value="v", tables=[["fine", "side"]], hierarchies=[["coarse", "fine"]], decimals=1)
ROWS = [
    ("Total", "Total", "Total", 100), ("Total", "Total", "l", 60), ("Total", "Total", "r", 40),
    ("X", "Total", "Total", 70), ("X", "Total", "l", 50), ("X", "Total", "r", 20),
    ("Y", "Total", "Total", 30), ("Y", "Total", "l", 10), ("Y", "Total", "r", 20),
    ("X", "x1", "Total", 45), ("X", "x1", "l", 30), ("X", "x1", "r", 15),
    ("X", "x2", "Total", 25), ("X", "x2", "l", 20), ("X", "x2", "r", 5),
    ("Y", "y1", "Total", 30), ("Y", "y1", "l", 10), ("Y", "y1", "r", 20),
]  # fmt: skip


def frame(rows=ROWS) -> pd.DataFrame:
    return pd.DataFrame([row[:3] for row in rows], columns=["coarse", "fine", "side"])


def cells(rows=ROWS, table: Table = NESTED):
    return tabulated(frame(rows), table, units=np.array([row[3] for row in rows], float))


def test_constraints_equate_every_total_with_its_parts_in_every_dimension_and_level():
    table = cells()
    assert len(table) == 18
    # side: one constraint per activity (6). activity: Total, X and Y, for l, r and their total (9).
    assert table.tabulation.relations.shape == (15, 18)
    assert not (table.tabulation.relations @ table.units).any()


def test_cells_are_ordered_by_their_codes_for_any_order_of_the_file():
    shuffled = [ROWS[i] for i in np.random.default_rng(0).permutation(len(ROWS))]
    one, other = cells(), cells(shuffled)
    assert one.codes.equals(other.codes)
    assert (one.units == other.units).all()


def test_shared_cells_of_linked_tables_occur_once():
    linked = Table(value="v", tables=[["fine", "side"], ["coarse", "sex"]], hierarchies=[["coarse", "fine"]])
    sets = grouping_sets(linked)
    assert len(sets) == len(set(sets)) == 3 * 2 + 2 * 2 - 2


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([*ROWS, ROWS[4]], InvalidParameter, "entry 18"),
        (ROWS[1:], InputRejected, "no margin above"),
        ([*ROWS, ("Y", "x1", "l", 1)], InputRejected, "is not nested"),
        ([*ROWS, ("Total", "x1", "l", 1)], InputRejected, "but a total in"),
    ],
    ids=["a repeated cell", "a missing margin", "two parents", "a code below a total"],
)
def test_cells_that_form_no_table_are_refused(rows, error, message):
    with pytest.raises(error, match=message) as caught:
        cells(rows)
    assert "x1" not in str(caught.value)


def test_parent_without_a_cell_is_refused():
    table = Table(source="cells", value="v", tables=[["code"]], parents={"code": {"a": "A", "b": "A"}})
    codes = pd.DataFrame({"code": ["Total", "a", "b"]})
    with pytest.raises(InputRejected, match=r"1 parent\(s\)"):
        tabulated(codes, table, units=np.array([3.0, 1.0, 2.0]))


def staged(tmp_path, table, units):
    contents = published(table.codes, units, NESTED)
    (tmp_path / FOLDER).mkdir()
    for name, content in contents.items():
        pq.write_table(content, tmp_path / FOLDER / name)
    return contents


def test_file_that_differs_from_the_staged_file_is_detected(tmp_path):
    table = cells()
    contents = staged(tmp_path, table, table.units)
    none, far = np.zeros(len(table)), np.full(len(table), 10.0)
    original = OriginalCells(
        table.codes, table.units, none, none, none.astype(bool), far, far, digits=NESTED.digits
    )
    layout = layout_of(NESTED, contents)

    def verified():
        return verify_written_table(tmp_path, contents, NESTED, layout, AdditiveTable(), original)

    whole = verified()
    assert (whole.records, whole.as_staged, whole.as_declared) == (18, True, True)
    assert not any(whole.count.metrics.values())
    (path,) = (tmp_path / FOLDER).iterdir()
    pq.write_table(pq.read_table(path).slice(0, 17), path)
    cut = verified()
    assert not cut.as_staged
    assert cut.count.metrics[MetricKey("cells_astray")] == 1


def test_published_values_are_exact_decimals_of_the_specified_digits():
    (content,) = published(cells().codes, cells().units, NESTED).values()
    assert content.schema.field("v").type == pa.decimal128(18, 1)
    assert max(content["v"].to_pylist()) == decimals(np.array([100.0]), 1)[0]
    assert content.schema.metadata is None


def test_audit_counts_files_with_unknown_columns(tmp_path):
    nested = cells()
    (name,) = staged(tmp_path, nested, nested.units)
    table = {"file": f"{FOLDER}/{name}", "columns": ["coarse", "fine", "side"]}
    value = {"name": "v", "type": "decimal128(18, 1)"}
    assert wrong_columns(tmp_path, {"value": value, "tables": [table]}) == 0
    assert wrong_columns(tmp_path, {"value": value | {"name": "w"}, "tables": [table]}) == 1
