"""Audit the Delta table of a release: its commit must have exactly the records of the published files."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote

from deltalake import DeltaTable
from microguard.pipelines.audit.table_records import later_faults, multiset_hash, record_files_of_table

FOLDER = "delta"
PROPERTY = "release_id"
#: Features that the table of a release may use; others hide records (deletion vectors) or rename columns.
FEATURES = {"timestampNtz"}


def faults(public: Path, manifest: dict[str, Any]) -> list[str]:
    """Return the faults of the Delta commit of a release, one sentence each.

    Parameters
    ----------
    public : Path
        The public area, with the table at ``delta`` and the release in the folder of its id.
    manifest : dict
        Manifest of the release.
    """
    path, release_id = public / FOLDER, str(manifest["release_id"])
    if not DeltaTable.is_deltatable(str(path)):
        return ["there is no Delta table next to the release"]
    newest = DeltaTable(str(path))
    releases = [(line["version"], str(line[PROPERTY])) for line in newest.history() if PROPERTY in line]
    versions = [version for version, name in releases if name == release_id]
    if len(versions) != 1:
        return [f"the Delta table has {len(versions)} commits of this release, expected one"]
    table = DeltaTable(str(path), version=versions[0])
    if [field.name for field in table.schema().fields] != [column["name"] for column in manifest["columns"]]:
        return ["the Delta table has other columns than the release"]
    if multiset_hash(_files(table)) != multiset_hash(record_files_of_table(public, manifest)):
        return ["the records of the Delta table are not those of the files"]
    features = set(newest.protocol().reader_features or ()) - FEATURES
    if features:
        return [f"another writer gave the Delta table features that change what it shows: {len(features)}"]
    if newest.version() == versions[0]:
        return []
    return later_faults(public, max(releases)[1], _files(newest), "Delta")


def _files(table: DeltaTable) -> list[str]:
    return [unquote(address) for address in table.file_uris()]
