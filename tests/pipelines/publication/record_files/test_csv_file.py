"""Tests that the CSV file equals the Parquet files value by value, or is not published."""

from __future__ import annotations

import csv
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import partial
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.pipelines.audit import csv_file as audit
from microguard.pipelines.engine.files import checksum, in_threads
from microguard.pipelines.intake.contract import Contract
from microguard.pipelines.publication.read_back import _csv_holds
from microguard.pipelines.publication.record_files.batches import record_batches
from microguard.pipelines.publication.record_files.csv_file import CSV, csv_parts, holds, write_csv

MOMENT = datetime(2026, 3, 29, 1, 30, 0, 5)
RECORDS = pa.table(
    {
        "text": ["é", "", "=1+1", 'q"x', "l\r\nm", None],
        "code": ["NA", "null", "nan", "007", "-", "\t"],
        "Code": pa.array(["x", None, "", "x", "y", "x"]).dictionary_encode(),
        'a,"b': ["'", " ", "\\", "\\N", "#", ","],
        "small": pa.array([1, None, -128, 4, 5, 6], pa.int8()),
        "large": pa.array([2**64 - 1] * 6, pa.uint64()),
        "x": [0.1, -0.0, float("nan"), float("inf"), 5e-324, None],
        "y": pa.array([0.1, 1e-45, None, float("nan"), -0.0, 1.5], pa.float32()),
        "price": pa.array([Decimal("1.10"), None] * 3, pa.decimal128(38, 2)),
        "tiny": pa.array([Decimal("0.00000001"), None, Decimal("-2.5")] * 2, pa.decimal128(20, 8)),
        "yes": [True, None, False] * 2,
        "born": [date(1900, 1, 1), None, date(1, 1, 1)] * 2,
        "at": pa.array([MOMENT, None, MOMENT] * 2, pa.timestamp("us")),
        "seconds": pa.array([MOMENT.replace(microsecond=0), None] * 3, pa.timestamp("s")),
        "there": pa.array([MOMENT.replace(tzinfo=UTC), None] * 3, pa.timestamp("ns", "Europe/Amsterdam")),
        "when": [time(10, 1, 2, 5), None] * 3,
    }
)


class Written:
    """Write records to two Parquet files and a CSV file."""

    def __init__(self, folder, table):
        (folder / "microdata").mkdir(parents=True)
        half = len(table) // 2
        for number, part in enumerate((table.slice(0, half), table.slice(half))):
            pq.write_table(part, folder / "microdata" / f"part-{number:05d}.parquet")
        self.folder, self.path, self.contract = folder, folder / CSV, Contract(table.schema, csv=True)
        self.files = sorted((folder / "microdata").iterdir())
        self.formulas, self.ends, self.checksum = write_csv(self.path, self.parts(), self.contract.plain)

    def parts(self):
        return [partial(record_batches, part, self.contract) for part in csv_parts(self.files)]

    def holds(self):
        """Return whether the CSV file equals the records, read in parts and as one part of unknown size."""
        whole = [partial(record_batches, self.files, self.contract)]
        in_one = holds(self.path, whole, self.contract.plain, [self.path.stat().st_size])
        in_parts = holds(self.path, self.parts(), self.contract.plain, self.ends)
        assert in_parts == in_one
        return in_one

    def wrong(self):
        """Return the failures of the audit, which shares no code with the writer."""
        schema = self.contract.schema
        columns = [{"name": each.name, "type": str(each.type)} for each in schema]
        rows = sum(pq.read_metadata(path).num_rows for path in self.files)
        manifest = {"columns": columns, "records": rows, "csv": {"file": CSV}}
        return audit.wrong_records(self.folder, manifest)


def test_csv_preserves_values_of_every_type(tmp_path):
    written = Written(tmp_path, RECORDS)
    assert written.holds()
    assert written.wrong() == 0
    with open(written.path, encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file, strict=True)
    assert header == RECORDS.column_names
    first = dict(zip(header, lines[0], strict=True))
    assert first["born"] == "1900-01-01"
    assert first["at"] == "2026-03-29T01:30:00.000005"
    assert first["seconds"] == "2026-03-29T01:30:00"
    assert first["there"] == "2026-03-29T01:30:00.000005000Z"
    assert (first["x"], first["price"], first["when"]) == ("0.1", "1.10", "10:01:02.000005")
    assert [line[0] for line in lines] == ["é", "", "=1+1", 'q"x', "l\r\nm", ""]


def test_csv_quotes_an_empty_text_and_not_a_missing_value(tmp_path):
    written = Written(tmp_path, pa.table({"a": ["", None, "x"], "b": [1, 2, None]}))
    assert written.path.read_bytes() == b'"a","b"\r\n"",1\r\n,2\r\n"x",\r\n'


def test_write_csv_returns_the_checksum_of_the_file(tmp_path):
    written = Written(tmp_path, RECORDS)
    assert written.checksum == checksum(written.path)


def test_write_csv_reports_columns_with_text_that_spreadsheets_execute(tmp_path):
    assert Written(tmp_path, RECORDS).formulas == ("text", "code")
    for number, text in enumerate(("=1", "+1", "-1", "@a", "\tx", "\rx", "\nx", "＝1")):
        assert Written(tmp_path / str(number), pa.table({"a": ["x", text], "b": [1, -2]})).formulas == ("a",)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"007"', b'"7"'),
        (b'"007"', b"007.0"),
        (b'""', b""),
        (b"-128", b"-127"),
        (b"-0,", b"0,"),
        (b"5e-324", b"0"),
        (b"1.10", b"1.1001"),
        (b"000005000Z", b"000006000Z"),
        (b",4,", b",4.2,"),
        (b'"Code"', b'"code"'),
        (b"\xc3\xa9", b"\xe9"),
        (b"true", b"yes"),
    ],
)
def test_csv_comparison_is_false_for_another_value(old, new, tmp_path):
    written = Written(tmp_path, RECORDS)
    content = written.path.read_bytes()
    assert old in content
    written.path.write_bytes(content.replace(old, new, 1))
    assert not written.holds()
    assert written.wrong()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b",0.1,", b",0.1000000000000000000000007,"),
        (b",1.5,", b",1.50000000000007,"),  # of 32 bits
        (b'30:00.000005"', b'30:00.000005000000012345"'),
    ],
)
def test_audit_finds_further_digits_of_a_number_that_a_reader_takes_for_the_same(old, new, tmp_path):
    written = Written(tmp_path, RECORDS)
    content = written.path.read_bytes()
    assert old in content
    written.path.write_bytes(content.replace(old, new, 1))
    assert written.wrong() == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'01:30:00.000005000Z"', b'03:30:00.000005000+02:00"'),
        (b'01:30:00.000005000Z"', b'01:30:00.000005Z"'),
        (b'01:30:00.000005000Z"', b'01:30:00.000005000123Z"'),
        (b'01:30:00.000005000Z"', b'01:30:00.000005000Z Jan"'),
        (b'T01:30:00.000005"', b' 01:30:00.000005"'),
        (b"10:01:02.000005", b"10:01:02.0000050"),
        (b"1900-01-01", b"1900-01-01T00:00:00"),
        (b"1900-01-01", b'"1900-01-01"'),
        (b",0.1,", b",1e-1,"),
        (b"-128", b"-0128"),
        (b"-128", b" -128"),
        (b"1.10", b"+1.10"),
        (b"true", b"TRUE"),
        (b'"text"', b'\xef\xbb\xbf"text"'),
        (b'"007"', b'"007\0"'),
        (b'"007"', b"007"),
        (b"\r\n", b",secret\r\n"),
        (b"\r\n", b"\n"),
    ],
)
def test_audit_finds_a_text_that_the_writer_does_not_write_for_its_value(old, new, tmp_path):
    written = Written(tmp_path, RECORDS)
    content = written.path.read_bytes()
    assert old in content
    written.path.write_bytes(content.replace(old, new, 1))
    assert written.wrong()


def test_audit_finds_bytes_after_the_last_record(tmp_path):
    written = Written(tmp_path, RECORDS)
    content = written.path.read_bytes()
    for more in (b"\r\n", b"\0", b"#", b'"'):
        written.path.write_bytes(content + more)
        assert written.wrong() == 1


def test_audit_reads_a_csv_whose_names_and_first_texts_have_line_breaks(tmp_path):
    texts = ["a\nb", "\r\n", "\r", "\n", None]
    records = pa.table({"a\nb": texts, "c\rd": texts[::-1], "e\r\nf": range(5)})
    written = Written(tmp_path, records)
    assert written.holds()
    assert written.wrong() == 0


def test_audit_reads_decimals_below_one_and_the_last_moment(tmp_path):
    shares = pa.array([Decimal("0.99999"), Decimal("-0.00001"), None], pa.decimal128(5, 5))
    small = pa.array([Decimal("0.00000001"), Decimal("0.5"), Decimal(0)], pa.decimal128(8, 8))
    moments = pa.array([2**63 - 1, -1, None], pa.int64()).cast(pa.timestamp("ns"))
    written = Written(tmp_path, pa.table({"share": shares, "small": small, "until": moments}))
    assert written.holds()
    assert written.wrong() == 0
    content = written.path.read_bytes()
    for old, new in ((b"0.99999", b"0.99998"), (b"-0.00001", b"0.00001"), (b"854775807", b"854775806")):
        written.path.write_bytes(content.replace(old, new, 1))
        assert written.wrong() == 1


def test_audit_finds_no_further_digits_in_what_arrow_writes(tmp_path):
    random = np.random.default_rng(1)
    size = random.normal(size=2000) * 10.0 ** random.integers(-300, 300, 2000)
    numbers = {"a": np.concatenate([size, np.round(size % 1e6, 2), random.integers(0, 10**15, 2000)])}
    numbers["b"] = (numbers["a"] % 1e30).astype(np.float32)
    assert Written(tmp_path, pa.table(numbers)).wrong() == 0


def test_holds_is_false_for_a_csv_with_a_missing_added_or_moved_record(tmp_path):
    written = Written(tmp_path, pa.table({"a": ["x", "y", "z"], "b": [1, 2, 3]}))
    for lines in (
        b'"x",1\r\n"y",2\r\n',
        b'"x",1\r\n"y",2\r\n"z",3\r\n"z",3\r\n',
        b'"y",2\r\n"x",1\r\n"z",3\r\n',
        b"",
    ):
        written.path.write_bytes(b'"a","b"\r\n' + lines)
        assert not written.holds()
        assert written.wrong()
    written.path.write_bytes(b"")
    assert not written.holds()
    assert written.wrong()


def test_verify_written_is_false_if_the_csv_differs_from_the_staged_records(tmp_path):
    written = Written(tmp_path, RECORDS)
    staged = SimpleNamespace(
        contract=written.contract, microdata=written.files, folder=tmp_path, csv_ends=written.ends
    )
    assert _csv_holds(staged, in_threads)
    written.path.write_bytes(written.path.read_bytes().replace(b'"007"', b'"008"'))
    assert not _csv_holds(staged, in_threads)
    written.path.unlink()
    assert not _csv_holds(staged, in_threads)


def test_csv_comparison_does_not_depend_on_the_boundaries_of_parts(tmp_path):
    written = Written(tmp_path, pa.table({"a": ["x", "y", "z", "w"], "b": [1, 2, 3, 4]}))
    schema, (first, last) = written.contract.plain, written.ends
    assert written.path.read_bytes()[:first] == b'"a","b"\r\n"x",1\r\n"y",2\r\n'
    for ends in ((first - 1, last), (first - 2, last), (first + 7, last), (first, last - 2), (last,), ()):
        assert not holds(written.path, written.parts(), schema, ends)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_csv_parts_cover_consecutive_records_of_all_files():
    for number in (0, 1, 64, 65, 1000):
        files = [str(place) for place in range(number)]
        parts = csv_parts(files)
        assert len(parts) == min(number, 64) or number > 64 > len(parts) > 32
        assert [each for part in parts for each in part] == files


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)


@given(
    st.lists(
        st.tuples(
            st.none()
            | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6),
            st.none() | st.floats(),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_csv_preserves_any_text_and_number(tmp_path_factory, rows):
    table = pa.table(
        {"a": pa.array([a for a, _ in rows], pa.string()), "b": pa.array([b for _, b in rows], pa.float64())}
    )
    written = Written(tmp_path_factory.mktemp("any") / "release", table)
    assert written.holds()
    assert written.wrong() == 0
