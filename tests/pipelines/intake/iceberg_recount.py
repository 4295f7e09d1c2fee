"""Recount snapshots of Iceberg tables without pyiceberg: polars reads the manifests, DuckDB the files."""

import json
from pathlib import Path

import duckdb
import polars as pl

# constants of the Iceberg specification: content of a file, status of an entry
_DATA, _POSITION_DELETES, _DELETED = 0, 1, 2
_TYPES = {"int": "INTEGER", "string": "VARCHAR", "double": "DOUBLE"}


def recount_iceberg(metadata_file: Path, snapshot_id: int, with_deletes: bool = True) -> list[tuple]:
    """Return the records of one snapshot, in the order of the columns of its schema, sorted.

    Columns are found by field id, and records are deleted by file path and position.

    Parameters
    ----------
    with_deletes : bool
        False ignores delete files, as a reader of the data files does: a control.
    """
    metadata = json.loads(metadata_file.read_text())
    (snapshot,) = (each for each in metadata["snapshots"] if each["snapshot-id"] == snapshot_id)
    (schema,) = (each for each in metadata["schemas"] if each["schema-id"] == snapshot["schema-id"])
    manifests = pl.read_avro(_local(snapshot["manifest-list"])).get_column("manifest_path")
    entries = [entry for each in manifests for entry in pl.read_avro(_local(each)).to_dicts()]
    files = [entry["data_file"] for entry in entries if entry["status"] != _DELETED]
    data, deletes = (
        [_local(each["file_path"]) for each in files if each["content"] == content]
        for content in (_DATA, _POSITION_DELETES)
    )
    # the table has no equality deletes, which this code does not recount
    assert len(data) + len(deletes) == len(files)
    fields = ", ".join(
        f"{each['id']}: {{name: '{each['name']}', type: '{_TYPES[each['type']]}', default_value: NULL}}"
        for each in schema["fields"]
    )
    records = f"read_parquet({data}, schema = MAP {{{fields}}}, filename = true, file_row_number = true)"
    columns = ", ".join(each["name"] for each in schema["fields"])
    if not (deletes and with_deletes):
        return duckdb.sql(f"SELECT {columns} FROM {records} ORDER BY ALL").fetchall()
    return duckdb.sql(
        f"""SELECT {columns} FROM {records} AS record
        ANTI JOIN read_parquet({deletes}) AS deleted ON record.file_row_number = deleted.pos
        AND record.filename = replace(deleted.file_path, 'file://', '') ORDER BY ALL"""
    ).fetchall()


def _local(address: str) -> str:
    return address.removeprefix("file://")
