"""Tests that files of other programs are named before Spark starts, with what to do."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.intake.input_file import foreign_format

RECORDS = pa.table({"sex": ["f", "m"], "age": [30, 40]})


def _feather(path: Path) -> None:
    pyarrow.feather.write_feather(RECORDS, str(path))


def _first_feather(path: Path) -> None:
    pyarrow.feather.write_feather(RECORDS, str(path), version=1)


def _orc(path: Path) -> None:
    pyarrow.orc.write_table(RECORDS, str(path))


def _rds(path: Path) -> None:
    path.write_bytes(gzip.compress(b"X\n\0\0\0\3\0\4\3\2"))  # the first bytes that saveRDS writes


@pytest.mark.parametrize(
    ("write", "named"),
    [
        (_feather, "an Arrow (Feather) file"),
        (_first_feather, "an Arrow (Feather) file"),
        (_orc, "an ORC file"),
        (_rds, "an R data file"),
        (lambda path: path.write_bytes(b"Obj\x01\x04"), "an Avro file"),
        (lambda path: path.write_bytes(b"%PDF-1.7"), "a PDF document"),
    ],
)
def test_foreign_format_names_the_program_of_a_file(write, named: str, tmp_path: Path) -> None:
    write(tmp_path / "persons")
    found = foreign_format(tmp_path / "persons")
    assert found is not None
    assert found[0] == named


def test_foreign_format_is_none_for_parquet_and_csv(tmp_path: Path) -> None:
    pq.write_table(RECORDS, tmp_path / "persons.parquet")
    assert foreign_format(tmp_path / "persons.parquet") is None
    for header in ("ORCHARD", "RDX_CODE", "FEA1", "$FLAG", "X"):
        (tmp_path / "persons.csv").write_text(f"{header},age\nX,3\n")
        assert foreign_format(tmp_path / "persons.csv") is None
