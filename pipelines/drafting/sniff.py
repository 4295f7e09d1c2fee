"""Format, delimiter and encoding of a file, detected and used to read it for a draft.

Only drafts use this; a run reads its input by the specification. Messages name the file and contain none of
its values.
"""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import io
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from microguard.pipelines.drafting.partitions import constants, hive_partitions
from microguard.pipelines.intake.input_file import foreign_format
from microguard.pipelines.intake.lake_tables import folders_and_links, refuse_lake_tables, table_format
from microguard.pipelines.intake.snapshots import Snapshot, current_snapshot
from microguard.schemas.errors import InputRejected

DELIMITERS = (",", ";", "\t", "|")
RARE_DELIMITERS = ("\x01", "~", "^", ":", "¦")
"""Delimiters that are tried if none of `DELIMITERS` fits; Hive writes the first one."""
SAMPLE_CHARACTERS = 1 << 18
SAMPLE_LINES = 200
#: Minimum number of header names that are also values of their columns, for which the first line counts as a
#: record. A single name may be both a column name and a category, such as "other".
MIN_REPEATED_NAMES = 2
#: Number of lines below a header in which survey software repeats the names with their texts.
MOST_LABEL_LINES = 2
BLOCK_BYTES = 1 << 24


@dataclass(frozen=True)
class Source:
    """Files of one input and their format.

    Attributes
    ----------
    path : Path
        Normalised absolute path of the input.
    named : str
        The input as the caller named it.
    files : tuple of Path
        Data files, sorted.
    format : str
        "parquet" or "csv".
    schema : pyarrow.Schema
        Names and types, all text for CSV. The partition columns are last.
    delimiter, quote, encoding : str
        Delimiter, quotation mark and encoding of a CSV.
    partitions : pyarrow.Schema
        The partition columns, whose values are part of the names of folders.
    values : mapping of Path to mapping of str to str or None
        Values of the partition columns for each file.
    snapshot : Snapshot or None
        If the input is a Delta or Iceberg table: its current records, instead of those of `files`.
    """

    path: Path
    named: str
    files: tuple[Path, ...]
    format: str
    schema: pa.Schema
    delimiter: str = ","
    quote: str = '"'
    encoding: str = "utf-8"
    partitions: pa.Schema = field(default_factory=lambda: pa.schema([]))
    values: Mapping[Path, Mapping[str, str | None]] = field(default_factory=dict)
    snapshot: Snapshot | None = None

    @property
    def written(self) -> str:
        """Return the path as a specification in the working folder names it: normalised, and relative if the
        user gave a relative path.
        """
        relative = not os.path.isabs(self.named) and not set("*?[]{}") & set(str(Path.cwd()))
        return os.path.normpath(self.named) if relative else str(self.path)

    def batches(self, positions: list[int]) -> Iterator[pa.RecordBatch]:
        """Yield the columns at the given positions in batches; columns are named by position ("c0", "c1",
        ...).
        """
        names = [self.schema.names[position] for position in positions]
        labels = [f"c{position}" for position in positions]
        if self.snapshot is not None:
            for batch in self.snapshot.batches(names):
                yield batch.rename_columns(labels)
        for file in self.files:
            if self.format == "parquet":
                inside = [name for name in names if name not in self.partitions.names]
                batches = pq.ParquetFile(file).iter_batches(columns=inside)
            else:
                batches = _csv_batches(file, self)
            for batch in batches:
                columns = dict(zip(batch.schema.names, batch.columns, strict=True))
                partition_values = constants(self.partitions, self.values.get(file, {}), batch.num_rows)
                columns |= dict(zip(self.partitions.names, partition_values, strict=True))
                yield pa.RecordBatch.from_arrays([columns[name] for name in names], names=labels)


def sniff(named: str) -> Source:
    """Detect the format of a file, folder or glob; if the folder is a Delta or Iceberg table, use its
    snapshot.

    Raises
    ------
    InputRejected
        If there are no files, they are neither Parquet nor CSV with a header, or they belong to a Delta,
        Iceberg or Hudi table without being its folder.
    """
    path = Path(os.path.abspath(named))
    if table_format(str(path)) is not None:
        snapshot = current_snapshot(named)
        return Source(path, named, (), "parquet", snapshot.schema, snapshot=snapshot)
    refuse_lake_tables([str(path)], named)
    files = input_files(named)
    refuse_lake_tables(folders_and_links(map(str, files)), named)
    _refuse_foreign(files[0], named)
    try:
        source = (
            Source(path, named, files, "parquet", pq.read_schema(files[0]))
            if _is_parquet(files[0])
            else _sniff_csv(path, named, files)
        )
    except PermissionError:
        raise InputRejected(
            f"{named} cannot be opened because this user has no permission to read it. Grant the "
            "permission, or run as another user."
        ) from None
    except (pa.ArrowException, OSError, EOFError, zlib.error, UnicodeError, csv.Error):
        raise InputRejected(
            f"{named} cannot be read, expected Parquet or CSV with a header. Check that the file is complete."
        ) from None
    return _with_partitions(source) if path.is_dir() else source


def _with_partitions(source: Source) -> Source:
    partitions, values = hive_partitions(source.path, source.files)
    if source.format == "csv":  # text, because a run also reads the partition columns of a CSV as text
        partitions = pa.schema([(name, pa.string()) for name in partitions.names])
    inside = [entry for entry in source.schema if entry.name not in partitions.names]
    return replace(source, schema=pa.schema([*inside, *partitions]), partitions=partitions, values=values)


def input_files(named: str) -> tuple[Path, ...]:
    """Return the files of a file, folder or glob, sorted.

    Raises
    ------
    InputRejected
        If there is none.
    """
    path = Path(os.path.abspath(named))
    if path.is_file():
        return (path,)
    found = map(os.path.abspath, glob.glob(named, recursive=True))
    inside = path.rglob("*") if path.is_dir() else map(Path, found)
    files = tuple(sorted(each for each in inside if each.is_file() and each.name[0] not in "._"))
    if not files:
        raise InputRejected(
            f"{named} does not exist or has no files, expected a file, a folder or a glob. Correct the path."
        )
    return files


def _refuse_foreign(file: Path, named: str) -> None:
    foreign = foreign_format(file)
    if foreign is not None:
        raise InputRejected(f"{named} is {foreign[0]}, expected Parquet or CSV. {foreign[1]}.")


def _is_parquet(file: Path) -> bool:
    with open(file, "rb") as stream:
        return stream.read(4) == b"PAR1"


def _sniff_csv(path: Path, named: str, files: tuple[Path, ...]) -> Source:
    encodings = [_encoding(file) for file in files]
    encoding = next((each for each in encodings if each != "utf-8"), "utf-8")
    with _open(files[0]) as stream:
        sample = io.TextIOWrapper(stream, encoding).read(SAMPLE_CHARACTERS).removeprefix("\ufeff")
    quote = _quote(sample)
    delimiter = _delimiter(sample, quote)
    header, *rows = list(csv.reader(io.StringIO(sample), delimiter=delimiter, quotechar=quote)) or [[]]
    _check_header(header, rows[:SAMPLE_LINES], path)
    schema = pa.schema([(name, pa.string()) for name in header])
    return Source(path, named, files, "csv", schema, delimiter, quote, encoding)


def _open(file: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(file)) if file.suffix == ".gz" else open(file, "rb")


def _encoding(file: Path) -> str:
    """Return utf-8 if the whole file is valid UTF-8, otherwise the most plausible single-byte encoding of
    western Europe.

    Raises
    ------
    InputRejected
        If the file begins with the byte order mark of UTF-16 or UTF-32, which a run cannot read.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    plain = controls = True
    with _open(file) as stream:
        block = stream.read(BLOCK_BYTES)
        if block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)):
            raise InputRejected(
                f"{file.name} is encoded in UTF-16 or UTF-32, expected UTF-8 or an encoding that extends "
                "ASCII. Convert the file to UTF-8 (iconv -f UTF-16 -t UTF-8)."
            )
        while block:
            if plain:
                try:
                    decoder.decode(block)
                except UnicodeDecodeError:
                    plain = False
            controls = controls and not any(0x80 <= byte < 0xA0 for byte in set(block))
            block = stream.read(BLOCK_BYTES)
    if plain:
        return "utf-8"
    return "iso-8859-1" if controls else "windows-1252"


def _quote(sample: str) -> str:
    """Return the single quote if it encloses two fields and half of the first line, otherwise the double
    quote.
    """
    first = sample.splitlines()[0] if sample.strip() else ""
    fields = max((first.split(delimiter) for delimiter in DELIMITERS), key=len)
    quoted = sum(len(field) > 2 and field[0] == field[-1] == "'" for field in map(str.strip, fields))
    return "'" if quoted >= max(2, len(fields) / 2) else '"'


def _delimiter(sample: str, quote: str) -> str:
    """Return the delimiter for which the most lines have the same number of fields, at least two."""

    def agreement(delimiter: str) -> tuple[float, int]:
        rows = list(csv.reader(io.StringIO(sample), delimiter=delimiter, quotechar=quote))[:SAMPLE_LINES]
        widths = Counter(len(row) for row in rows if row)
        if not widths:
            return 0.0, 0
        width, lines = widths.most_common(1)[0]
        return (lines / sum(widths.values()) if width > 1 else 0.0), width

    best = max(DELIMITERS, key=agreement)
    return best if agreement(best)[0] else max((best, *RARE_DELIMITERS), key=agreement)


def _check_header(header: list[str], rows: list[list[str]], path: Path) -> None:
    """Refuse a first line that is a record; otherwise its values would be shown as column names."""
    unnamed = sum(not name.strip() for name in header)
    repeated = _repeated(header, rows)
    numbers = any(map(_is_number, header))
    if any(mark in name for name in header for mark in "\r\n"):
        raise with_line_breaks(path)
    if len(header) == 1 and (len(header[0].split()) > 2 or re.search(r"[0-9] +\S", header[0])):
        raise InputRejected(
            f"{path.name}: expected fields with one of the delimiters , ; | or a tab, found one column, as "
            "in a fixed-width file. Convert the file to CSV with a header."
        )
    if header and header[0].lower().startswith("sep=") and len([name for name in header if name]) == 1:
        raise InputRejected(
            f"{path.name}: expected a header in the first line, found Excel's declaration of the delimiter "
            "(sep=). Remove this line."
        )
    if rows and all(len(row) == len(header) + 1 for row in rows if row) and unnamed == 0:
        raise InputRejected(
            f"{path.name}: expected as many fields in each line as in the header, found one more, such as "
            "row names written by R. Write the file again by write.csv(..., row.names = FALSE), or add a "
            "name for the first column to the header."
        )
    if unnamed > 1 and not numbers and repeated < MIN_REPEATED_NAMES:
        raise InputRejected(
            f"The first line of {path.name}: expected a header with at most one unnamed column, found "
            f"{unnamed} unnamed ones. Name the columns, remove delimiters at the ends of lines, or remove "
            "lines above the header."
        )
    if not numbers and repeated >= MIN_REPEATED_NAMES and not _repeated(header, rows[MOST_LABEL_LINES:]):
        raise InputRejected(
            f"{path.name}: expected records below the header, found names of the header again in the first "
            f"{MOST_LABEL_LINES} lines below it, such as the question texts of Qualtrics. Remove these lines."
        )
    duplicates = len(set(header)) < len(header)
    if duplicates and not numbers and unnamed <= 1 and not repeated:
        places = [str(i + 1) for i, name in enumerate(header) if header.count(name) > 1]
        raise InputRejected(
            f"The first line of {path.name}: expected distinct column names, found equal ones in the columns "
            f"{', '.join(places)}. Rename them; if the line is a record, add a header."
        )
    if not header or duplicates or unnamed > 1 or numbers or repeated >= MIN_REPEATED_NAMES:
        raise InputRejected(
            f"The first line of {path.name}: expected a header of distinct column names that are not "
            "numbers, found a line that may be a record. Add a header to the file."
        )


def with_line_breaks(path: Path) -> InputRejected:
    """Return the refusal of a CSV whose fields or names have line breaks, which a run refuses, too."""
    return InputRejected(
        f"{path.name}: expected fields and column names without line breaks, found some. Remove the line "
        "breaks, or write the file as Parquet."
    )


def _repeated(header: list[str], rows: list[list[str]]) -> int:
    """Count the names of a header that are also values of their columns."""
    return sum(any(row[i : i + 1] == [name] for row in rows) for i, name in enumerate(header) if name)


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return any(map(str.isdigit, text))  # "inf" and "nan" are names


def _csv_batches(file: Path, source: Source) -> Iterator[pa.RecordBatch]:
    text = {name: pa.string() for name in source.schema.names if name not in source.partitions.names}
    with _open(file) as stream:
        yield from pa_csv.open_csv(
            stream,
            read_options=pa_csv.ReadOptions(encoding=source.encoding, block_size=BLOCK_BYTES),
            parse_options=pa_csv.ParseOptions(delimiter=source.delimiter, quote_char=source.quote),
            convert_options=pa_csv.ConvertOptions(
                column_types=text, strings_can_be_null=True, null_values=[""]
            ),
        )
