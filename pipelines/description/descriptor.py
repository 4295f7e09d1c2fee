"""Descriptor of a release: a Data Package that open-data tools can load.

The descriptor follows Frictionless Data (Data Package 1.0, Table Schema 1.0), with one resource per file and
the types of its columns. Its content comes from the manifest, or is computed from the published files. Two
properties extend the standard: `partition`, the value of the partition column for a record file, and
`partitionedBy`, the field of that column.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.description.record_columns import column_type, folder_value, partition_field
from microguard.pipelines.description.statistics import ColumnStatistics

DESCRIPTOR = "datapackage.json"
MICRODATA = "microdata"

_TYPES: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_integer, "integer"),
    (pa.types.is_floating, "number"),
    (pa.types.is_decimal, "number"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_date, "date"),
    (pa.types.is_timestamp, "datetime"),
    (pa.types.is_time, "time"),
    (pa.types.is_list, "array"),
    (pa.types.is_struct, "object"),
)


def descriptor(
    folder: Path,
    manifest: Mapping[str, Any],
    checksums: Mapping[str, str],
    statistics: Mapping[str, tuple[ColumnStatistics, ...]],
) -> dict[str, Any]:
    """Return the content of `DESCRIPTOR`.

    Parameters
    ----------
    folder : Path
        Folder of the release.
    manifest : mapping
    checksums : mapping of file name to SHA-256
        Checksums of the data files.
    statistics : mapping of folder to statistics
        Statistics of the columns of ``microdata`` or ``table``; files of other folders have none.
    """
    described = {column["name"]: column for column in manifest.get("columns", ())}
    partition = partition_field(manifest)
    record_statistics = {each.name: each for each in statistics.get(MICRODATA, ())}
    package: dict[str, Any] = {
        "profile": "data-package",
        "name": _name(f"{manifest['name']}-{manifest['release_id']}"),
        "id": manifest["release_id"],
        "title": manifest["name"],
        "description": _description(manifest),
        "resources": [
            _resource(folder, name, checksum, described, statistics.get(name.split("/")[0], ()))
            if name.endswith(".parquet")
            else _records_as_csv(folder, manifest, checksum)
            if name == manifest.get("csv", {}).get("file")
            else _exchanged(folder, name, checksum)
            if name.endswith(".csv")
            else _as_text(folder, name, checksum)
            for name, checksum in sorted(checksums.items())
        ],
    }
    if partition is not None:
        files = [each for each in package["resources"] if each["path"].startswith(f"{MICRODATA}/")]
        # Resource names contain numbers, because folder names may differ only in characters that resource
        # names cannot contain.
        for number, each in enumerate(files):
            each["name"] = f"{MICRODATA}-{number:05d}"
            each["partition"] = {partition.name: folder_value(Path(each["path"]))}
        package["partitionedBy"] = _field(
            partition, described[partition.name], record_statistics[partition.name]
        )
    return package


def _description(manifest: Mapping[str, Any]) -> str:
    guarantee = manifest["guarantee"]
    if isinstance(guarantee, str):
        return " ".join([guarantee, *manifest["limits"]])
    if "k" not in guarantee:
        return " ".join([guarantee["statement"], *manifest["limits"]])
    promise = f"Protected microdata, k-anonymous with k = {guarantee['k']}; k counts {guarantee['unit']}s."
    return " ".join([promise, *manifest["limits"]])


def _resource(
    folder: Path,
    name: str,
    checksum: str,
    described: Mapping[str, Mapping[str, Any]],
    statistics: tuple[ColumnStatistics, ...],
) -> dict[str, Any]:
    counted = {each.name: each for each in statistics}
    return {
        "profile": "data-resource",
        "name": _name(name.removesuffix(".parquet")),
        "path": name,
        "format": "parquet",
        # no size is stated, because frictionless does not count the bytes of Parquet files
        "mediatype": "application/vnd.apache.parquet",
        "hash": f"sha256:{checksum}",
        "rows": pq.read_metadata(folder / name).num_rows,
        "schema": {
            "fields": [
                _field(entry, described.get(entry.name, {}), counted.get(entry.name))
                for entry in pq.read_schema(folder / name)
            ]
        },
    }


def _records_as_csv(folder: Path, manifest: Mapping[str, Any], checksum: str) -> dict[str, Any]:
    """Return the resource of the CSV file of all records, with the types of the Parquet files."""
    file, columns, partition = manifest["csv"]["file"], manifest["columns"], partition_field(manifest)
    first = min((folder / MICRODATA).rglob("*.parquet"))
    types = {each["name"]: column_type(first, each["name"], partition) for each in columns}
    return {
        "profile": "tabular-data-resource",
        "name": _name(file),
        "path": file,
        "description": manifest["csv"]["reading"],
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "bytes": (folder / file).stat().st_size,
        "hash": f"sha256:{checksum}",
        "rows": manifest["records"],
        "dialect": {"delimiter": ",", "quoteChar": '"', "doubleQuote": True, "lineTerminator": "\r\n"},
        "schema": {
            "fields": [_field(pa.field(each["name"], types[each["name"]]), each, None) for each in columns]
        },
    }


def _exchanged(folder: Path, name: str, checksum: str) -> dict[str, Any]:
    """Return the resource of a table as SDMX-CSV, in which codes are text and the observation is a number."""
    from microguard.pipelines.description.sdmx import OBSERVATION

    with open(folder / name, encoding="utf-8", newline="") as file:
        columns = next(csv.reader(file))
    types = ["number" if each == OBSERVATION else "string" for each in columns]
    return {
        "profile": "tabular-data-resource",
        "name": _name(name),
        "path": name,
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "bytes": (folder / name).stat().st_size,
        "hash": f"sha256:{checksum}",
        "schema": {
            "fields": [{"name": each, "type": kind} for each, kind in zip(columns, types, strict=True)]
        },
    }


def _as_text(folder: Path, name: str, checksum: str) -> dict[str, Any]:
    """Return the resource of a text file in another program's format."""
    return {
        "profile": "data-resource",
        "name": _name(name),
        "path": name,
        "format": Path(name).suffix.removeprefix("."),
        "mediatype": "application/xml" if name.endswith(".xml") else "text/plain",
        "encoding": "utf-8",
        "bytes": (folder / name).stat().st_size,
        "hash": f"sha256:{checksum}",
    }


def _field(entry: pa.Field, described: Mapping[str, Any], counted: ColumnStatistics | None) -> dict[str, Any]:
    field: dict[str, Any] = {"name": entry.name, "type": field_type(entry.type), "arrow": str(entry.type)}
    if described:
        field |= {"role": described["role"], "protected": described["protected"]}
    if counted is not None:
        field["statistics"] = _counted(counted)
        if field["type"] == "string" and counted.frequencies:
            field["constraints"] = {"enum": sorted(value for value, _ in counted.frequencies)}
    return field


def _counted(counted: ColumnStatistics) -> dict[str, Any]:
    """Return the statistics of a column over all record files of the release."""
    entry: dict[str, Any] = {"values": counted.values, "missing": counted.missing}
    if counted.numbers is not None:
        entry |= {
            name: value for name, value in vars(counted.numbers).items() if value is not None and value != ()
        }
    return entry


def field_type(kind: pa.DataType) -> str:
    """Return the Table Schema type of a column."""
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return next((name for is_of, name in _TYPES if is_of(plain)), "any")


def _name(text: str) -> str:
    """Convert a text to a Data Package name, which consists of lower case letters, digits, ``.``, ``_`` and
    ``-``.
    """
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in text.lower())
