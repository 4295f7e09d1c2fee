"""Statistics in the footers of Parquet files, which readers see, are those of the values."""

import datetime
import json
import struct
from decimal import Decimal

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from microguard.pipelines.audit import delta, iceberg
from microguard.pipelines.audit.footers import is_end, stale_dictionaries, wrong_footers
from microguard.pipelines.audit.pages import pages
from microguard.pipelines.audit.release import audit
from microguard.pipelines.publication import publish
from microguard.pipelines.publication.formats import iceberg as formats
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


def test_a_bloom_filter_is_wrong(tmp_path):
    path = str(tmp_path / "bloom.parquet")
    duckdb.sql(f"COPY (SELECT range % 9 AS a FROM range(9999)) TO '{path}' (FORMAT parquet)")
    assert wrong_footers([tmp_path / "bloom.parquet"]) > 0


PAGES = pa.table(
    {
        "name": [f"{i:05}" + "x" * 80 + "é" if i % 3 else None for i in range(5000)],
        "size": pa.array([i / 8 for i in range(5000)]),
        "day": pa.array(range(3_000_000, 3_005_000), pa.int32()).cast(pa.date32()),
        "none": pa.nulls(5000, pa.int32()),
        "flag": [i > 2500 for i in range(5000)],
        "exact": pa.array(range(-2500, 2500), pa.int64()).cast(pa.decimal128(30, 0)),
    }
)


def write_pages(path, **options):
    pq.write_table(
        PAGES, path, write_page_index=True, data_page_size=2000, row_group_size=3000, use_dictionary=False,
        **options,
    )  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"store_decimal_as_integer": True}])
def test_ends_of_pages_that_are_those_of_their_values_are_right(tmp_path, options):
    path = tmp_path / "0.parquet"
    write_pages(path, **options)
    assert {len(stated) for group, place, stated in pages(path)} == {1, 2, 3}
    assert wrong_footers([path]) == 0
    polars.from_arrow(PAGES.drop_columns("day")).write_parquet(path, row_group_size=3000)
    assert [stated for *_, stated in pages(path)]
    assert wrong_footers([path]) == 0


@pytest.mark.parametrize(
    ("value", "other"),
    [
        (double(128.0), double(128.5)),
        (struct.pack("<i", 3_001_024), struct.pack("<i", 3_001_023)),
        ((-1476).to_bytes(13, "big", signed=True), (-1475).to_bytes(13, "big", signed=True)),
    ],
)
def test_another_end_of_a_page_than_that_of_its_values_is_wrong(tmp_path, value, other):
    path = tmp_path / "0.parquet"
    write_pages(path)
    content = path.read_bytes()
    start = content.rindex(value)  # indexes are behind the values
    path.write_bytes(content[:start] + other + content[start + len(other) :])
    assert pq.read_table(path).equals(PAGES)
    assert wrong_footers([path]) == 1


def test_ends_of_pages_that_cannot_be_read_are_wrong(tmp_path):
    path = tmp_path / "0.parquet"
    pq.write_table(PAGES.select(["size"]), path)
    write_pages(path)
    content = path.read_bytes()
    (length,) = struct.unpack("<I", content[-8:-4])
    path.write_bytes(content[: -length - 8 - 400] + b"\xff" * 400 + content[-length - 8 :])
    assert pq.read_table(path).equals(PAGES)
    assert wrong_footers([path]) > 0


@pytest.mark.parametrize(
    ("stated", "value", "end", "right"),
    [
        ("Z", "A", "max", False),
        ("A", "B", "min", False),
        ("a" * 32, "a" * 40, "min", True),
        ("a" * 31, "a" * 40, "min", False),
        ("a" * 31 + "b", "a" * 40, "min", False),
        ("a" * 31 + "b", "a" * 40, "max", True),
        ("a" * 32 + "\U0010ffff", "a" * 40, "max", True),
        ("a" * 32, "a" * 40, "max", False),
        (b"a" * 63 + b"b", b"a" * 70, "max", True),
        ("a" * 40, None, "max", False),
    ],
)
def test_a_shortened_text_is_an_end_if_it_bounds_the_texts(stated, value, end, right):
    assert is_end(stated, value, end) == right


def test_shortened_ends_of_texts_in_a_footer_are_right_and_others_wrong(tmp_path):
    path = tmp_path / "0.parquet"
    texts = ["a" * 100 + "ü" * 30, "b" * 5000, None]
    polars.DataFrame({"x": texts}).write_parquet(path)
    assert len(pq.read_metadata(path).row_group(0).column(0).statistics.max) < 100
    assert wrong_footers([path]) == 0
    forge(path, b"a" * 64, b"a" * 63 + b"b")
    assert wrong_footers([path]) == 1


def test_columns_without_statistics_are_not_read_and_the_others_one_by_one(tmp_path, monkeypatch):
    path, read = tmp_path / "0.parquet", []
    pq.write_table(
        pa.table(NUMBERS | {"code": ["a", "b", "c", "d"]}), path, write_statistics=["name", "code"]
    )
    read_row_group = pq.ParquetFile.read_row_group

    def watched(file, group, columns=None, **options):
        read.append(columns)
        return read_row_group(file, group, columns, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", watched)
    assert wrong_footers([path]) == 0
    assert read == [["name"], ["code"]]
    read.clear()
    assert stale_dictionaries(path) == 0
    assert read == [["name"], ["code"]]


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
    assert delta.audit(areas.public.folder, content).faults == []
    (log,) = (areas.public.folder / "delta" / "_delta_log").glob("*.json")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for statistics, wrong in (
        ({"numRecords": 6, "minValues": {"hours": 1, "sex": "f"}, "nullCount": {"hours": 1}}, 0),
        ({"numRecords": 6, "maxValues": {"hours": 88}}, 1),
        ({"numRecords": 6, "maxValues": {"sex": "n"}}, 1),
        ({"numRecords": 7}, 1),
    ):
        for line in lines:
            if "add" in line:
                line["add"]["stats"] = json.dumps(statistics)
        log.write_text("\n".join(map(json.dumps, lines)))
        assert len(delta.audit(areas.public.folder, content).faults) == wrong


def test_audit_finds_ends_in_a_manifest_of_an_iceberg_table(areas, monkeypatch):
    content = manifest(format="iceberg")
    publish.publish(staged(areas), content, areas, entry())
    assert iceberg.audit(areas.public.folder, content).faults == []
    stated = iceberg.parquet_file_to_data_file

    def otherwise(*given):
        file = stated(*given)
        file.upper_bounds[1] = b"z"
        return file

    monkeypatch.setattr(iceberg, "parquet_file_to_data_file", otherwise)
    assert len(iceberg.audit(areas.public.folder, content).faults) == 1


def test_ends_in_the_log_of_a_delta_table_are_compared_in_any_year_and_for_names_with_dots(tmp_path):
    moments = pa.array([0, 2**53], pa.int64()).cast(pa.timestamp("us", "UTC"))
    days = pa.array([0, 3_000_000], pa.int32()).cast(pa.date32())
    nested = pa.array([{"b": 1}, {"b": 2}])
    write_deltalake(tmp_path, pa.table({"a": nested, "a.b": [5, 6], "far": moments, "later": days}))
    (file,) = tmp_path.glob("*.parquet")

    def differs(**stated):
        return delta._differs(str(file), {name.replace("__", "."): each for name, each in stated.items()})

    beyond = pa.scalar(2**53 + 900, pa.int64()).cast(moments.type)
    assert not differs(max__far=moments[1], min__far=moments[0], max__later=days[1])
    assert not differs(max__far=beyond)
    assert differs(max__far=pa.scalar(2**53 + 1100, pa.int64()).cast(moments.type))
    assert differs(max__later=pa.scalar(3_000_001, pa.int32()).cast(pa.date32()))
    assert not delta._differs(str(file), {"max.a.b": pa.scalar(6)})
    assert delta._differs(str(file), {"max.a.b": pa.scalar(2)})


def test_audit_finds_records_that_another_writer_committed_to_an_iceberg_table_and_removed_again(areas):
    content, one = manifest(format="iceberg"), pa.table({"sex": ["x"], "hours": pa.array([1], pa.int8())})
    publish.publish(staged(areas), content, areas, entry())
    folder = areas.public.folder / "iceberg"
    table = formats._table(folder)
    table.append(one)
    table.delete("sex = 'x'")
    formats._publish(folder, table)
    assert iceberg.audit(areas.public.folder, content).faults == [
        "another writer committed other records to the Iceberg table, which an earlier state has"
    ]


@pytest.mark.parametrize(("mode", "wrong"), [("none", 0), ("truncate(1)", 0), ("full", 0), ("nonsense", 1)])
def test_properties_that_another_writer_gives_an_iceberg_table_do_not_stop_the_audit(areas, mode, wrong):
    content = manifest(format="iceberg")
    publish.publish(staged(areas), content, areas, entry())
    folder = areas.public.folder / "iceberg"
    table = formats._table(folder)
    with table.transaction() as transaction:
        transaction.set_properties({"write.metadata.metrics.default": mode})
    formats._publish(folder, table)
    assert len(iceberg.audit(areas.public.folder, content).faults) == wrong
