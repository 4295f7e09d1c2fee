"""The Delta table of a public area: one commit per release, and no history of a withdrawn one.

A release that stands alone replaces the table, a night of events is added to it, and a night of a register
replaces the files in which something changed. While the table is written anew without a release, readers have
the old one; then the new one takes its place.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, write_deltalake
from deltalake.transaction import AddAction, RemoveAction

from pipelines.engine.files import sync_folder, sync_tree
from pipelines.engine.outcome import now
from pipelines.publication.formats.steps import changes, not_yet_committed, released_files, step

FOLDER = "delta"
PROPERTY = "release_id"
#: Beside the table: one that is being written, one that is whole and to be put in its place, one that goes.
_ANEW, _NEXT, _GOING = (f".{FOLDER}.{name}" for name in ("anew", "next", "going"))
#: The log is the history of the releases that stand: none of it is out of date.
_KEEP_THE_LOG = PostCommitHookProperties(cleanup_expired_logs=False)


def not_carried(schema: pa.Schema) -> list[str]:
    """Columns that a Delta table has no type for, or whose name it cannot tell from another's."""
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
    lambda kind: pa.types.is_timestamp(kind) and kind.unit == "ns",  # would lose its last digits
)


def commit(public: Path, release_id: str) -> None:
    """Make a release the newest state; does nothing where its commit is there already."""
    _take_place(public)
    history = committed(public)
    if release_id not in history:
        for each in not_yet_committed(public, release_id, history):
            _commit(public / FOLDER, public, each)


def committed(public: Path) -> list[str]:
    """Ids of the releases in the table's history, oldest first."""
    return _history(public / FOLDER)


def forget(public: Path, release_id: str) -> None:
    """Write the table anew without a release, so that no version of its history can be read."""
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


def _take_place(public: Path) -> None:
    """Put a table that was written anew in the place of the old one; a killed run may have begun it."""
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
    """Remove what runs left that died as they committed."""
    if not DeltaTable.is_deltatable(str(table)):
        shutil.rmtree(table, ignore_errors=True)
        return
    logs = (table / "_delta_log").glob("*.json")
    actions = [json.loads(line) for log in logs for line in log.read_text(encoding="utf-8").splitlines()]
    named = {action["add"]["path"] for action in actions if "add" in action}
    for path in table.glob("*.parquet"):
        if path.name not in named:
            path.unlink()


def _history(table: Path) -> list[str]:
    if not DeltaTable.is_deltatable(str(table)):
        return []
    return [str(line[PROPERTY]) for line in reversed(DeltaTable(str(table)).history()) if PROPERTY in line]


def _commit(table: Path, public: Path, release_id: str) -> None:
    history = _history(table)
    how = step(public, release_id, history[-1] if history else None)
    if how == "change":
        _change(table, public, release_id)
    else:
        _write(table, public, release_id, add=how == "add")
    sync_tree(table)


def _write(table: Path, public: Path, release_id: str, *, add: bool) -> None:
    records = ds.dataset(released_files(public, release_id), format="parquet")
    write_deltalake(
        str(table),
        records.scanner().to_reader(),
        mode="append" if add else "overwrite",
        schema_mode=None if add else "overwrite",
        commit_properties=properties(release_id),
        post_commithook_properties=_KEEP_THE_LOG,
    )


def _change(table: Path, public: Path, release_id: str) -> None:
    """Replace the files in which something changed, in one commit."""
    before = DeltaTable(str(table))
    adds = pa.table(before.get_add_actions())
    sizes = dict(zip(adds["path"].to_pylist(), adds["size_bytes"].to_pylist(), strict=True))
    paths = {str((table / name).resolve()): name for name in sizes}
    changed = changes(list(paths), released_files(public, release_id), table.resolve(), release_id)
    at = int(datetime.fromisoformat(now()).timestamp()) * 1000  # in milliseconds
    leaving = [
        RemoveAction(paths[file], True, at, size=sizes[paths[file]], partition_values={})
        for file in changed.leaving
    ]
    arriving = [
        AddAction(
            path.name,
            path.stat().st_size,
            {},
            at,
            True,
            json.dumps({"numRecords": pq.read_metadata(path).num_rows}),
        )
        for path in changed.arriving
    ]
    before.create_write_transaction(
        [*arriving, *leaving],
        "append",
        before.schema(),
        commit_properties=properties(release_id),
        post_commithook_properties=_KEEP_THE_LOG,
    )


def properties(release_id: str) -> CommitProperties:
    """What a commit carries: the id of its release."""
    return CommitProperties(custom_metadata={PROPERTY: release_id})
