"""Tests of periods: records are compared with tables of their period, or of all periods without one."""

from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.audit.differencing.cells import PublishedTable
from microguard.pipelines.audit.differencing.published import PublishedRecords
from microguard.pipelines.series.source import _PublicReleases, _staged_records

MANIFEST = {
    "method": {"representative": "mean"},
    "columns": [{"name": "income", "protected": True, "kind": "numeric"}],
    "guarantee": {"groups": [{"with_region": ["region"]}]},
}
RECORDS = pd.DataFrame({"region": ["n"] * 4 + ["s"] * 4, "income": [10.0] * 4 + [20.0] * 4})
MOVED = pd.DataFrame({"region": ["n", "s", "T"], "__value": [45.0, 75.0, 120.0]})


@pytest.mark.parametrize(
    ("table", "records", "cells"),
    [("2026", "2026", 2), ("2026", "", 2), ("", "2026", 2), ("", "", 2), ("2025", "2026", 0)],
)
def test_release_without_a_period_is_compared_with_tables_of_every_period(table, records, cells):
    seen = _PublicReleases(None, False, True, None)
    seen.tables[table] = [PublishedTable("t", "income", MOVED, "T")]
    seen.records[records] = [PublishedRecords("r", MANIFEST, RECORDS, {"income": 1.0})]
    assert seen.disclosed_cells() == cells


def test_staged_records_are_compared_with_tables_by_their_map_of_members(tmp_path):
    (tmp_path / "microdata").mkdir()
    pq.write_table(pa.Table.from_pandas(RECORDS), tmp_path / "microdata" / "part-0.parquet")
    contract = SimpleNamespace(names=["region", "income"], partition_by=None)
    staged = SimpleNamespace(folder=tmp_path, contract=contract, files=SimpleNamespace(release_id="s"))
    members = SimpleNamespace(about={"region": "region", "means": ["income"]})
    seen = _PublicReleases(None, False, True, None)
    seen.tables["2026"] = [PublishedTable("t", "income", MOVED, "T")]
    seen.records[""] = [_staged_records(staged, members)]
    assert seen.disclosed_cells() == 2
