"""Write the records as one CSV file in a stream, and compare the file by reading it back.

RFC 4180 in UTF-8: text is quoted, so that `""` is the empty text and an unquoted empty field is missing.
Spreadsheets run text that begins like a formula. Values are not changed for them; the columns with such text
are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

#: The CSV file of a release.
CSV = "microdata.csv"
READING = (
    'UTF-8, comma, RFC 4180. Text stands in quotes, and "" is an empty text; an empty field without '
    "quotes is missing. Decimal point; dates and times as ISO 8601 has them, UTC where they have a zone."
)
#: Beginnings of formulas in spreadsheets (OWASP, "CSV Injection"), also in full width.
_FORMULA = "^[=+\\-@\t\r\n＝＋－＠]"
#: Bytes that are read at a time: a record must fit.
_BLOCK = 2**24
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


def write_csv(path: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> tuple[str, ...]:
    """Write records; return the columns with text that a spreadsheet would run as a formula.

    Parameters
    ----------
    batches : iterable of RecordBatch
        In the order of the file, with the columns and types of `schema`.
    """
    written = pa.schema([pa.field(each.name, _written_type(each.type)) for each in schema])
    formulas = dict.fromkeys((each.name for each in schema if _is_text(each.type)), False)
    options = csv.WriteOptions(eol="\r\n")
    with csv.CSVWriter(path, written, write_options=options) as writer:
        for batch in batches:
            for name, has_formula in formulas.items():
                formulas[name] = has_formula or bool(
                    pc.any(pc.match_substring_regex(batch[name], _FORMULA)).as_py()
                )
            columns = [_as_written(column) for column in batch.columns]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=written))
    return tuple(name for name, has_formula in formulas.items() if has_formula)


def holds(path: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> bool:
    """Return whether a CSV file has exactly these records, in this order."""
    try:
        return _equal(_read(path, schema), iter(batches))
    except (OSError, pa.ArrowException):  # its text may quote a record
        return False


def _read(path: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with csv.open_csv(
        path,
        read_options=csv.ReadOptions(use_threads=False, block_size=_BLOCK),
        parse_options=csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=csv.ConvertOptions(
            column_types=schema, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    ) as reader:
        if reader.schema.names != schema.names:
            raise pa.ArrowInvalid("other columns")
        yield from reader


def _equal(ones: Iterator[pa.RecordBatch], others: Iterator[pa.RecordBatch]) -> bool:
    """Return whether two streams of batches, of any sizes, hold the same records."""
    one, other = next(ones, None), next(others, None)
    while one is not None and other is not None:
        rows = min(len(one), len(other))
        if not all(map(_same, one.slice(0, rows).columns, other.slice(0, rows).columns)):
            return False
        one = one.slice(rows) if rows < len(one) else next(ones, None)
        other = other.slice(rows) if rows < len(other) else next(others, None)
    return one is None and other is None


def _same(one: pa.Array, other: pa.Array) -> bool:
    """Return whether two arrays hold the same values; all NaN are equal, and -0.0 is not 0.0."""
    if pa.types.is_floating(one.type) and one.type == other.type:
        return one.null_count == other.null_count and _bits(one).equals(_bits(other))
    return bool(one.equals(other))


def _bits(array: pa.Array) -> pa.Array:
    nan = pa.scalar(float("nan"), array.type)
    whole = pa.int32() if array.type.bit_width == 32 else pa.int64()
    return pc.if_else(pc.is_nan(array), nan, array).view(whole)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _written_type(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_timestamp(kind) else kind


def _as_written(column: pa.Array) -> pa.Array:
    """Format timestamps by ISO 8601; Arrow writes them without the T."""
    if not pa.types.is_timestamp(column.type):
        return column
    moments, zone = column, ""
    if column.type.tz is not None:
        moments, zone = column.cast(pa.timestamp(column.type.unit, "UTC")), "Z"
    return pc.strftime(moments.cast(pa.timestamp(column.type.unit)), f"%Y-%m-%dT%H:%M:%S{zone}")
