"""Records written as one CSV file, which is verified by reading it back.

Parts of the file are written and read in parallel, in threads or tasks, as streams, so that memory does not
grow with the number of records.

The format is RFC 4180 in UTF-8. Text is quoted, so that `""` is the empty text and an unquoted empty field is
a missing value. Spreadsheets execute text that begins like a formula. Values are not changed for this reason;
the columns with such text are reported.
"""

from __future__ import annotations

import math
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from microguard.pipelines.engine.files import HashedFile, in_threads
from pyarrow import csv

#: Name of the CSV file of a release.
CSV = "microdata.csv"
READING = (
    'UTF-8, comma, RFC 4180. Text is enclosed in quotes, and "" is an empty text; an empty field without '
    "quotes is missing. Numbers have a decimal point; dates and times follow ISO 8601, in UTC if they have "
    "a time zone. Years after 9999 have more digits, and years before 0 a minus sign."
)
#: First characters of formulas in spreadsheets (OWASP, "CSV Injection"), also in their full-width form.
_FORMULA = "^[=+\\-@\t\r\n＝＋－＠]"
#: Number of bytes that are read at a time; it must be at least the size of a record.
_BLOCK = 2**24
#: Maximum number of parts into which the file is split for writing.
PARTS = 64
#: Type of a function that returns the records of a part, with the columns and types of the file; it can be
#: pickled.
Records = Callable[[], Iterator[pa.RecordBatch]]
#: Type of a function that applies a picklable function to each number and returns the results.
ForEach = Callable[[Callable[[int], Any], Sequence[int]], list[Any]]
_CARRIED: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_float32,
    pa.types.is_float64,
    pa.types.is_decimal128,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_timestamp,
)


def not_carried(schema: pa.Schema) -> list[str]:
    """Return the columns whose type a CSV file cannot represent."""
    return [
        each.name
        for each in schema
        if not (_is_text(each.type) or any(is_of(each.type) for is_of in _CARRIED))
    ]


def csv_parts(files: Sequence[Path]) -> list[Sequence[Path]]:
    """Split the record files into at most `PARTS` groups of consecutive files; each becomes a part of the CSV
    file.
    """
    size = max(1, math.ceil(len(files) / PARTS))
    return [files[start : start + size] for start in range(0, len(files), size)]


def write_csv(
    path: Path, parts: Sequence[Records], schema: pa.Schema, for_each: ForEach = in_threads
) -> tuple[tuple[str, ...], tuple[int, ...], str]:
    """Write the records of several parts in parallel, and join the parts.

    Parameters
    ----------
    parts : sequence of callables
        The parts in the order of the file.
    for_each : callable
        Runs the parts. Tasks need the folder of the CSV file and the record files under the same paths.

    Returns
    -------
    tuple of str
        The columns with text that a spreadsheet would run as a formula.
    tuple of int
        The position in the file where each part ends.
    str
        The SHA-256 of the file, hexadecimal.
    """
    hidden = [path.with_name(f".{path.name}-{number}") for number in range(len(parts))]
    write = partial(_write_part, hidden, parts, schema)
    formulas = set[str]().union(*for_each(write, range(len(parts))))
    ends = []
    with open(path, "wb") as file:
        whole = HashedFile(file)
        for each in hidden:
            with open(each, "rb") as part:
                shutil.copyfileobj(part, whole, _BLOCK)
            each.unlink()
            ends.append(whole.tell())
    return tuple(name for name in schema.names if name in formulas), tuple(ends), whole.checksum


def _write_part(paths: Sequence[Path], parts: Sequence[Records], schema: pa.Schema, number: int) -> set[str]:
    """Write one part atomically, because a task may run twice; return the result of `_write`."""
    fresh = paths[number].with_name(f"{paths[number].name}.{secrets.token_hex(8)}")
    formulas = _write(fresh, parts[number](), schema, number == 0)
    fresh.replace(paths[number])
    return formulas


def _write(path: Path, batches: Iterator[pa.RecordBatch], schema: pa.Schema, first: bool) -> set[str]:
    """Write one part (the first contains the header); return the columns with text that begins like a
    formula.
    """
    texts = [each.name for each in schema if _is_text(each.type)]
    formulas = set[str]()
    with open(path, "wb") as file:
        if first:
            csv.write_csv(schema.empty_table(), file, csv.WriteOptions(eol="\r\n"))
        options = csv.WriteOptions(include_header=False, eol="\r\n")
        for batch in batches:
            for name in texts:
                if name not in formulas and pc.any(pc.match_substring_regex(batch[name], _FORMULA)).as_py():
                    formulas.add(name)
            columns = [_as_written(column) for column in batch.columns]
            csv.write_csv(pa.RecordBatch.from_arrays(columns, names=schema.names), file, options)
    return formulas


def holds(
    path: Path,
    parts: Sequence[Records],
    schema: pa.Schema,
    ends: Sequence[int],
    for_each: ForEach = in_threads,
) -> bool:
    """Return whether a CSV file contains exactly these records in this order; parts are read in parallel.

    Each part of the file must consist of complete lines, and the parts together must be the file. The end
    positions are therefore verified, not trusted.
    """
    if not path.exists() or len(parts) != len(ends) or (ends and path.stat().st_size != ends[-1]):
        return False
    return all(for_each(partial(_equal_part, path, parts, schema, ends), range(len(parts))))


def _equal_part(
    path: Path, parts: Sequence[Records], schema: pa.Schema, ends: Sequence[int], number: int
) -> bool:
    from microguard.pipelines.publication.record_files.moments import is_moment

    start = ends[number - 1] if number else 0
    for as_text in (False, True) if any(map(is_moment, schema.types)) else (False,):
        try:
            return _equal(_read(path, schema, start, ends[number], as_text), parts[number]())
        except (OSError, pa.ArrowException):  # Arrow reads no years outside of 0 to 9999
            continue
    return False  # the text of the error is not used, because it may quote a record


def _read(path: Path, schema: pa.Schema, start: int, end: int, as_text: bool) -> Iterator[pa.RecordBatch]:
    """Read the lines between two positions; lines at the beginning of the file include the header.

    Parameters
    ----------
    as_text : bool
        Whether dates and times are read as text, and then with `moments_of`.
    """
    from microguard.pipelines.publication.record_files.moments import is_moment, moments_of

    if start and start == end:
        return
    with pa.OSFile(str(path)) as file, file.get_stream(start, end - start) as lines:
        file.seek(max(end - 2, 0))
        if file.read(2) != b"\r\n":
            raise pa.ArrowInvalid("no whole lines")
        names = schema.names if start else None
        with csv.open_csv(
            lines,
            read_options=csv.ReadOptions(use_threads=False, block_size=_BLOCK, column_names=names),
            parse_options=csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            convert_options=csv.ConvertOptions(
                column_types={
                    each.name: pa.string() if as_text and is_moment(each.type) else each.type
                    for each in schema
                },
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        ) as reader:
            if reader.schema.names != schema.names:
                raise pa.ArrowInvalid("other columns")
            for batch in reader:
                columns = [
                    moments_of(column, each.type) if as_text and is_moment(each.type) else column
                    for column, each in zip(batch.columns, schema, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _equal(ones: Iterator[pa.RecordBatch], others: Iterator[pa.RecordBatch]) -> bool:
    """Return whether two streams of batches, of any sizes, contain the same records."""
    one, other = next(ones, None), next(others, None)
    while one is not None and other is not None:
        rows = min(len(one), len(other))
        if not all(map(_same, one.slice(0, rows).columns, other.slice(0, rows).columns)):
            return False
        one = one.slice(rows) if rows < len(one) else next(ones, None)
        other = other.slice(rows) if rows < len(other) else next(others, None)
    return one is None and other is None


def _same(one: pa.Array, other: pa.Array) -> bool:
    """Return whether two arrays contain the same values; all NaN are equal, and -0.0 differs from 0.0."""
    if pa.types.is_floating(one.type) and one.type == other.type:
        return one.null_count == other.null_count and _bits(one).equals(_bits(other))
    return bool(one.equals(other))


def _bits(array: pa.Array) -> pa.Array:
    nan = pa.scalar(float("nan"), array.type)
    whole = pa.int32() if array.type.bit_width == 32 else pa.int64()
    return pc.if_else(pc.is_nan(array), nan, array).view(whole)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _as_written(column: pa.Array) -> pa.Array:
    """Return dates and times as text, unless Arrow writes them as ISO 8601 has them: dates of four digits."""
    from microguard.pipelines.publication.record_files.moments import is_far, is_moment, text_of_moments

    if pa.types.is_timestamp(column.type) or (is_moment(column.type) and is_far(column)):
        return text_of_moments(column)
    return column
