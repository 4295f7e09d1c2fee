"""Partition columns derived from folder names (`year=2026/region=3/part-0.parquet`), as in Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

NULL = "__HIVE_DEFAULT_PARTITION__"


def hive_partitions(
    folder: Path, files: Sequence[Path]
) -> tuple[pa.Schema, Mapping[Path, Mapping[str, str | None]]]:
    """Return the partition columns of the files below a folder, and each file's values of them.

    Returns
    -------
    pyarrow.Schema
        Columns in the order of the path, of type int64, float64 or text. Empty if the files have different
        partition columns.
    mapping of Path to mapping of str to str or None
        Values as text, None for a missing value.
    """
    values: dict[Path, dict[str, str | None]] = {}
    for file in files:
        parts = [part.split("=", 1) for part in file.relative_to(folder).parts[:-1]]
        if any(len(part) != 2 or not part[0] for part in parts):
            return pa.schema([]), {}
        values[file] = {name: None if text == NULL else unquote(text) for name, text in parts}
    names = list(values[files[0]])
    if any(list(each) != names for each in values.values()):
        return pa.schema([]), {}
    return pa.schema([(name, _type([each[name] for each in values.values()])) for name in names]), values


def constants(schema: pa.Schema, values: Mapping[str, str | None], records: int) -> list[pa.Array]:
    """Return the partition columns of one file as constant arrays of `records` values."""
    first = pa.nulls(records, pa.int32()).fill_null(0)
    return [pa.array([values[entry.name]], pa.string()).cast(entry.type).take(first) for entry in schema]


def _type(texts: Sequence[str | None]) -> pa.DataType:
    present = [text for text in texts if text is not None]
    if present and all(re.fullmatch(r"[+-]?[0-9]{1,18}", text) for text in present):
        return pa.int64()
    if present and all(re.fullmatch(r"[+-]?[0-9]+\.[0-9]+", text) for text in present):
        return pa.float64()
    return pa.string()
