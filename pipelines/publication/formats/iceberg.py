"""The Iceberg table of a public area: the release's own files, registered; no file is copied or rewritten.

Of a night of a register only what changed is written, to ``data``: files in which nothing changed stay.

The table lies at ``<path>/iceberg`` as catalogues of the file system lay it out (Iceberg specification, "File
System Tables"): ``metadata/vN.metadata.json``, and ``version-hint.text``, which names the newest N and is
replaced in one step. One snapshot makes a release the newest state, and carries its id.
"""

from __future__ import annotations

import logging
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.engine.files import sync_folder, sync_tree, write_atomically
from microguard.pipelines.publication.formats.steps import changes, not_yet_committed, released_files, step
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io import load_file_io
from pyiceberg.io.pyarrow import (
    UnsupportedPyArrowTypeException,
    parquet_file_to_data_file,
    pyarrow_to_schema,
)
from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableResponse, StaticTable, Table, TableProperties
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.name_mapping import MappedField, NameMapping
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata
from pyiceberg.types import NestedField

FOLDER = "iceberg"
PROPERTY = "release_id"
HINT = "version-hint.text"
METADATA, DATA = "metadata", "data"

# It says of every column with categories that Iceberg has none; the values of such a column read as they are.
logging.getLogger("pyiceberg").addHandler(logging.NullHandler())


def not_carried(schema: pa.Schema) -> list[str]:
    """Columns that an Iceberg table has no type for, or whose name engines cannot tell from another's."""
    names = [name.lower() for name in schema.names]
    return [entry.name for entry in schema if names.count(entry.name.lower()) > 1 or _foreign(entry)]


def commit(public: Path, release_id: str) -> None:
    """Make a release the newest state; does nothing where its snapshot is there already."""
    history, folder = committed(public), public / FOLDER
    if release_id not in history:
        table = _table(folder) if _is_there(folder) else None
        for each in not_yet_committed(public, release_id, history):
            table = _commit(table, public, each)
        assert table is not None
        _publish(folder, table)


def committed(public: Path) -> list[str]:
    """Ids of the releases in the table's history, oldest first."""
    folder = public / FOLDER
    return _history(_table(folder)) if _is_there(folder) else []


def forget(public: Path, release_id: str) -> None:
    """Begin the table anew without a release, so that no snapshot of it can be read.

    Readers meet the table as it was, or as it is then.
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
    """A catalogue that is a folder: each commit is the metadata file of the next number."""

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Write the next metadata; readers do not see it before the hint names it."""
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


def _history(table: Table) -> list[str]:
    snapshots = sorted(table.snapshots(), key=lambda each: each.sequence_number or 0)
    named = [each.summary[PROPERTY] for each in snapshots if each.summary and PROPERTY in each.summary]
    return list(dict.fromkeys(str(name) for name in named))


def _number(metadata: Path) -> int:
    """N of ``vN.metadata.json``."""
    return int(metadata.name.removeprefix("v").partition(".")[0])


def _table(folder: Path) -> Table:
    """The newest state."""
    read = StaticTable.from_metadata(str(folder))
    return _with_metadata(folder, read.metadata, read.metadata_location)


def _new_table(folder: Path, schema: Schema) -> Table:
    """A table without snapshots; its metadata is not written before the first commit."""
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
    """Whether the folder holds a table that readers can see."""
    return (folder / METADATA / HINT).is_file()


def _publish(folder: Path, table: Table) -> None:
    """Let readers see the state of the table, in one step."""
    sync_tree(folder)
    write_atomically(folder / METADATA / HINT, str(_number(Path(table.metadata_location))))


def _remove_what_no_snapshot_names(folder: Path) -> None:
    """Remove what was there before the table was begun anew, and what killed runs left."""
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


def _schema(file: str) -> Schema:
    """The columns of a file; each may be empty, so that a later release may lack it."""
    schema = pq.read_schema(file)
    fields = pyarrow_to_schema(schema, name_mapping=_numbered(schema.names)).fields
    return Schema(
        *[NestedField(each.field_id, each.name, each.field_type, required=False) for each in fields]
    )


def _numbered(names: Sequence[str]) -> NameMapping:
    """Iceberg tells columns apart by numbers, which the files do not carry."""
    fields = [{"field-id": number, "names": [name]} for number, name in enumerate(names, start=1)]
    return NameMapping([MappedField.model_validate(field) for field in fields])


def _commit(table: Table | None, public: Path, release_id: str) -> Table:
    """The table with a release as its newest state, which readers do not see yet."""
    released, folder = released_files(public, release_id), public / FOLDER
    if table is None:
        table = _new_table(folder, _schema(released[0]))
    history = _history(table)
    how = step(public, release_id, history[-1] if history else None)
    before = {task.file.file_path: task.file for task in table.scan().plan_files()}
    leaving, arriving = list(before), released
    if how == "add":
        leaving = []
    elif how == "change":
        changed = changes(list(before), released, folder.resolve() / DATA, release_id)
        leaving, arriving = list(changed.leaving), [str(path) for path in changed.arriving]
    _replace(table, [before[path] for path in leaving], arriving, _schema(released[0]), release_id)
    return table


def _replace(
    table: Table, leaving: Sequence[DataFile], arriving: Sequence[str], schema: Schema, release_id: str
) -> None:
    """Take files out of a table and register others, under the columns that they have, in one snapshot."""
    of_files = {field.name: field.field_type for field in schema.fields}
    standing = {field.name: field.field_type for field in table.schema().fields}
    with table.transaction() as transaction:
        if of_files != standing:
            with transaction.update_schema(allow_incompatible_changes=True) as columns:
                for name in standing:
                    if standing[name] != of_files.get(name):
                        columns.delete_column(name)
                for name, kind in of_files.items():
                    if standing.get(name) != kind:
                        columns.add_column(name, kind)
        with transaction.update_snapshot(snapshot_properties={PROPERTY: release_id}).overwrite() as snapshot:
            if leaving:
                snapshot.delete_by_predicate(AlwaysTrue())  # manifests of any file may name one of these
            for file in leaving:
                snapshot.delete_data_file(file)
            for path in arriving:
                snapshot.append_data_file(
                    parquet_file_to_data_file(table.io, transaction.table_metadata, path)
                )


def _foreign(column: pa.Field) -> bool:
    """Whether the type of a column is none of Iceberg's; half floats and unsigned integers become others."""
    if pa.types.is_unsigned_integer(column.type) or pa.types.is_float16(column.type):
        return True
    try:
        pyarrow_to_schema(pa.schema([column]), name_mapping=_numbered([column.name]))
    except (UnsupportedPyArrowTypeException, ValueError):
        return True
    return False
