"""Statistics in the footers of Parquet files, which readers see, are those of the values."""

import datetime
import json
import struct
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.audit import delta, iceberg
from microguard.pipelines.audit.footers import stale_dictionaries, wrong_footers
from microguard.pipelines.audit.release import audit
from microguard.pipelines.publication import publish
from microguard.pipelines.publication.stage import StagedFiles

from tests.pipelines.releases import CELLS, ID, RECORDS, entry, manifest, staged

DAY = datetime.datetime(1900, 1, 1)
NUMBERS = {"size": pa.array([1.5, 2.5, None, 77.25]), "name": ["aa", "bb", "cc", "zz"]}


def forge(path, value, other, number=None):
    """Replace the bytes of a value in the footer of a file, everywhere or `number` times."""
    content = path.read_bytes()
    (length,) = struct.unpack("<I", content[-8:-4])
    pages, footer = content[: -length - 8], content[-length - 8 :]
    assert value in footer
    assert len(value) == len(other)
    path.write_bytes(pages + footer.replace(value, other, *([] if number is None else [number])))


def double(number):
    return struct.pack("<d", number)


@pytest.mark.parametrize(
    ("value", "other", "number"),
    [
        (double(77.25), double(88.5), None),
        (double(1.5), double(0.5), None),
        (double(77.25), double(88.5), 1),  # only the field of the earlier format
        (b"zz", b"~y", None),
        (double(1.5), double(float("nan")), None),
    ],
)
def test_another_end_in_a_footer_than_that_of_the_values_is_wrong(tmp_path, value, other, number):
    pq.write_table(pa.table(NUMBERS), tmp_path / "0.parquet")
    assert wrong_footers([tmp_path / "0.parquet"]) == 0
    forge(tmp_path / "0.parquet", value, other, number)
    assert wrong_footers([tmp_path / "0.parquet"]) == 1


def test_ends_of_pages_and_bloom_filters_are_wrong_where_arrow_writes_none(tmp_path):
    records = pa.table(NUMBERS)
    pq.write_table(records, tmp_path / "pages.parquet", write_page_index=True)
    assert wrong_footers([tmp_path / "pages.parquet"]) == 2
    path = str(tmp_path / "bloom.parquet")
    duckdb.sql(f"COPY (SELECT range % 9 AS a FROM range(9999)) TO '{path}' (FORMAT parquet)")
    assert wrong_footers([tmp_path / "bloom.parquet"]) > 0


def test_a_text_in_the_dictionary_of_a_column_that_no_record_has_is_stale(areas):
    codes = pa.DictionaryArray.from_arrays(
        pa.array([0, 0, 0, 1, 1, 1], pa.int8()), pa.array(["f", "m", "secret"])
    )
    files = staged(areas)
    path = files.folder / "microdata" / "part-00000.parquet"
    pq.write_table(RECORDS.set_column(0, "sex", codes), path, store_schema=False)
    assert str(pq.read_schema(path).field("sex").type) == "string"
    publish.publish(StagedFiles.from_folder(ID, files.folder), manifest(), areas, entry())
    failed = [each.check for each in audit(areas.public.release(ID)).findings if not each.passed]
    assert failed == ["dictionaries"]


def test_statistics_of_any_type_and_several_row_groups_are_right(tmp_path):
    n = 60
    place = np.arange(n)
    columns = {
        "short": pa.array(place - 9, pa.int8()),
        "unsigned": pa.array([2**63 + int(i) for i in place], pa.uint64()),
        "number": pa.array([float("nan") if i % 7 == 0 else -0.0 for i in place]),
        "none": pa.array([float("nan")] * n),
        "absent": pa.nulls(n, pa.int32()),
        "single": pa.array(np.linspace(0, 1, n), pa.float32()),
        "exact": pa.array([Decimal(int(i)).scaleb(-2) - 3 for i in place], pa.decimal128(38, 2)),
        "day": pa.array([DAY.date() + datetime.timedelta(days=int(i)) for i in place]),
        "moment": pa.array([DAY + datetime.timedelta(days=int(i)) for i in place], pa.timestamp("us")),
        "instant": pa.array(
            [DAY + datetime.timedelta(days=int(i)) for i in place], pa.timestamp("ms", "UTC")
        ),
        "fine": pa.array(place * 10**15, pa.timestamp("ns")),
        "flag": pa.array(place % 2 == 0),
        "bytes": pa.array([bytes([i]) for i in range(n)]),
        "long": pa.array([f"{i}" + "x" * 5000 for i in place]),
        "time": pa.array(place.tolist(), pa.duration("us")),
        "coded": pa.array([f"é{i % 3}" if i % 5 else None for i in place]).dictionary_encode(),
        "rare": pa.array(["seldom" if i == 20 else "often" for i in place]).dictionary_encode(),
    }
    path = tmp_path / "0.parquet"
    with pq.ParquetWriter(path, pa.table(columns).schema) as writer:
        writer.write_table(pa.table(columns), row_group_size=17)
    assert wrong_footers([path]) == 0
    assert stale_dictionaries(path) == 0


def test_audit_fails_for_an_end_in_a_footer_that_is_not_that_of_the_values(areas):
    records = RECORDS.append_column("wage", pa.array([10.5, 20.5, 30.5, 40.5, 50.5, 60.5]))
    files = staged(areas, records=records)
    forge(files.folder / "microdata" / "part-00000.parquet", double(60.5), double(61.5))
    columns = [*manifest()["columns"], {"name": "wage", "type": "double"}]
    files = StagedFiles.from_folder(ID, files.folder)
    publish.publish(files, manifest(columns=columns), areas, entry())
    failed = [each.check for each in audit(areas.public.release(ID)).findings if not each.passed]
    assert failed == ["footers"]


def test_audit_fails_for_an_end_in_the_footer_of_a_table(areas):
    files = staged(areas)
    path = files.folder / "tables" / "001_sex.parquet"
    pq.write_table(CELLS, path)
    forge(path, struct.pack("<q", 3), struct.pack("<q", 1))
    publish.publish(StagedFiles.from_folder(ID, files.folder), manifest(), areas, entry())
    failed = [each.check for each in audit(areas.public.release(ID)).findings if not each.passed]
    assert failed == ["footers"]


def test_audit_finds_ends_in_the_log_of_a_delta_table(areas):
    content = manifest(format="delta")
    publish.publish(staged(areas), content, areas, entry())
    assert delta.faults(areas.public.folder, content) == []
    (log,) = (areas.public.folder / "delta" / "_delta_log").glob("*.json")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for statistics, wrong in (
        ({"numRecords": 6, "minValues": {"hours": 1, "sex": "f"}, "nullCount": {"hours": 1}}, 0),
        ({"numRecords": 6, "maxValues": {"hours": 88}}, 1),
        ({"numRecords": 7}, 1),
    ):
        for line in lines:
            if "add" in line:
                line["add"]["stats"] = json.dumps(statistics)
        log.write_text("\n".join(map(json.dumps, lines)))
        assert len(delta.faults(areas.public.folder, content)) == wrong


def test_audit_finds_ends_in_a_manifest_of_an_iceberg_table(areas, monkeypatch):
    content = manifest(format="iceberg")
    publish.publish(staged(areas), content, areas, entry())
    assert iceberg.faults(areas.public.folder, content) == []
    stated = iceberg.parquet_file_to_data_file

    def otherwise(*given):
        file = stated(*given)
        file.upper_bounds[1] = b"z"
        return file

    monkeypatch.setattr(iceberg, "parquet_file_to_data_file", otherwise)
    assert len(iceberg.faults(areas.public.folder, content)) == 1
