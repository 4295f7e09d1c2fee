"""Types of Parquet columns: the types that a file declares, and the types that are published."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

#: Keys in the footer of a file under which Arrow and Spark store their own types.
_OF_ARROW, _OF_SPARK = b"ARROW:schema", b"org.apache.spark.sql.parquet.row.metadata"
_UNITS = ("s", "ms", "us")


class SchemaConflict(Exception):
    """Raised if the schemas of files cannot be merged; its text continues a sentence that begins with the
    input.
    """


@dataclass(frozen=True)
class FileTypes:
    """Types of the columns of one file.

    Attributes
    ----------
    types : dict of column to DataType
        Types that the release publishes if this is the only file.
    declared : dict of column to str
        Types that the writer of the file declared.
    """

    types: dict[str, pa.DataType]
    declared: dict[str, str]


def file_types(path: Path, names: Iterable[str]) -> FileTypes:
    """Read the types of columns from the footer of a file; columns that the file does not contain are
    omitted.
    """
    with pq.ParquetFile(path) as file:
        schema, metadata, physical = file.schema_arrow, file.metadata.metadata or {}, physical_types(file)
    written = _arrow_types(metadata)
    types, declared = {}, {}
    for name in names:
        if name not in schema.names:
            continue
        types[name], declared[name] = schema.field(name).type, str(written.get(name, schema.field(name).type))
        if physical.get(name) == "INT96":
            # INT96 declares neither unit nor time zone; Spark stores UTC instants in it and reads
            # microseconds
            zone = "UTC" if _OF_SPARK in metadata else getattr(written.get(name), "tz", None)
            types[name], declared[name] = pa.timestamp("us", zone), "INT96"
    return FileTypes(types, declared)


def joint_types(files: Sequence[FileTypes]) -> dict[str, pa.DataType]:
    """Return for each column one type that can represent its values in all files.

    Raises
    ------
    SchemaConflict
        With every column that a file lacks, or whose types have no common type.
    """
    joint, faults = {}, []
    for name in dict.fromkeys(name for file in files for name in file.types):
        kinds = [file.types[name] for file in files if name in file.types]
        kind = _joint(kinds)
        if len(kinds) < len(files):
            faults.append(f"{name} is missing in {len(files) - len(kinds)} of {len(files)} files")
        elif kind is None:
            faults.append(f"{name} is {' and '.join(dict.fromkeys(map(str, kinds)))}")
        else:
            joint[name] = kind
    if faults:
        raise SchemaConflict(
            f"has files that differ in columns or types: {'; '.join(faults)}. Write all files with one "
            "schema."
        )
    return joint


def declared_otherwise(files: Sequence[FileTypes], schema: pa.Schema) -> dict[str, str]:
    """Return the types that writers declared, for those columns that are published with another type."""
    differing = {}
    for entry in schema:
        declared = dict.fromkeys(file.declared[entry.name] for file in files if entry.name in file.declared)
        if declared and list(declared) != [str(entry.type)]:
            differing[entry.name] = " or ".join(sorted(declared))
    return differing


def physical_types(file: pq.ParquetFile) -> dict[str, str]:
    """Return the Parquet physical type (such as INT64) of each column that is not nested."""
    columns = [file.schema.column(position) for position in range(len(file.schema))]
    return {column.path: column.physical_type for column in columns}


def value_type(kind: pa.DataType) -> pa.DataType:
    """Return the value type of a dictionary type; return any other type unchanged."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_text(kind: pa.DataType) -> bool:
    """Return whether values are text, in any of Arrow's memory layouts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_binary(kind: pa.DataType) -> bool:
    """Return whether values are bytes, in any of Arrow's memory layouts."""
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _arrow_types(metadata: dict[bytes, bytes]) -> dict[str, pa.DataType]:
    """Return the Arrow types stored in the footer of a file; empty if there are none or they are
    unreadable.
    """
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(metadata[_OF_ARROW])))
    except (KeyError, ValueError, pa.ArrowException):
        return {}
    return {entry.name: entry.type for entry in schema}


def _joint(kinds: list[pa.DataType]) -> pa.DataType | None:
    """Return the type that can represent the values of all these types; None if there is no such type."""
    distinct = list(dict.fromkeys(kinds))
    values = list(dict.fromkeys(map(value_type, kinds)))
    coded = all(map(pa.types.is_dictionary, kinds))
    if len(distinct) == 1 and not (coded and len(kinds) > 1):
        return distinct[0]
    if len(values) == 1:
        value = values[0]
    elif all(map(is_text, values)):
        value = pa.large_string()
    elif all(map(is_binary, values)) and not any(map(pa.types.is_fixed_size_binary, values)):
        value = pa.large_binary()
    elif all(pa.types.is_timestamp(each) and each.unit in _UNITS for each in values):
        zones = {each.tz for each in values}
        return pa.timestamp("us", *zones) if len(zones) == 1 else None
    else:
        return None
    if not coded:
        return value
    # all files together may have more categories than an 8-bit or 16-bit code can number
    codes = kinds[0].index_type if len(distinct) == 1 and kinds[0].index_type.bit_width >= 32 else pa.int32()
    return pa.dictionary(codes, value, all(kind.ordered for kind in kinds))
