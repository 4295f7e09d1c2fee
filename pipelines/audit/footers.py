"""Audit what Parquet files hold next to their values: metadata, categories and statistics.

Readers of a file also read its footer. A minimum, maximum or number that is not that of the values may be
that of other records. The statistics of every column of every row group, and those of its pages, are compared
with those that Arrow writes for the same values.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from microguard.pipelines.audit.pages import Page, further_fields, pages

#: Bytes below which no writer shortens the ends of texts: Delta Lake to 32 characters, arrow-rs to 64 bytes.
SHORTENED = 32
_ENDS = ("min", "max")
#: Bytes of the physical types in page indexes that are numbers.
_PACKED = {"BOOLEAN": "<?", "INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d"}
_KEPT_METADATA = {b"ARROW:schema", b"PARQUET:field_id"}


def has_foreign_metadata(path: Path) -> bool:
    """Return whether footer, Arrow schema or a column has metadata, in which other programs store sources."""
    schema = pq.read_schema(path)
    of_columns = {key for entry in schema for key in entry.metadata or {}}
    keys = {*(pq.read_metadata(path).metadata or {}), *(schema.metadata or {}), *of_columns}
    return bool(keys - _KEPT_METADATA)


def stale_dictionaries(path: Path) -> int:
    """Count the columns of a file whose dictionary has texts or categories that do not occur.

    Parquet writes the distinct texts of a column into a dictionary page, whatever the type of the column.
    One column of one row group is in memory.
    """
    with pq.ParquetFile(path) as file:
        leaves = map(file.schema.column, range(len(file.schema)))
        texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
        names = [name for name in texts if name in file.schema_arrow.names]
    with pq.ParquetFile(path, read_dictionary=names) as file:
        return sum(_is_stale(file, name) for name in names)


def _is_stale(file: pq.ParquetFile, name: str) -> bool:
    """Return whether a text that a row group has in its dictionary only occurs in no other one either."""
    groups, unused = range(file.num_row_groups), set[Any]()
    for group in groups:
        written, occurring = _dictionary(file, group, name)
        if len(written) > len(occurring):
            unused |= set(written.to_pylist()) - set(occurring.to_pylist())
    for group in groups if unused else ():
        unused -= set(_dictionary(file, group, name)[1].to_pylist())
    return bool(unused)


def _dictionary(file: pq.ParquetFile, group: int, name: str) -> tuple[pa.Array, pa.Array]:
    """Return the distinct texts that a row group has in its dictionary, and those that occur."""
    column = file.read_row_group(group, columns=[name]).column(name).combine_chunks()
    if not pa.types.is_dictionary(column.type):
        return pa.array([]), pa.array([])
    used = column.dictionary.take(column.indices.unique().drop_null())
    return column.dictionary.unique(), used.unique()


def wrong_footers(files: Sequence[Path]) -> int:
    """Count the column chunks whose statistics differ from their values, or that have further fields."""
    return sum(map(_further_fields, files)) + sum(map(wrong_chunks, files))


def _further_fields(path: Path) -> int:
    try:
        return further_fields(path)
    except ValueError:
        return 1


def wrong_chunks(path: Path) -> int:
    """Count the column chunks of a file whose statistics, or those of their pages, differ from their values.

    One column of one row group is in memory, and columns without statistics are not read.
    """
    wrong = 0
    with pq.ParquetFile(path) as file:
        try:
            indexed = {(group, place): stated for group, place, stated in pages(path)}
        except ValueError:
            return file.metadata.num_columns * file.num_row_groups
        for group in range(file.num_row_groups):
            stated = file.metadata.row_group(group)
            for place, chunk in enumerate(map(stated.column, range(stated.num_columns))):
                name = chunk.path_in_schema
                if chunk.statistics is None and (group, place) not in indexed:
                    continue
                if name not in file.schema_arrow.names:  # no release has nested columns
                    wrong += 1
                    continue
                values = plain(file.read_row_group(group, columns=[name]).select([name]))
                wrong += bool(
                    (chunk.statistics is not None and _differ(chunk.statistics, values))
                    or wrong_pages(indexed.get((group, place), []), values, chunk.physical_type)
                )
    return wrong


def wrong_pages(stated: Sequence[Page], values: pa.Table, kind: str) -> int:
    """Count the pages of a column, of a physical type, whose ends or missing values are not those stated."""
    wrong = 0
    starts = [*(page.first for page in stated), len(values)]
    if stated and (starts[0] != 0 or starts != sorted(starts)):
        return len(stated)
    for page, stop in zip(stated, starts[1:], strict=True):
        part = values.slice(page.first, stop - page.first)
        column = part.column(0)
        if page.nulls not in (None, column.null_count):
            wrong += 1
        elif page.empty:
            wrong += bool(page.minimum or page.maximum or column.null_count < len(column))
        else:
            ends = (_decoded(page.minimum, kind, column), _decoded(page.maximum, kind, column))
            wrong += not _are_ends(ends, part, kind)
    return wrong


def _decoded(content: bytes, kind: str, column: pa.ChunkedArray) -> Any:
    """Return the value of the bytes that a page index has for a physical type."""
    if kind in _PACKED:
        layout = _PACKED[kind]
        return struct.unpack(layout, content)[0] if len(content) == struct.calcsize(layout) else content
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return content.decode(errors="replace")
    return content


def plain(records: pa.Table) -> pa.Table:
    """Return the records without dictionaries, which may have categories that do not occur, and views."""
    return records.cast(pa.schema([pa.field(entry.name, _plain(entry.type)) for entry in records.schema]))


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return kind.value_type
    return {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(kind, kind)


def _written(records: pa.Table) -> pq.ColumnChunkMetaData:
    """Return the metadata that Arrow writes for the only column of these records, in one row group."""
    written: list[pq.FileMetaData] = []
    with pq.ParquetWriter(
        pa.MockOutputStream(),
        records.schema,
        compression="none",
        use_dictionary=False,
        metadata_collector=written,
    ) as writer:
        writer.write_table(records, row_group_size=max(1, len(records)))
    return written[0].row_group(0).column(0)


def _differ(stated: pq.Statistics, values: pa.Table) -> bool:
    """Return whether a statement about a column is not that of its values; a missing one states nothing."""
    column, kind = values.column(0), stated.physical_type
    if stated.has_null_count and stated.null_count != column.null_count:
        return True
    if stated.has_distinct_count and stated.distinct_count != pc.count_distinct(column).as_py():
        return True
    if not stated.has_min_max:
        return False
    text = kind == "BYTE_ARRAY"
    try:
        ends = (stated.min, stated.max) if text else (stated.min_raw, stated.max_raw)
    except ValueError:  # no characters
        return True
    return not _are_ends(ends, values, kind)


def _are_ends(stated: tuple[Any, Any], values: pa.Table, kind: str) -> bool:
    """Return whether a file may state these raw values (or texts) of a physical type as the ends of a column.

    Raw values also exist for dates outside of the years that Python has.
    """
    if kind == "BYTE_ARRAY":  # Arrow writes no ends of long texts, other writers shorter ones
        ends = pc.min_max(values.column(0))
        return all(is_end(each, ends[name].as_py(), name) for name, each in zip(_ENDS, stated, strict=True))
    expected = _written(values).statistics
    if expected is None or not expected.has_min_max:
        return False
    exact = pa.types.is_decimal(values.column(0).type)
    written = (expected.min_raw, expected.max_raw)
    return all(_raw(each, exact) == _raw(own, exact) for each, own in zip(stated, written, strict=True))


def _raw(value: Any, exact: bool) -> Any:
    """Return a raw value; that of a decimal as an integer, because decimals have several physical types."""
    return int.from_bytes(value, "big", signed=True) if exact and isinstance(value, bytes) else value


def is_end(stated: Any, value: Any, end: str) -> bool:
    """Return whether a value may be stated so as the minimum or maximum (``min``, ``max``).

    Texts may be shortened. A shortened minimum is the beginning of the text. Of a shortened maximum the last
    character is replaced by a greater one, or one is added.
    """
    if stated == value:
        return True
    if type(stated) is not type(value) or type(value) not in (str, bytes):
        return False
    if len(stated.encode() if type(stated) is str else stated) < SHORTENED:
        return False
    return bool(
        value.startswith(stated) if end == "min" else stated > value and value.startswith(stated[:-1])
    )
