"""Audit of a release's Iceberg table: its snapshot must contain exactly the records of the published
files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from microguard.pipelines.audit.table_records import (
    State,
    TableAudit,
    audit_states,
    count_records,
    footer_faults,
    later_faults,
    missing_files,
    multiset_hash,
    record_files_of_table,
)
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.manifest import DataFile
from pyiceberg.table import StaticTable, Table, TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.types import DateType, TimestampType, TimestamptzType

FOLDER = "iceberg"
PROPERTY = "release_id"


def audit(
    public: Path,
    manifest: dict[str, Any],
    ledger: Mapping[str, bool] | None = None,
    *,
    of_releases: bool = True,
) -> TableAudit:
    """Return the faults of a release's Iceberg snapshot, and what could not be compared.

    Parameters
    ----------
    public : Path
        The public area, with the table at ``iceberg`` and the release in the folder of its id.
    manifest : dict
        Manifest of the release.
    ledger : mapping of str to bool, optional
        Releases of the ledger, and whether they stand, if it is near.
    of_releases : bool
        Whether the snapshots of all other releases are compared with their files, too.
    """
    path, release_id = public / FOLDER, str(manifest["release_id"])
    if not (path / "metadata" / "version-hint.text").is_file():
        return TableAudit(["the folder of the release has no Iceberg table next to it"])
    try:
        table = StaticTable.from_metadata(str(path))
    except (OSError, ValueError):
        return TableAudit(["the metadata of the Iceberg table cannot be read: they are missing or damaged"])
    if any("://" in each.manifest_list.removeprefix("file://") for each in table.snapshots()):
        return TableAudit(["a snapshot of the Iceberg table has its manifests in another place"])
    if _has_texts_or_defaults(table):
        return TableAudit(["a column of the Iceberg table has a text or a default value of another writer"])
    snapshots = [each for each in table.snapshots() if _release(each) == release_id]
    if not snapshots:
        return TableAudit(["the Iceberg table has no snapshot of this release"])
    newest = max(snapshots, key=lambda each: each.sequence_number or 0)
    try:
        found = _faults_of_snapshot(public, manifest, table, newest.snapshot_id)
    except OSError:
        found = ["manifests of the snapshot of this release are missing in the Iceberg table"]
    found = found or _later(public, table, newest.snapshot_id)
    if found:
        return TableAudit(found)
    compared = [*(_files(table, newest.snapshot_id) or ()), *(_files(table) or ())]
    seen = {newest.snapshot_id, getattr(table.current_snapshot(), "snapshot_id", None)}
    states = [
        State(_release(each), _files(table, each.snapshot_id))
        for each in table.snapshots()
        if each.snapshot_id not in seen
    ]
    if not of_releases and all(each.release_id for each in states):
        return TableAudit()
    names = set(map(_release, table.snapshots())) - {""}
    return audit_states(public, names, compared, states, "Iceberg", ledger=ledger, of_releases=of_releases)


def _release(snapshot: Snapshot) -> str:
    """Return the release that a snapshot names; "" if it names none."""
    return str(snapshot.summary.get(PROPERTY) or "") if snapshot.summary else ""


def _has_texts_or_defaults(table: StaticTable) -> bool:
    """Return whether a column has a description, or a value for files that lack the column."""
    fields = [field for schema in table.metadata.schemas for field in schema.fields]
    return any(
        each.doc or each.initial_default is not None or each.write_default is not None for each in fields
    )


def _faults_of_snapshot(
    public: Path, manifest: dict[str, Any], table: StaticTable, snapshot_id: int
) -> list[str]:
    scan = table.scan(snapshot_id=snapshot_id)
    if {field.name for field in scan.projection().fields} != {each["name"] for each in manifest["columns"]}:
        return ["the columns of the Iceberg table differ from those of the release"]
    tasks, released = list(scan.plan_files()), record_files_of_table(public, manifest)
    files = sorted(task.file.file_path for task in tasks)
    missing = missing_files(files, "Iceberg", "this release")
    if missing:
        return missing
    equal = files == released or (bool(files) and multiset_hash(files) == multiset_hash(released))
    if not equal or any(task.delete_files for task in tasks):
        return ["the records of the Iceberg table differ from those of the published files"]
    if sum(task.file.record_count for task in tasks) != count_records(released):
        return ["the Iceberg table counts other records than the release"]
    if any(misstated(table, snapshot_id, task.file) for task in tasks):
        return ["a manifest of the Iceberg table states numbers or ends that are not those of the footers"]
    return footer_faults(files, released, "Iceberg")


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
    far = False  # whether the file has dates or times that Python, and so pyiceberg, cannot represent
    try:
        try:
            footers = [parquet_file_to_data_file(table.io, each, file.file_path) for each in states]
        except (OverflowError, ValueError):
            far, states = True, [_without_ends(each) for each in states]
            footers = [parquet_file_to_data_file(table.io, each, file.file_path) for each in states]
    except (OverflowError, ValueError):  # another writer gave the table columns or properties of no file
        return True
    for key in ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds"):
        permitted = [getattr(footer, key) or {} for footer in footers]
        for column, value in (getattr(file, key) or {}).items():
            found = [each[column] for each in permitted if column in each]
            if (found or (far and key in ("lower_bounds", "upper_bounds"))) and value not in found:
                return True
    return False


def _without_ends(state: TableMetadata) -> TableMetadata:
    """Return the metadata of a table with which only the numbers of dates and times are stated."""
    moments = (DateType, TimestampType, TimestamptzType)
    names = [each.name for each in state.schema().fields if isinstance(each.field_type, moments)]
    counts = {f"{TableProperties.METRICS_MODE_COLUMN_CONF_PREFIX}.{name}": "counts" for name in names}
    return state.model_copy(update={"properties": state.properties | counts})


def _files(table: StaticTable, snapshot_id: int | None = None) -> list[str] | None:
    """Return the files of a snapshot, by default the current one; None if its manifests are missing."""
    try:
        tasks = table.scan(snapshot_id=snapshot_id).plan_files()
        return [task.file.file_path.removeprefix("file://") for task in tasks]
    except FileNotFoundError:
        return None


def _later(public: Path, table: StaticTable, audited: int) -> list[str]:
    """Return a fault if readers currently see another snapshot than the audited one."""
    current = table.current_snapshot()
    if current is not None and current.snapshot_id == audited:
        return []
    last = max(filter(_release, table.snapshots()), key=lambda each: each.sequence_number or 0)
    try:
        tasks = list(table.scan().plan_files())
    except OSError:
        return ["manifests of the newest state of the Iceberg table are missing"]
    files = [] if any(task.delete_files for task in tasks) else [task.file.file_path for task in tasks]
    columns = [field.name for field in table.schema().fields]
    return later_faults(public, _release(last), columns, files, "Iceberg")
