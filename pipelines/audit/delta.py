"""Audit of a release's Delta table: its commit must contain exactly the records of the published files."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote

from deltalake import DeltaTable
from microguard.pipelines.audit.table_records import later_faults, multiset_hash, record_files_of_table

FOLDER = "delta"
PROPERTY = "release_id"
#: Reader features that neither hide records (as deletion vectors do) nor rename columns.
FEATURES = {"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
#: Reader protocol versions of Delta: the one that maps columns to other names, and the first one that lists
#: its features.
_MAPPED, _LISTED = 2, 3


def faults(public: Path, manifest: dict[str, Any]) -> list[str]:
    """Return the faults of a release's Delta commit, one sentence each.

    Parameters
    ----------
    public : Path
        The public area, with the table at ``delta`` and the release in the folder of its id.
    manifest : dict
        Manifest of the release.
    """
    path, release_id = public / FOLDER, str(manifest["release_id"])
    if not DeltaTable.is_deltatable(str(path)):
        return ["the folder of the release has no Delta table next to it"]
    newest = DeltaTable(str(path))
    releases = [(line["version"], str(line[PROPERTY])) for line in newest.history() if PROPERTY in line]
    versions = [version for version, name in releases if name == release_id]
    if len(versions) != 1:
        return [f"the Delta table has {len(versions)} commits of this release, expected one"]
    table = DeltaTable(str(path), version=versions[0])
    if _columns(table) != [column["name"] for column in manifest["columns"]]:
        return ["the columns of the Delta table differ from those of the release"]
    if multiset_hash(_files(table)) != multiset_hash(record_files_of_table(public, manifest)):
        return ["the records of the Delta table differ from those of the published files"]
    protocol = newest.protocol()
    features = set(protocol.reader_features or ()) - FEATURES
    if features or protocol.min_reader_version == _MAPPED or protocol.min_reader_version > _LISTED:
        return ["another writer enabled a feature of the Delta table that changes which records readers see"]
    if newest.version() == versions[0]:
        return []
    return later_faults(public, max(releases)[1], _columns(newest), _files(newest), "Delta")


def _columns(table: DeltaTable) -> list[str]:
    return [field.name for field in table.schema().fields]


def _files(table: DeltaTable) -> list[str]:
    return [unquote(address) for address in table.file_uris()]
