"""Audit of a release's CSV file: it must have the bytes that its records have as text, in the same order.

A reader takes several texts for one value: further digits of a number, another time zone, spaces. Each of
them may say more than was published. The audit therefore writes the text of each record itself, and compares
bytes. It shares no code with the writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from microguard.pipelines.audit.partitions import partition_field, record_files

_END = b"\r\n"
#: Bytes of a wrong record after which the rest of the file is not split any more.
_LONGEST = 2**24
#: Records at a time. Days of a batch are quoted if one of them has no year of four digits, so that the audit
#: reads as many at a time as the writer.
_ROWS = 65_536
#: The first and the last day of the years of four digits, from 1970-01-01.
_FIRST, _LAST = -719_528, 2_932_896


def wrong_records(folder: Path, manifest: Mapping[str, Any]) -> int:
    """Count the records of the CSV file whose bytes differ from those of the record at the same position.

    A file with another header counts as one wrong record.
    """
    names = [column["name"].replace('"', '""') for column in manifest["columns"]]
    header = ",".join(f'"{name}"' for name in names).encode() + _END
    with open(folder / manifest["csv"]["file"], "rb") as file:
        if file.read(len(header)) == header and _equal(file, _texts(folder, manifest)):
            return 0
        file.seek(0)
        found = _records(iter(lambda: file.read(2**20), b""))
        expected = _records(chain([header], _texts(folder, manifest)))
        return sum(one != other for one, other in zip_longest(found, expected))


def _equal(file: BinaryIO, texts: Iterable[memoryview]) -> bool:
    """Return whether a file has exactly these bytes from its position to its end."""
    return all(file.read(len(text)) == text for text in texts) and not file.read(1)


def _records(contents: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    """Split bytes into records. A line break within quotes belongs to a field."""
    left, parts, quotes = b"", list[bytes](), 0
    for content in contents:
        if len(left) + sum(map(len, parts)) > _LONGEST:  # no record ends: the rest is one
            break
        *lines, left = (left + bytes(content)).split(_END)
        for line in lines:
            parts.append(line)
            quotes += line.count(b'"')
            if quotes % 2 == 0:
                yield _END.join(parts)
                parts, quotes = [], 0
    if parts or left:
        yield _END.join([*parts, left]) + b" without an end"


def _texts(folder: Path, manifest: Mapping[str, Any]) -> Iterator[memoryview]:
    """Write the records of a release as text, some at a time."""
    types = {column["name"]: column["type"] for column in manifest["columns"]}
    partition = partition_field(manifest)
    for path in record_files(folder):
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(_ROWS):
                columns = []
                for name, kind in types.items():
                    if partition is not None and name == partition.name:
                        value = unquote(path.parent.name.partition("=")[2])
                        columns.append(pa.repeat(pa.scalar(value).cast(partition.type), len(batch)))
                    else:
                        columns.append(_of_seconds(batch[name], kind))
                yield _content([*map(_text, columns)])


def _of_seconds(column: pa.Array, kind: str) -> pa.Array:
    """Return moments and times of whole seconds as such: Parquet files have them as milliseconds."""
    if kind.startswith("timestamp[s"):
        return column.cast(pa.timestamp("s", column.type.tz))
    return column.cast(pa.time32("s")) if kind == "time32[s]" else column


def _content(fields: list[pa.Array]) -> memoryview:
    """Join the fields of records; return the bytes of all lines."""
    kind = pa.large_string()
    *first, last = fields
    last = pc.binary_join_element_wise(last, pa.scalar(_END.decode(), kind), pa.scalar("", kind))
    lines = pc.binary_join_element_wise(*first, last, pa.scalar(",", kind)) if first else last
    _, offsets, content = lines.buffers()
    ends = np.frombuffer(offsets, np.int64)[lines.offset : lines.offset + len(lines) + 1]
    return memoryview(content)[ends[0] : ends[-1]] if content is not None else memoryview(b"")


def _text(column: pa.Array) -> pa.Array:
    """Return the text of each field; a missing value has none."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    quoted = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_timestamp(kind)
    if pa.types.is_date(kind):
        days = column.cast(pa.date32()).cast(pa.int32())
        ends = pc.min_max(days).as_py()
        quoted = any(each is not None and not _FIRST <= each <= _LAST for each in ends.values())
        text = _moments(days.cast(pa.int64()), "D")
    elif pa.types.is_timestamp(kind):
        text = _moments(column.cast(pa.int64()), kind.unit)
        if kind.tz is not None:
            text = pc.binary_join_element_wise(text, "Z", "")
    else:
        text = column.cast(pa.string()) if not quoted else column
    text = text.cast(pa.large_string())
    if quoted:
        mark = pa.scalar('"', pa.large_string())
        text = pc.replace_substring(text, '"', '""')
        text = pc.binary_join_element_wise(mark, text, mark, pa.scalar("", pa.large_string()))
    return text.fill_null("")


def _moments(numbers: pa.Array, unit: str) -> pa.Array:
    """Return days or moments since 1970 as ISO 8601 has them, of any year."""
    known = numbers.fill_null(0).to_numpy(zero_copy_only=False).view(f"datetime64[{unit}]")
    text = pa.array(np.datetime_as_string(known), pa.string(), mask=numbers.is_null().to_numpy(False))
    # numpy counts the sign among the four digits of a year
    return pc.replace_substring_regex(text, "^-([0-9]{3})-", "-0\\1-")
