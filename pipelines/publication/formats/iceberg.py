"""The Iceberg table of a public area: the release's own files, registered; no file is copied or rewritten.

The table lies at ``<path>/iceberg`` as catalogues of the file system lay it out (Iceberg specification, "File
System Tables"): ``metadata/vN.metadata.json``, and ``version-hint.text``, which names the newest N and is
replaced in one step. One transaction makes a release the newest state; its snapshots carry the release id.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io import load_file_io
from pyiceberg.io.pyarrow import UnsupportedPyArrowTypeException, pyarrow_to_schema
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableResponse, StaticTable, Table, TableProperties
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.name_mapping import MappedField, NameMapping
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata
from pyiceberg.types import NestedField

from pipelines.engine.files import sync_folder, sync_tree, write_atomically

FOLDER = "iceberg"
PROPERTY = "release_id"
HINT = "version-hint.text"

# It says of every column with categories that Iceberg has none; the values of such a column read as they are.
logging.getLogger("pyiceberg").addHandler(logging.NullHandler())


def not_carried(schema: pa.Schema) -> list[str]:
    """Columns that an Iceberg table has no type for, or whose name engines cannot tell from another's."""
    names = [name.lower() for name in schema.names]
    return [entry.name for entry in schema if names.count(entry.name.lower()) > 1 or _foreign(entry)]


def commit(public: Path, release_id: str) -> None:
    """Make a release the newest state; does nothing where its snapshot is there already."""
    if release_id in committed(public):
        return
    folder = public / FOLDER
    table = (
        _table(folder) if _is_there(folder) else _new_table(folder, _schema(_files(public, release_id)[0]))
    )
    _overwrite(table, _files(public, release_id), release_id)
    _publish(folder, table)


def committed(public: Path) -> list[str]:
    """Ids of the releases in the table's history, oldest first."""
    folder = public / FOLDER
    if not _is_there(folder):
        return []
    snapshots = sorted(_table(folder).snapshots(), key=lambda each: each.sequence_number or 0)
    named = [each.summary[PROPERTY] for each in snapshots if each.summary and PROPERTY in each.summary]
    return list(dict.fromkeys(str(name) for name in named))


def forget(public: Path, release_id: str) -> None:
    """Begin the table anew without a release, so that no snapshot of it can be read.

    Readers meet the table as it was, or as it is then.
    """
    history, folder = committed(public), public / FOLDER
    if release_id not in history:
        return
    before = list((folder / "metadata").iterdir())
    standing = [each for each in history if each != release_id and (public / each).is_dir()]
    table: Table | None = None
    for each in standing:
        table = table or _new_table(folder, _schema(_files(public, each)[0]))
        _overwrite(table, _files(public, each), each)
    if table is None:
        (folder / "metadata" / HINT).unlink()
    else:
        _publish(folder, table)
    for path in before:
        if path.name != HINT:
            path.unlink()
    sync_folder(folder / "metadata")
    if table is None:
        (folder / "metadata").rmdir()
        folder.rmdir()


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
        folder = Path(self.name) / "metadata"
        past = [table.metadata_location] if table.metadata_location else folder.glob("v*.metadata.json")
        number = 1 + max((_number(Path(each)) for each in past), default=0)
        location = folder / f"v{number}.metadata.json"
        write_atomically(location, metadata.model_dump_json())
        answer = {"metadata": metadata, "metadata-location": str(location)}
        return CommitTableResponse.model_validate(answer)


def _number(metadata: Path) -> int:
    """N of ``vN.metadata.json``."""
    return int(metadata.name.removeprefix("v").partition(".")[0])


def _table(folder: Path) -> Table:
    """The newest state."""
    read = StaticTable.from_metadata(str(folder))
    return _with_metadata(folder, read.metadata, read.metadata_location)


def _new_table(folder: Path, schema: Schema) -> Table:
    """A table without snapshots; its metadata is not written before the first commit."""
    (folder / "metadata").mkdir(parents=True, exist_ok=True)
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
    return (folder / "metadata" / HINT).is_file()


def _publish(folder: Path, table: Table) -> None:
    """Let readers see the state of the table, in one step."""
    sync_tree(folder / "metadata")
    write_atomically(folder / "metadata" / HINT, str(_number(Path(table.metadata_location))))


def _files(public: Path, release_id: str) -> list[str]:
    return [str(path.resolve()) for path in sorted((public / release_id / "microdata").glob("*.parquet"))]


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


def _overwrite(table: Table, files: list[str], release_id: str) -> None:
    """Let the table hold these files and no other, under the columns that they have."""
    of_files = {field.name: field.field_type for field in _schema(files[0]).fields}
    standing = {field.name: field.field_type for field in table.schema().fields}
    with table.transaction() as transaction:
        if table.current_snapshot() is not None:
            transaction.delete(AlwaysTrue(), snapshot_properties={PROPERTY: release_id})
        if of_files != standing:
            with transaction.update_schema(allow_incompatible_changes=True) as columns:
                for name in standing:
                    if standing[name] != of_files.get(name):
                        columns.delete_column(name)
                for name, kind in of_files.items():
                    if standing.get(name) != kind:
                        columns.add_column(name, kind)
        transaction.add_files(files, snapshot_properties={PROPERTY: release_id})


def _foreign(column: pa.Field) -> bool:
    """Whether the type of a column is none of Iceberg's; half floats and unsigned integers become others."""
    if pa.types.is_unsigned_integer(column.type) or pa.types.is_float16(column.type):
        return True
    try:
        pyarrow_to_schema(pa.schema([column]), name_mapping=_numbered([column.name]))
    except (UnsupportedPyArrowTypeException, ValueError):
        return True
    return False
