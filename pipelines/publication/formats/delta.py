"""The Delta table of a public area: one commit per release, and no history of a withdrawn one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import CommitProperties, DeltaTable, write_deltalake

from pipelines.engine.files import sync_tree

FOLDER = "delta"
PROPERTY = "release_id"


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
    """Overwrite the table with a release; does nothing where its commit is there already."""
    if release_id in committed(public):
        return
    _write(public, release_id)


def committed(public: Path) -> list[str]:
    """Ids of the releases in the table's history, oldest first."""
    path = public / FOLDER
    if not DeltaTable.is_deltatable(str(path)):
        return []
    return [str(line[PROPERTY]) for line in reversed(DeltaTable(str(path)).history()) if PROPERTY in line]


def forget(public: Path, release_id: str) -> None:
    """Write the table anew without a release, so that no version of its history can be read."""
    history = committed(public)
    if release_id not in history:
        return
    shutil.rmtree(public / FOLDER)
    for standing in history:
        if standing != release_id and (public / standing).is_dir():
            _write(public, standing)


def _write(public: Path, release_id: str) -> None:
    records = ds.dataset(public / release_id / "microdata", format="parquet")
    write_deltalake(
        str(public / FOLDER),
        records.scanner().to_reader(),
        mode="overwrite",
        schema_mode="overwrite",
        commit_properties=properties(release_id),
    )
    sync_tree(public / FOLDER)


def properties(release_id: str) -> CommitProperties:
    """What a commit carries: the id of its release."""
    return CommitProperties(custom_metadata={PROPERTY: release_id})
