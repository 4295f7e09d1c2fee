"""Audit the Delta table of a release: its commit must have exactly the records of the published files."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote

from deltalake import DeltaTable
from microguard.pipelines.audit.table_records import multiset_hash, record_files_of_table

FOLDER = "delta"
PROPERTY = "release_id"


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
    versions = [
        line["version"] for line in DeltaTable(str(path)).history() if line.get(PROPERTY) == release_id
    ]
    if len(versions) != 1:
        return [f"the Delta table has {len(versions)} commits of this release, expected one"]
    table = DeltaTable(str(path), version=versions[0])
    if [field.name for field in table.schema().fields] != [column["name"] for column in manifest["columns"]]:
        return ["the Delta table has other columns than the release"]
    files = [unquote(address) for address in table.file_uris()]
    equal = multiset_hash(files) == multiset_hash(record_files_of_table(public, manifest))
    return [] if equal else ["the records of the Delta table are not those of the files"]
