"""The audit accepts correct releases with values at the ends of their types, odd texts and odd names."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.audit.csv_file import wrong_records
from microguard.pipelines.audit.release import audit
from microguard.pipelines.description.describe import describe
from microguard.pipelines.intake.contract import Contract
from microguard.pipelines.publication import publish
from microguard.pipelines.publication.formats.table_format import table_format
from microguard.pipelines.publication.record_files import csv_file
from microguard.pipelines.publication.record_files.batches import record_batches
from microguard.pipelines.publication.stage import StagedFiles, record_files

from tests.pipelines.releases import ID, entry

N = 12
INSTANT, NEVER = datetime.datetime(2020, 3, 8, 7, tzinfo=datetime.UTC), 2**63 - 1
LARGEST = float(np.finfo(float).max)
COLUMNS = {
    "double": pa.array([LARGEST, -LARGEST, 5e-324, np.inf, np.nan, -0.0, 1e16, 0.1, 8.98e307, None] * 2)[:N],
    "least": pa.array([5e-324, -0.0, -np.inf, np.nan] * 3),
    "single": pa.array([3.4e38, 1e-45, np.inf, np.nan, 0.1, 16777217.0] * 2, pa.float32()),
    "long": pa.array([NEVER, -NEVER - 1, 2**53 + 1, None] * 3),
    "unsigned": pa.array([2**64 - 1, 0, 2**63] * 4, pa.uint64()),
    "share": pa.array([Decimal("0.99999"), Decimal("-0.00001"), None] * 4, pa.decimal128(5, 5)),
    "small": pa.array([Decimal("0.00000001"), Decimal(0)] * 6, pa.decimal128(8, 8)),
    "finest": pa.array([*map(Decimal, ("-1E-38", f"0.{'9' * 38}", "0")), None] * 3, pa.decimal128(38, 38)),
    "exact": pa.array([Decimal(10**38 - 1), Decimal(-1)] * 6, pa.decimal128(38, 0)),
    "day": pa.array([datetime.date.min, datetime.date.max, None] * 4),
    "moment": pa.array([datetime.datetime.min, datetime.datetime.max] * 6, pa.timestamp("us")),
    "instant": pa.array([INSTANT] * N, pa.timestamp("ms", "America/New_York")),
    "until": pa.array([NEVER, 1, -1] * 4, pa.int64()).cast(pa.timestamp("ns")),
    "absent": pa.nulls(N, pa.bool_()),
    "odd": ["", " ", "\ufeffa", "a\u0301", "\u00e1", "{records}", "<b>", "a\r\nb", '"', "\0", "\x1b", None],
    "notes": ["x" * 20_000, "y" * 20_000, ""] * 4,
    "coded": pa.array(["q", "", "\n", None] * 3).dictionary_encode(),
    "line\nfeed": ["007", "NULL", "nan", "true"] * 3,
    "ODD": ["a"] * N,
    'a,"b': ["2020-01-01"] * N,
}  # fmt: skip
TABLE = pa.table({"sex": ["f", "m"] * 6, "place": ["ü/x"] * 6 + ["50% = ½"] * 6, **COLUMNS})
#: Days and moments of years that Python does not have, and of which Arrow reads no text.
FAR = {
    "later": pa.array([3_000_000, -3_000_000, None] * 4, pa.int32()).cast(pa.date32()),
    "zero": pa.array([-719_528, -719_529, 2_932_897] * 4, pa.int32()).cast(pa.date32()),
    "latest": pa.array([2**31 - 1, -(2**31) + 1, -(2**31), 10**8] * 3, pa.int32()).cast(pa.date32()),
    "far": pa.array([2**60, -(2**60)] * 6, pa.int64()).cast(pa.timestamp("us")),
    "ends": pa.array([NEVER, -NEVER, 0] * 4, pa.int64()).cast(pa.timestamp("us")),
    "instants": pa.array([NEVER, -NEVER, 0] * 4, pa.int64()).cast(pa.timestamp("us", "UTC")),
    "in UTC": pa.array([NEVER, -NEVER, 1] * 4, pa.int64()).cast(pa.timestamp("ns", "UTC")),
    "nanoseconds": pa.array([NEVER, -NEVER, 1] * 4, pa.int64()).cast(pa.timestamp("ns")),
    "beyond": pa.array([2**53, None] * 6, pa.int64()).cast(pa.timestamp("ms", "UTC")),
}


def published(areas, form, csv, partition, all_columns=TABLE):
    """Publish the records that a format carries, and return the folder of the release."""
    lacking = set(table_format(form).not_carried(all_columns.schema))
    without = csv_file.not_carried(all_columns.schema) if csv else ()
    plain = [name for name in all_columns.column_names if name not in without]
    table = all_columns.select([name for name in plain if name not in lacking])
    folder = areas.work(ID, "staging")
    contract = Contract(table.schema, partition_by="place" if partition else None, csv=csv)
    places = ("ü%2Fx", "50%25%20%3D%20½") if partition else ("", "")
    for number, place in enumerate(places):
        path = folder / "microdata" / (f"place={place}" if partition else "") / f"part-{number:05d}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table.select(contract.file_schema.names).slice(number * 6, 6), path)
    if csv:
        parts = [partial(record_batches, record_files(folder), contract)]
        csv_file.write_csv(folder / csv_file.CSV, parts, contract.plain)
    (folder / "tables").mkdir()
    cells = pa.table({"sex": ["f", "m"], "frequency": pa.array([6, 6], pa.int64())})
    pq.write_table(cells, folder / "tables" / "001_sex.parquet")
    group = {"name": "all", "variables": ["sex"], "with_region": [], "smallest_class": 6, "classes": 2}
    manifest = {
        "release_id": ID,
        "name": "ends",
        "software": {"name": "microguard", "version": "1"},
        "guarantee": {"k": 3, "unit": "record", "jointly": True, "groups": [group | {"median_class": 6.0}]},
        "limits": ["Not everything."],
        "method": {"name": "microaggregation"},
        "recodes": [],
        "records": N,
        "columns": [
            {"name": e.name, "type": str(e.type), "role": "other", "kind": None, "protected": e.name == "sex"}
            for e in table.schema
        ],
        "tables": [{"file": "tables/001_sex.parquet", "variables": ["sex"]}],
        "disclosed": {},
        **({} if form == "parquet" else {"format": form}),
        **({"partitioned_by": "place"} if partition else {}),
        **({"csv": {"file": csv_file.CSV, "reading": csv_file.READING}} if csv else {}),
    }
    if partition:
        manifest["guarantee"]["groups"][0] |= {"with_region": ["place"], "smallest_class": 3, "classes": 4}
        manifest["guarantee"]["groups"][0] |= {"median_class": 3.0}
    describe(folder, manifest, StagedFiles.from_folder(ID, folder).checksums)
    publish.publish(StagedFiles.from_folder(ID, folder), manifest, areas, entry())
    return areas.public.release(ID)


@pytest.mark.parametrize(
    ("form", "csv", "partition"),
    [
        ("parquet", False, False),
        ("parquet", True, False),
        ("parquet", True, True),
        ("delta", True, False),
        ("iceberg", True, False),
    ],
)
def test_audit_accepts_a_correct_release_of_values_at_the_ends_of_their_types(areas, form, csv, partition):
    folder = published(areas, form, csv, partition)
    assert audit(folder).failures() == []
    json.loads((folder / "datapackage.json").read_text(), parse_constant=pytest.fail)


@pytest.mark.parametrize("csv", [False, True])
@pytest.mark.parametrize("form", ["parquet", "delta", "iceberg"])
def test_audit_accepts_a_correct_release_of_days_and_moments_of_any_year(areas, form, csv):
    table = pa.table({"sex": TABLE["sex"], "place": TABLE["place"], **FAR})
    folder = published(areas, form, csv, False, table)
    lacking = set(table_format(form).not_carried(table.schema))
    assert lacking <= {"nanoseconds", "in UTC"}
    assert set(FAR) - lacking <= set(pq.read_schema(next(folder.rglob("part-00000.parquet"))).names)
    assert audit(folder).failures() == []


@pytest.mark.parametrize("form", ["parquet", "delta", "iceberg"])
def test_audit_accepts_a_correct_release_of_the_first_moment_and_day_that_a_file_can_have(areas, form):
    first = pa.array([-NEVER - 1, 0, None] * 4, pa.int64()).cast(pa.timestamp("us"))
    day = pa.array([-(2**31), 0, None] * 4, pa.int32()).cast(pa.date32())
    table = pa.table({"sex": TABLE["sex"], "place": TABLE["place"], "first": first, "day": day})
    assert audit(published(areas, form, False, False, table)).failures() == []


def test_audit_finds_other_days_moments_and_decimals_in_a_csv_file(areas):
    table = pa.table({"sex": TABLE["sex"], "place": TABLE["place"], "finest": COLUMNS["finest"], **FAR})
    folder = published(areas, "parquet", True, False, table)
    content = json.loads((folder / "manifest.json").read_text())
    written = (folder / csv_file.CSV).read_bytes()
    for text, other in [
        ("-1E-38", "-2E-38"),
        ("-1E-38", "-1E-37"),
        ("-1E-38", "1E-38"),
        ("10183-09-21", "10183-09-22"),
        ("10183-09-21", "10183-09-21 "),
        ("-6244-04-12", "6244-04-12"),
        ("5881580-07-11", "5881580-07-12"),
        ("-5877641-06-23", "-5877641-06-24"),
        ("2262-04-11T23:47:16.854775807Z", "2262-04-11T23:47:16.854775806Z"),
        ("294247-01-10T04:00:54.775807Z", "294247-01-10T04:00:54.775806Z"),
        ("-290308-12-21T19:59:05.224193", "294247-01-10T04:00:54.775807"),
        ("38504-08-17T21:30:06.846976", "38504-08-17T21:30:06.8469761"),
    ]:
        assert text.encode() in written
        (folder / csv_file.CSV).write_bytes(written.replace(text.encode(), other.encode(), 1))
        assert wrong_records(folder, content) == 1, other


def test_the_columns_are_those_that_pandas_calls_the_ends():
    assert TABLE["until"].to_pandas()[0] == pd.Timestamp.max
