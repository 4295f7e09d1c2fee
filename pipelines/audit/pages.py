"""Ends and numbers of missing values of pages, which a Parquet file may have before its footer.

Neither Arrow nor DuckDB shows them, and Arrow does not show all fields of a footer. This reads the few
structures of the format that lead to them, which are written in the compact protocol of Thrift.

Source: https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift (`FileMetaData`,
`ColumnChunk`, `ColumnIndex`, `OffsetIndex`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

_BOOLEANS, _BYTE, _DOUBLE, _BINARY, _STRUCT = (1, 2), 3, 7, 8, 12
_INTEGERS, _LISTS = (4, 5, 6), (9, 10)
#: Numbers of fields: row groups of a file, chunks of a row group; place and length of the indexes of a chunk.
_ROW_GROUPS, _CHUNKS, _OFFSET_INDEX, _COLUMN_INDEX = 4, 1, (4, 5), (6, 7)
#: Metadata of a chunk; in these the place of a Bloom filter, and statistics; in these the two ends, in the
#: fields of earlier versions of the format and in those of today.
_METADATA, _BLOOM_FILTER, _STATISTICS, _ENDS = 3, 14, 12, ((1, 5), (2, 6))


@dataclass(frozen=True)
class Page:
    """What a file states about a page of a column.

    First record (from 0, in its row group), whether the page is said to have missing values only, the bytes
    of its minimum and maximum, and the number of missing values (None if it is not stated).
    """

    first: int
    empty: bool
    minimum: bytes
    maximum: bytes
    nulls: int | None


def pages(path: Path) -> Iterator[tuple[int, int, list[Page]]]:
    """Yield row group, place of the column (both from 0) and pages of each column chunk with ends of pages.

    Raises
    ------
    ValueError
        The structures are not those of the format.
    """
    with path.open("rb") as file, _readable(path):
        for group, content in enumerate(_row_groups(file)):
            for place, chunk in enumerate(content[_CHUNKS]):
                if _COLUMN_INDEX[0] in chunk:
                    ends = _at(file, *(chunk[number] for number in _COLUMN_INDEX))
                    places = _at(file, *(chunk[number] for number in _OFFSET_INDEX))
                    yield group, place, _pages(ends, places)


def further_fields(path: Path) -> int:
    """Count the column chunks with a Bloom filter, which tells which values occur, or with other ends in the
    fields of earlier versions of the format.

    Raises
    ------
    ValueError
        The structures are not those of the format.
    """
    with path.open("rb") as file, _readable(path):
        chunks = [chunk[_METADATA] for group in _row_groups(file) for chunk in group[_CHUNKS]]
        return sum(_BLOOM_FILTER in chunk or _has_other_ends(chunk.get(_STATISTICS, {})) for chunk in chunks)


def _has_other_ends(statistics: dict[int, Any]) -> bool:
    return any(old in statistics and statistics[old] != statistics.get(new) for old, new in _ENDS)


def _row_groups(file: BinaryIO) -> list[dict[int, Any]]:
    file.seek(-8, 2)
    (length,) = struct.unpack("<I", file.read(4))
    file.seek(-8 - length, 2)
    groups: list[dict[int, Any]] = _struct(file)[_ROW_GROUPS]
    return groups


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, IndexError, OSError, RecursionError, struct.error) as error:
        raise ValueError(f"the footer or the ends of pages of {path.name} cannot be read") from error


def _at(file: BinaryIO, offset: int, length: int) -> dict[int, Any]:
    file.seek(offset)
    return _struct(BytesIO(file.read(length)))


def _pages(ends: dict[int, Any], places: dict[int, Any]) -> list[Page]:
    firsts = [each[3] for each in places[1]]
    nulls = ends.get(5, [None] * len(firsts))
    return [Page(*each) for each in zip(firsts, ends[1], ends[2], ends[3], nulls, strict=True)]


def _struct(file: BinaryIO) -> dict[int, Any]:
    """Return the fields of a structure by their numbers."""
    fields: dict[int, Any] = {}
    number = 0
    while header := file.read(1)[0]:
        step, kind = header >> 4, header & 15
        number = number + step if step else _signed(file)
        fields[number] = kind == _BOOLEANS[0] if kind in _BOOLEANS else _value(file, kind)
    return fields


def _value(file: BinaryIO, kind: int) -> Any:
    if kind in _INTEGERS:
        return _signed(file)
    if kind in (_BYTE, *_BOOLEANS):  # a boolean in a list has a byte of its own
        return file.read(1)[0] == 1
    if kind == _DOUBLE:
        return file.read(8)
    if kind == _BINARY:
        return file.read(_unsigned(file))
    if kind in _LISTS:
        header = file.read(1)[0]
        length = header >> 4 if header >> 4 < 15 else _unsigned(file)
        return [_value(file, header & 15) for _ in range(length)]
    if kind == _STRUCT:
        return _struct(file)
    raise ValueError(f"type {kind} does not occur in Parquet")


def _unsigned(file: BinaryIO) -> int:
    total = shift = 0
    while (byte := file.read(1)[0]) & 128:
        total, shift = total | (byte & 127) << shift, shift + 7
    return total | byte << shift


def _signed(file: BinaryIO) -> int:
    number = _unsigned(file)
    return (number >> 1) ^ -(number & 1)
