"""Check of an input before Spark starts: it must exist, not be empty, and not be in another program's
format.
"""

from __future__ import annotations

import glob
import gzip
import re
import zlib
from pathlib import Path

from microguard.pipelines.intake.faults import input_label
from microguard.pipelines.intake.lake_tables import local_path
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.model import Specification

_EXPORT = "Export it as CSV or Parquet from {0}"
_OF_SAS = _EXPORT.format("SAS (PROC EXPORT) or pandas.read_sas")
_OF_R = _EXPORT.format("R (arrow::write_parquet or write.csv)")
_OF_ARROW = _EXPORT.format("R (arrow::write_parquet), or by pandas.read_feather")
_FORMATS = (
    (b"\xd0\xcf\x11\xe0", "an Excel workbook (.xls)", _EXPORT.format("Excel or LibreOffice")),
    (b"PK\x03\x04", "an Excel workbook (.xlsx) or another archive", _EXPORT.format("Excel or LibreOffice")),
    (b"<stata_dta>", "a Stata file", _EXPORT.format("Stata (export delimited) or pandas.read_stata")),
    (b"$FL2@", "an SPSS file", _EXPORT.format("SPSS (SAVE TRANSLATE) or pyreadstat")),
    (b"$FL3@", "an SPSS file", _EXPORT.format("SPSS (SAVE TRANSLATE) or pyreadstat")),
    (b"\0" * 12 + b"\xc2\xea\x81\x60", "a SAS data set", _OF_SAS),
    (b"HEADER RECORD***", "a SAS transport file", _OF_SAS),
    (b"RDX", "an R data file", _OF_R),
    (b"X\n\0\0\0", "an R data file", _OF_R),
    (b"ARROW1", "an Arrow (Feather) file", _OF_ARROW),
    (b"FEA1", "an Arrow (Feather) file", _OF_ARROW),
    (b"ORC", "an ORC file", _EXPORT.format("Spark or Hive, or by pandas.read_orc")),
    (b"Obj\x01", "an Avro file", _EXPORT.format("Spark")),
    (b"%PDF", "a PDF document", "Request the records as CSV or Parquet"),
    (b"SQLite format 3", "an SQLite database", _EXPORT.format("SQLite (.mode csv)")),
)  # fmt: skip
"""First bytes of files of other programs, with the name of the format and the remedy."""
_TEXTUAL = frozenset({b"RDX", b"ORC", b"FEA1", b"ARROW1"})
"""First bytes that may also occur in text; a file of another program has control characters next to them."""
_OLD_STATA = tuple(bytes((version, order)) for version in range(0x69, 0x74) for order in (1, 2))


def foreign_format(file: Path) -> tuple[str, str] | None:
    """Return the name of another program's format and the remedy; None for other files and unreadable
    files.
    """
    try:
        with open(file, "rb") as stream:
            begin = stream.read(64)
        if begin.startswith(b"\x1f\x8b"):
            with gzip.open(file) as inside:
                begin = inside.read(64)
    except (OSError, EOFError, zlib.error):
        return None  # the error is reported when the records are read
    if not begin:
        return "an empty file", "Write the records again, or name another file"
    # otherwise a CSV whose header begins with the same bytes would be refused
    binary = any(byte < 9 for byte in begin)
    for mark, what, remedy in _FORMATS:
        if begin.startswith(mark) and (binary or mark not in _TEXTUAL):
            return what, remedy
    if re.match(rb'(?:\xef\xbb\xbf)?\s*(?:\{\s*"|\[\s*[\[{])', begin):
        return "a JSON file", (
            "Export the records as CSV or Parquet. For a JSON-stat table, `microguard draft FILE --cells "
            "cells.csv` writes the cells as CSV"
        )
    if re.match(rb"(?:\xef\xbb\xbf)?\s*<(?:\?xml|!doctype|html)", begin, re.IGNORECASE):
        return "an XML or HTML file", "Export the records as CSV or Parquet"
    if begin.startswith(_OLD_STATA) and file.suffix.lower() == ".dta":
        return "a Stata file", _EXPORT.format("Stata (export delimited) or pandas.read_stata")
    return None


def require_input(specification: Specification) -> None:
    """Refuse a local input that does not exist, is empty, or is in another program's format.

    Raises
    ------
    InputRejected
    """
    path = local_path(specification.input_path)
    if path is None:
        return
    place, label = Path(path), input_label(specification)
    if not place.exists() and not glob.glob(path, recursive=True):
        raise InputRejected(
            f"{label} does not exist. Set input.path to a file, a directory or a glob; the path is relative "
            "to the specification."
        )
    if not place.is_file():
        return
    foreign = foreign_format(place)
    if foreign is not None:
        raise InputRejected(f"{label} is {foreign[0]}, expected Parquet or CSV. {foreign[1]}.")
