"""The Delta table of a public area: one commit per release, and no history of a withdrawn one."""

from __future__ import annotations

import shutil

import pyarrow.dataset as ds
from deltalake import CommitProperties, DeltaTable, write_deltalake

from pipelines.places import Places

FOLDER = "delta"
PROPERTY = "release_id"


def commit(places: Places, release_id: str) -> None:
    """Overwrite the table with a release; does nothing where its commit is there already."""
    if release_id in committed(places):
        return
    _write(places, release_id)


def committed(places: Places) -> list[str]:
    """Ids of the releases in the table's history, oldest first."""
    path = places.public / FOLDER
    if not DeltaTable.is_deltatable(str(path)):
        return []
    return [str(line[PROPERTY]) for line in reversed(DeltaTable(str(path)).history()) if PROPERTY in line]


def forget(places: Places, release_id: str) -> None:
    """Write the table anew without a release, so that no version of its history can be read."""
    history = committed(places)
    if release_id not in history:
        return
    shutil.rmtree(places.public / FOLDER)
    for standing in history:
        if standing != release_id and places.release(standing).is_dir():
            _write(places, standing)


def _write(places: Places, release_id: str) -> None:
    records = ds.dataset(places.release(release_id) / "microdata", format="parquet")
    write_deltalake(
        str(places.public / FOLDER),
        records.scanner().to_reader(),
        mode="overwrite",
        schema_mode="overwrite",
        commit_properties=CommitProperties(custom_metadata={PROPERTY: release_id}),
    )
