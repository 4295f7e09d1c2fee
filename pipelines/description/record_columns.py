"""Columns of a record file, including the partition column, whose value is stored in the folder name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq


def partition_field(manifest: Mapping[str, Any]) -> pa.Field | None:
    """Return the partition column in the manifest; None if the release is not partitioned."""
    name = manifest.get("partitioned_by")
    types = {column["name"]: column["type"] for column in manifest.get("columns", ())}
    return None if name is None else pa.field(name, pa.type_for_alias(types[name]))


def folder_value(path: Path) -> str:
    """Return the partition value in a record file's folder name: Den Haag for ``region=Den%20Haag``."""
    return unquote(path.parent.name.partition("=")[2])


def column_type(path: Path, name: str, partition: pa.Field | None) -> pa.DataType:
    """Return the type of a column of a record file."""
    if partition is not None and partition.name == name:
        return partition.type
    return pq.read_schema(path).field(name).type


def read_columns(path: Path, names: Sequence[str], partition: pa.Field | None) -> pa.Table:
    """Read the named columns of a record file, including the partition column."""
    inside = [name for name in names if partition is None or name != partition.name]
    with pq.ParquetFile(path) as file:
        table = file.read(columns=inside)
        rows = file.metadata.num_rows
    columns = {name: table[name] for name in inside}
    if partition is not None and partition.name in names:
        value = pa.scalar(folder_value(path)).cast(partition.type)
        columns[partition.name] = pa.chunked_array([pa.repeat(value, rows)])
    return pa.table({name: columns[name] for name in names})
