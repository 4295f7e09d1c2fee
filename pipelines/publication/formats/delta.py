"""Delta table of a public area: it registers the files of releases and never contains a withdrawn release.

Delta readers accept only files inside the folder of the table. Each file of a release therefore has a hard
link there (a copy if the file system has no hard links); no file is rewritten. One commit makes a release the
newest state. A single release replaces the table, a release of events is added to the table, and a release of
a register replaces the changed files. To remove a release, a table without it is written next to the old
table, which readers use until it is replaced.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, TableFeatures
from deltalake.schema import PrimitiveType
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions
from microguard.pipelines.engine.command_result import now
from microguard.pipelines.engine.files import hardlink, sync_folder, sync_tree
from microguard.pipelines.publication.formats.steps import changes, not_yet_committed, released_files, step
from microguard.schemas.errors import ProtectionFailed
from microguard.schemas.specification.consistency import NOT_IN_DELTA

FOLDER = "delta"
PROPERTY = "release_id"
#: Folders next to the table: a table that is being written, a complete successor of the table, and a table
#: that is being deleted.
_ANEW, _NEXT, _GOING = (f".{FOLDER}.{name}" for name in ("anew", "next", "going"))
#: Settings that keep all entries of the log, because it is the history of the published releases.
KEEP_THE_LOG = PostCommitHookProperties(cleanup_expired_logs=False)


def not_carried(schema: pa.Schema) -> list[str]:
    """Return the columns whose type Delta does not have, or whose names differ only in case."""
    names = [name.lower() for name in schema.names]
    return [
        entry.name
        for entry in schema
        if names.count(entry.name.lower()) > 1 or any(foreign(entry.type) for foreign in _FOREIGN)
    ]


_FOREIGN: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_unsigned_integer,
    pa.types.is_float16,
    pa.types.is_time,
    pa.types.is_duration,
    lambda kind: pa.types.is_decimal(kind) and not pa.types.is_decimal128(kind),
    # Delta would drop the last digits of such values
    lambda kind: pa.types.is_timestamp(kind) and kind.unit == "ns",
)


def commit(public: Path, release_id: str) -> None:
    """Make a release the newest state; if it is already committed, repair the table's links to its files.

    Raises
    ------
    ProtectionFailed
        If the library would write to another folder because of a character in the path.
    """
    if NOT_IN_DELTA & set(str(public.resolve())):
        raise ProtectionFailed(
            "[publish] path: expected a folder without #, ? and % for a Delta table, found one of these "
            "characters, with which the table would be written to another folder. Nothing was published. "
            'Choose another [publish] path, or format = "parquet".'
        )
    _take_place(public)
    history = committed(public)
    if release_id in history:
        _name_anew(public, release_id)
        return
    for each in not_yet_committed(public, release_id, history):
        _commit(public / FOLDER, public, each)


def committed(public: Path) -> list[str]:
    """Return the ids of the releases in the table's history, oldest first."""
    return _history(public / FOLDER)


def forget(public: Path, release_id: str) -> None:
    """Write the table again without a release, so that no version of the table contains the release."""
    _take_place(public)
    history = committed(public)
    if release_id not in history:
        _remove_what_no_commit_names(public / FOLDER)
        return
    anew = public / _ANEW
    shutil.rmtree(anew, ignore_errors=True)
    for standing in history:
        if standing != release_id and (public / standing).is_dir():
            _commit(anew, public, standing)
    if anew.is_dir():
        anew.rename(public / _NEXT)
    else:
        (public / FOLDER).rename(public / _GOING)
    _take_place(public)


def _name_anew(public: Path, release_id: str) -> None:
    """Link the table to the files of a release that was damaged and then made again."""
    for file, name in _names(public / FOLDER, public, release_id):
        if name.exists() and not name.samefile(file):
            hardlink(file, name)
    sync_tree(public / FOLDER)


def _names(table: Path, public: Path, release_id: str) -> list[tuple[Path, Path]]:
    """Return the record files of a release, each with the link that represents it in the table."""
    files = [Path(file) for file in released_files(public, release_id)]
    return [(file, table / f"{release_id}-{file.name}") for file in files]


def _take_place(public: Path) -> None:
    """Replace the table by its complete successor, if a killed run left one."""
    table, following, going = (public / name for name in (FOLDER, _NEXT, _GOING))
    if following.is_dir():
        if table.is_dir():
            shutil.rmtree(going, ignore_errors=True)
            table.rename(going)
        following.rename(table)
        sync_folder(public)
    if going.is_dir():
        shutil.rmtree(going)


def _remove_what_no_commit_names(table: Path) -> None:
    """Remove files that no commit refers to; runs that were killed during a commit leave such files."""
    if not DeltaTable.is_deltatable(str(table)):
        shutil.rmtree(table, ignore_errors=True)
        return
    logs = (table / "_delta_log").glob("*.json")
    actions = [json.loads(line) for log in logs for line in log.read_text(encoding="utf-8").splitlines()]
    named = {action["add"]["path"] for action in actions if "add" in action}
    for path in table.glob("*.parquet"):
        if path.name not in named:
            path.unlink()
    for path in (table / "_delta_log").glob("*#*"):  # a commit without its name yet
        path.unlink()


def _history(table: Path) -> list[str]:
    if not DeltaTable.is_deltatable(str(table)):
        return []
    return [str(line[PROPERTY]) for line in reversed(DeltaTable(str(table)).history()) if PROPERTY in line]


def _commit(table: Path, public: Path, release_id: str) -> None:
    history = _history(table)
    how = step(public, release_id, history[-1] if history else None)
    table.mkdir(exist_ok=True)
    if how == "change":
        _change(table, released_files(public, release_id), release_id)
    else:
        named = _names(table, public, release_id)
        for file, name in named:
            hardlink(file, name)
        _register(table, [name for _, name in named], release_id, add=how == "add")
    sync_tree(table)


def _register(table: Path, arriving: Sequence[Path], release_id: str, *, add: bool) -> None:
    """Make files of the table's folder its new state, or add them to the state; their columns become the
    schema.
    """
    adds, schema = _additions(arriving), schema_of(pq.read_schema(arriving[0]))
    if not DeltaTable.is_deltatable(str(table)):
        create(str(table), adds, schema, release_id)
        return
    before = DeltaTable(str(table))
    allow(before, schema)
    write(before, adds, None if add else schema, release_id)


def create(
    address: str,
    adds: Sequence[AddAction],
    schema: Schema,
    release_id: str,
    configuration: Mapping[str, str | None] | None = None,
) -> None:
    """Create a table whose first commit is labelled with the id of a release."""
    create_table_with_add_actions(
        address,
        schema,
        list(adds),
        configuration=configuration,
        commit_properties=properties(release_id),
        post_commithook_properties=KEEP_THE_LOG,
    )


def write(
    table: DeltaTable, changes: Sequence[AddAction | RemoveAction], whole: Schema | None, release_id: str
) -> None:
    """Commit changes of the files; the commit is labelled with the id of a release.

    Parameters
    ----------
    whole : Schema or None
        Columns of the table if the files replace all others, else None.
    """
    table.create_write_transaction(
        list(changes),
        "append" if whole is None else "overwrite",
        table.schema() if whole is None else whole,
        commit_properties=properties(release_id),
        post_commithook_properties=KEEP_THE_LOG,
    )


def allow(table: DeltaTable, schema: Schema) -> None:
    """Enable timestamps without a time zone in an existing table; Delta itself enables this feature only in
    new tables.
    """
    without_zone = any(field.type == PrimitiveType("timestamp_ntz") for field in schema.fields)
    if without_zone and "timestampNtz" not in (table.protocol().reader_features or []):
        table.alter.add_feature(
            TableFeatures.TimestampWithoutTimezone,
            allow_protocol_versions_increase=True,
            post_commithook_properties=KEEP_THE_LOG,
        )


def _change(table: Path, released: Sequence[str], release_id: str) -> None:
    """Replace the changed files in one commit."""
    before = DeltaTable(str(table))
    sizes = sizes_of(before)
    paths = {str((table / name).resolve()): name for name in sizes}
    changed = changes(list(paths), released, table.resolve(), release_id)
    leaving = [removal(paths[file], sizes[paths[file]]) for file in changed.leaving]
    write(before, [*_additions(changed.arriving), *leaving], None, release_id)


def sizes_of(table: DeltaTable) -> dict[str, int]:
    """Return the sizes in bytes of a table's files, by name."""
    adds = pa.table(table.get_add_actions())
    return dict(zip(adds["path"].to_pylist(), adds["size_bytes"].to_pylist(), strict=True))


def _additions(arriving: Sequence[Path]) -> list[AddAction]:
    return [addition(path.name, path.stat().st_size, pq.read_metadata(path)) for path in arriving]


def addition(name: str, size: int, metadata: pq.FileMetaData) -> AddAction:
    """Return the log action that adds a file, with the number of records as its only statistic."""
    rows = json.dumps({"numRecords": metadata.num_rows})
    return AddAction(name, size, {}, _now_in_milliseconds(), True, rows)


def removal(name: str, size: int) -> RemoveAction:
    """Return the log action that removes a file."""
    return RemoveAction(name, True, _now_in_milliseconds(), size=size, partition_values={})


def _now_in_milliseconds() -> int:
    return int(datetime.fromisoformat(now()).timestamp()) * 1000


def schema_of(schema: pa.Schema) -> Schema:
    """Return the Delta schema of a file; all columns are nullable, because a later release may not have all
    of them.
    """
    return Schema.from_arrow(pa.schema([_column(entry) for entry in schema]))


def _column(entry: pa.Field) -> pa.Field:
    kind = entry.type.value_type if pa.types.is_dictionary(entry.type) else entry.type
    if pa.types.is_timestamp(kind):
        kind = pa.timestamp("us", "UTC" if kind.tz else None)
    elif pa.types.is_date64(kind):
        kind = pa.date32()
    return pa.field(entry.name, kind)


def properties(release_id: str) -> CommitProperties:
    """Return the properties of a commit, which contain the id of its release."""
    return CommitProperties(custom_metadata={PROPERTY: release_id})
