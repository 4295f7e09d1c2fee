"""Tests that the audit compares files for tau-ARGUS with the tables of their release."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.audit.tau_argus import differs, is_named_after
from microguard.pipelines.tables.tau_argus import write_tau_argus
from microguard.schemas.specification.table import Table

CODES = {"region": ["n", "s", "T"], "status": ["x", "y", "T"]}


def described(tmp_path, totals=(), statuses=None):
    """Write a table with its tau-ARGUS files; return its description in the manifest."""
    table = Table(
        value="v",
        tables=(("region", "status"),),
        source="cells",
        total="T",
        totals=dict(totals),
        tau_argus=True,
    )
    values = [1, None if statuses else 2, 3]
    content = {**CODES, "v": pa.array(values, pa.int64()), **({"is_shown": statuses} if statuses else {})}
    if statuses:
        content = {"region": CODES["region"], "v": content["v"], "status": statuses}
    contents = {"a.parquet": pa.table(content)}
    (tmp_path / "table").mkdir()
    pq.write_table(contents["a.parquet"], tmp_path / "table/a.parquet")
    write_tau_argus(tmp_path, contents, table)
    return {"file": "table/a.parquet", "columns": ["region"] if statuses else ["region", "status"]}


@pytest.mark.parametrize("totals", [{}, {"region": "all"}])
@pytest.mark.parametrize("statuses", [None, ["published", "suppressed", "published"]])
def test_audit_accepts_tau_argus_files_equal_to_their_table_and_refuses_any_changed_cell(
    tmp_path, totals, statuses
):
    table = described(tmp_path, totals, statuses)
    path = tmp_path / "tau-argus/a.tab"
    whole = path.read_text()
    assert not differs(tmp_path, table, "T")
    forged = [whole.replace("1", "7", 1), whole + whole, whole.replace("n;", "s;"), whole.split("\n", 1)[1]]
    forged += [whole.replace(";;U", ";2;S")] if statuses else []
    forged += [whole.replace("all", "n")] if totals else []
    for text in forged:
        path.write_text(text)
        assert differs(tmp_path, table, "T"), text
    path.unlink()
    assert differs(tmp_path, table, "T")


def test_audit_refuses_changed_codes_of_a_hierarchy_and_changed_texts_of_a_description(tmp_path):
    table = Table(
        value="v",
        tables=(("region",),),
        source="cells",
        total="T",
        parents={"region": {"a": "n", "b": "n"}},
        tau_argus=True,
    )
    content = pa.table({"region": ["a", "b", "n", "s", "T"], "v": pa.array([1, 2, 3, 4, 7], pa.int64())})
    (tmp_path / "table").mkdir()
    pq.write_table(content, tmp_path / "table/a.parquet")
    write_tau_argus(tmp_path, {"a.parquet": content}, table)
    stated = {"file": "table/a.parquet", "columns": ["region"]}
    assert not differs(tmp_path, stated, "T")
    for name, forged in (("a-1.hrc", "Smith 7700\n"), ("a.rda", '"Smith 7700"\n'), ("a.rda", "7700\n")):
        path = tmp_path / "tau-argus" / name
        whole = path.read_text()
        path.write_text(whole + forged)
        assert differs(tmp_path, stated, "T"), name
        path.write_text(whole)
    assert not differs(tmp_path, stated, "T")


def test_only_files_named_after_a_table_belong_to_the_table():
    stems = ["001_a.b"]
    for name in ("001_a.b.tab", "001_a.b.rda", "001_a.b-1.hrc"):
        assert is_named_after(f"tau-argus/{name}", stems)
    for name in (
        "tau-argus/001_axb.tab",
        "tau-argus/other.tab",
        "table/001_a.b.tab",
        "tau-argus/001_a.b.txt",
    ):
        assert not is_named_after(name, stems)
