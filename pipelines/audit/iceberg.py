"""Audit of a release's Iceberg table: its snapshot must contain exactly the records of the published
files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from microguard.pipelines.audit.table_records import (
    count_records,
    earlier_faults,
    footer_faults,
    later_faults,
    multiset_hash,
    record_files_of_table,
)
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.manifest import DataFile
from pyiceberg.table import StaticTable, Table
from pyiceberg.table.snapshots import Snapshot

FOLDER = "iceberg"
PROPERTY = "release_id"


def faults(public: Path, manifest: dict[str, Any]) -> list[str]:
    """Return the faults of a release's Iceberg snapshot, one sentence each.

    Parameters
    ----------
    public : Path
        The public area, with the table at ``iceberg`` and the release in the folder of its id.
    manifest : dict
        Manifest of the release.
    """
    path, release_id = public / FOLDER, str(manifest["release_id"])
    if not (path / "metadata" / "version-hint.text").is_file():
        return ["the folder of the release has no Iceberg table next to it"]
    table = StaticTable.from_metadata(str(path))
    snapshots = [
        each for each in table.snapshots() if each.summary and each.summary.get(PROPERTY) == release_id
    ]
    if not snapshots:
        return ["the Iceberg table has no snapshot of this release"]
    newest = max(snapshots, key=lambda each: each.sequence_number or 0)
    scan = table.scan(snapshot_id=newest.snapshot_id)
    if {field.name for field in scan.projection().fields} != {each["name"] for each in manifest["columns"]}:
        return ["the columns of the Iceberg table differ from those of the release"]
    tasks, released = list(scan.plan_files()), record_files_of_table(public, manifest)
    table_files = sorted(task.file.file_path for task in tasks)
    equal = table_files == released or (
        bool(table_files) and multiset_hash(table_files) == multiset_hash(released)
    )
    if not equal or any(task.delete_files for task in tasks):
        return ["the records of the Iceberg table differ from those of the published files"]
    if sum(task.file.record_count for task in tasks) != count_records(released):
        return ["the Iceberg table counts other records than the release"]
    if any(misstated(table, newest.snapshot_id, task.file) for task in tasks):
        return ["a manifest of the Iceberg table states numbers or ends that are not those of the footers"]
    discrepancies = footer_faults(table_files, released, "Iceberg")
    if discrepancies:
        return discrepancies
    return _later(public, table, newest.snapshot_id) or _earlier(table)


def misstated(table: Table, snapshot_id: int, file: DataFile) -> bool:
    """Return whether a snapshot states another number, minimum or maximum of a column than a footer does.

    What is stated, and how short, depends on properties, which another writer may have changed since: the
    present ones and those of a new table are tried.
    """
    snapshot = table.snapshot_by_id(snapshot_id)
    schema_id = None if snapshot is None else snapshot.schema_id
    state = table.metadata
    if schema_id is not None:
        state = state.model_copy(update={"current_schema_id": schema_id})
    states = [state, state.model_copy(update={"properties": {}})] if state.properties else [state]
    try:
        footers = [parquet_file_to_data_file(table.io, each, file.file_path) for each in states]
    except (OverflowError, ValueError):  # another writer gave the table columns or properties of no file
        return True
    for key in ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds"):
        permitted = [getattr(footer, key) or {} for footer in footers]
        for column, value in (getattr(file, key) or {}).items():
            found = [each[column] for each in permitted if column in each]
            if found and value not in found:
                return True
    return False


def _earlier(table: StaticTable) -> list[str]:
    """Return a fault if readers can load a snapshot with records of no release."""
    named: dict[str, Snapshot] = {}
    for each in sorted(table.snapshots(), key=lambda each: each.sequence_number or 0):
        if each.summary and each.summary.get(PROPERTY):
            named[str(each.summary[PROPERTY])] = each
    committed = {each.snapshot_id for each in named.values()}
    others = [each.snapshot_id for each in table.snapshots() if each.snapshot_id not in committed]
    return earlier_faults(
        (_files(table, snapshot) for snapshot in others),
        [_files(table, snapshot) for snapshot in committed] if others else [],
        "Iceberg",
    )


def _files(table: StaticTable, snapshot_id: int) -> list[str]:
    tasks = table.scan(snapshot_id=snapshot_id).plan_files()
    return [task.file.file_path.removeprefix("file://") for task in tasks]


def _later(public: Path, table: StaticTable, audited: int) -> list[str]:
    """Return a fault if readers currently see another snapshot than the audited one."""
    current = table.current_snapshot()
    if current is not None and current.snapshot_id == audited:
        return []
    named = [each for each in table.snapshots() if each.summary and each.summary.get(PROPERTY)]
    last = max(named, key=lambda each: each.sequence_number or 0)
    tasks = list(table.scan().plan_files())
    files = [] if any(task.delete_files for task in tasks) else [task.file.file_path for task in tasks]
    assert last.summary is not None
    columns = [field.name for field in table.schema().fields]
    return later_faults(public, str(last.summary[PROPERTY]), columns, files, "Iceberg")
