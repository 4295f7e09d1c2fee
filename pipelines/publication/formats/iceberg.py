"""Iceberg table of a public area: it registers the files of releases; no file is copied or rewritten.

For a release of a register, only the changed records are written, to ``data``; files without changes stay.

The table is at ``<path>/iceberg`` in the layout of file system catalogues (Iceberg specification, "File
System Tables"): ``metadata/vN.metadata.json``, and ``version-hint.text``, which has the newest N and is
replaced atomically. One snapshot makes a release the newest state and stores its id as a property.
"""

from __future__ import annotations

import logging
import shutil
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.engine.files import sync_folder, sync_tree, write_atomically
from microguard.pipelines.publication.formats.steps import changes, not_yet_committed, released_files, step
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.io.pyarrow import (
    UnsupportedPyArrowTypeException,
    parquet_file_to_data_file,
    pyarrow_to_schema,
)
from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableResponse, StaticTable, Table, TableProperties, Transaction
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.name_mapping import MappedField, NameMapping
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import (
    AddSchemaUpdate,
    SetCurrentSchemaUpdate,
    TableRequirement,
    TableUpdate,
    update_table_metadata,
)
from pyiceberg.types import DateType, NestedField, TimestampType, TimestamptzType

FOLDER = "iceberg"
PROPERTY = "release_id"
HINT = "version-hint.text"
METADATA, DATA = "metadata", "data"

# silenced, because the library logs for every such column that Iceberg has no categories, although values are
# read correctly
logging.getLogger("pyiceberg").addHandler(logging.NullHandler())


def not_carried(schema: pa.Schema) -> list[str]:
    """Return the columns whose type Iceberg does not have, or whose names differ only in case."""
    names = [name.lower() for name in schema.names]
    return [entry.name for entry in schema if names.count(entry.name.lower()) > 1 or _foreign(entry)]


def commit(public: Path, release_id: str) -> None:
    """Make a release the newest state, unless the table already has its snapshot."""
    history, folder = committed(public), public / FOLDER
    if release_id not in history:
        table = _table(folder) if _is_there(folder) else None
        for each in not_yet_committed(public, release_id, history):
            table = _commit(table, public, each)
        assert table is not None
        _publish(folder, table)


def committed(public: Path) -> list[str]:
    """Return the ids of the releases in the table's history, oldest first."""
    folder = public / FOLDER
    return releases_of(_table(folder)) if _is_there(folder) else []


def forget(public: Path, release_id: str) -> None:
    """Write the table again without a release, so that no snapshot contains the release.

    Readers see the table either before or after the change.
    """
    history, folder = committed(public), public / FOLDER
    if release_id in history:
        table: Table | None = None
        for each in history:
            if each != release_id and (public / each).is_dir():
                table = _commit(table, public, each)
        if table is None:
            (folder / METADATA / HINT).unlink()
            sync_folder(folder / METADATA)
        else:
            _publish(folder, table)
    if _is_there(folder):
        _remove_what_no_snapshot_names(folder)
    else:
        shutil.rmtree(folder)


class _Folder(NoopCatalog):
    """Catalogue stored in a folder: each commit writes a metadata file with the next number."""

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Write the next metadata file; readers use it once the hint file names it."""
        for requirement in requirements:
            requirement.validate(table.metadata)
        metadata = update_table_metadata(
            table.metadata, updates, metadata_location=table.metadata_location or None
        )
        folder = Path(self.name) / METADATA
        past = [table.metadata_location] if table.metadata_location else folder.glob("v*.metadata.json")
        number = 1 + max((_number(Path(each)) for each in past), default=0)
        location = folder / f"v{number}.metadata.json"
        write_atomically(location, metadata.model_dump_json())
        answer = {"metadata": metadata, "metadata-location": str(location)}
        return CommitTableResponse.model_validate(answer)


def releases_of(table: Table) -> list[str]:
    """Return the ids of the releases that have a snapshot, oldest first."""
    snapshots = sorted(table.snapshots(), key=lambda each: each.sequence_number or 0)
    named = [each.summary[PROPERTY] for each in snapshots if each.summary and PROPERTY in each.summary]
    return list(dict.fromkeys(str(name) for name in named))


def _number(metadata: Path) -> int:
    """Return the number N in ``vN.metadata.json``."""
    return int(metadata.name.removeprefix("v").partition(".")[0])


def _table(folder: Path) -> Table:
    """Read the newest state of the table."""
    read = StaticTable.from_metadata(str(folder))
    return _with_metadata(folder, read.metadata, read.metadata_location)


def _new_table(folder: Path, schema: Schema) -> Table:
    """Return a table without snapshots; its metadata are written by the first commit."""
    (folder / METADATA).mkdir(parents=True, exist_ok=True)
    metadata = new_table_metadata(
        location=str(folder.resolve()),
        schema=schema,
        partition_spec=UNPARTITIONED_PARTITION_SPEC,
        sort_order=UNSORTED_SORT_ORDER,
        properties={TableProperties.DEFAULT_NAME_MAPPING: schema.name_mapping.model_dump_json()},
        table_uuid=uuid.uuid4(),
    )
    return _with_metadata(folder, metadata, "")


def _with_metadata(folder: Path, metadata: TableMetadata, location: str) -> Table:
    return Table(
        identifier=(FOLDER,),
        metadata=metadata,
        metadata_location=location,
        io=load_file_io(location=metadata.location),
        catalog=_Folder(str(folder)),
    )


def _is_there(folder: Path) -> bool:
    """Return whether the folder contains a table that is visible to readers."""
    return (folder / METADATA / HINT).is_file()


def _publish(folder: Path, table: Table) -> None:
    """Make the state of the table visible to readers in one step."""
    sync_tree(folder)
    write_atomically(folder / METADATA / HINT, str(_number(Path(table.metadata_location))))


def _remove_what_no_snapshot_names(folder: Path) -> None:
    """Remove the files that no snapshot refers to, left by rewriting the table and by killed runs."""
    table = _table(folder)
    named = {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}
    for snapshot in table.snapshots():
        named.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(table.io):
            named.add(manifest.manifest_path)
            named |= {entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io)}
    names = {HINT, *(Path(each).name for each in named)}
    for path in [*(folder / METADATA).glob("*"), *(folder / DATA).glob("*")]:
        if path.name not in names:
            path.unlink()
    sync_tree(folder)


def schema_of(schema: pa.Schema) -> Schema:
    """Return the Iceberg schema of a file; all columns are optional, because a later release may not have all
    of them.
    """
    fields = pyarrow_to_schema(schema, name_mapping=_numbered(schema.names)).fields
    return Schema(
        *[NestedField(each.field_id, each.name, each.field_type, required=False) for each in fields]
    )


def _numbered(names: Sequence[str]) -> NameMapping:
    """Return field ids for columns, because Iceberg identifies columns by id and the files have no ids."""
    return _mapping({name: number for number, name in enumerate(names, start=1)})


def _mapping(numbers: Mapping[str, int]) -> NameMapping:
    fields = [{"field-id": number, "names": [name]} for name, number in numbers.items()]
    return NameMapping([MappedField.model_validate(field) for field in fields])


def _commit(table: Table | None, public: Path, release_id: str) -> Table:
    """Return the table with a release as its newest state, which is not yet visible to readers."""
    released, folder = released_files(public, release_id), public / FOLDER
    if table is None:
        table = _new_table(folder, schema_of(pq.read_schema(released[0])))
    history = releases_of(table)
    how = step(public, release_id, history[-1] if history else None)
    before = {task.file.file_path: task.file for task in table.scan().plan_files()}
    leaving, arriving = list(before), released
    if how == "add":
        leaving = []
    elif how == "change":
        changed = changes(list(before), released, folder.resolve() / DATA, release_id)
        leaving, arriving = list(changed.leaving), [str(path) for path in changed.arriving]
    schema, standing = schema_of(pq.read_schema(released[0])), [before[path] for path in leaving]
    with table.transaction() as transaction:
        replace_files(transaction, table.io, standing, arriving, schema, release_id)
    return table


def replace_files(
    transaction: Transaction,
    io: FileIO,
    leaving: Sequence[DataFile],
    arriving: Sequence[str],
    schema: Schema,
    release_id: str,
    branch: str = MAIN_BRANCH,
) -> int:
    """Remove files from a table and register others in one snapshot; the columns of the new files become the
    schema.

    Returns
    -------
    int
        The id of the snapshot.
    """
    _set_columns(transaction, schema)
    named = {PROPERTY: release_id}
    with transaction.update_snapshot(snapshot_properties=named, branch=branch).overwrite() as snapshot:
        if leaving:
            # any manifest may refer to one of the removed files
            snapshot.delete_by_predicate(AlwaysTrue())
        for file in leaving:
            snapshot.delete_data_file(file)
        for path in arriving:
            snapshot.append_data_file(_data_file(io, transaction.table_metadata, path))
    return snapshot.snapshot_id


def _data_file(io: FileIO, state: TableMetadata, path: str) -> DataFile:
    """Return the entry of a file; without the ends of dates and times that Python cannot represent."""
    try:
        return parquet_file_to_data_file(io, state, path)
    except (OverflowError, ValueError):
        counts = {
            f"{TableProperties.METRICS_MODE_COLUMN_CONF_PREFIX}.{each.name}": "counts"
            for each in state.schema().fields
            if isinstance(each.field_type, DateType | TimestampType | TimestamptzType)
        }
        return parquet_file_to_data_file(
            io, state.model_copy(update={"properties": state.properties | counts}), path
        )


def _set_columns(transaction: Transaction, schema: Schema) -> None:
    """Replace the columns of the table by those of a release.

    The files have no field ids: one mapping of the table assigns an id to each column name. A name keeps its
    id even if its type changes or a release lacks the column. Otherwise earlier snapshots would read missing
    values.
    """
    state = transaction.table_metadata
    numbers = {field.name: field.field_id for each in state.schemas for field in each.fields}
    for name in schema.column_names:
        numbers.setdefault(name, max(numbers.values(), default=0) + 1)
    columns = [
        NestedField(numbers[each.name], each.name, each.field_type, required=False) for each in schema.fields
    ]
    if list(state.schema().fields) == columns:
        return
    transaction.set_properties({TableProperties.DEFAULT_NAME_MAPPING: _mapping(numbers).model_dump_json()})
    known = [each.schema_id for each in state.schemas if list(each.fields) == columns]
    if not known:
        known = [1 + max(each.schema_id for each in state.schemas)]
        transaction._apply((AddSchemaUpdate(schema=Schema(*columns, schema_id=known[0])),))
    transaction._apply((SetCurrentSchemaUpdate.model_validate({"schema-id": known[0]}),))


def _foreign(column: pa.Field) -> bool:
    """Return whether Iceberg does not have the type of a column, or would convert it (half floats,
    unsigned).
    """
    if pa.types.is_unsigned_integer(column.type) or pa.types.is_float16(column.type):
        return True
    try:
        pyarrow_to_schema(pa.schema([column]), name_mapping=_numbered([column.name]))
    except (UnsupportedPyArrowTypeException, ValueError):
        return True
    return False
