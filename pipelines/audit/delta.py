"""Audit the Delta table of a release from outside: its commit holds exactly the records of the files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
from deltalake import DeltaTable

FOLDER = "delta"
PROPERTY = "release_id"


def faults(public: Path, manifest: dict[str, Any]) -> list[str]:
    """What is wrong with the commit of a release, a sentence each.

    Parameters
    ----------
    public : Path
        The public area, with the table at ``delta`` and the release in the folder of its id.
    manifest : dict
        The release's.
    """
    path, release_id = public / FOLDER, str(manifest["release_id"])
    if not DeltaTable.is_deltatable(str(path)):
        return ["there is no Delta table beside the release"]
    versions = [
        line["version"] for line in DeltaTable(str(path)).history() if line.get(PROPERTY) == release_id
    ]
    if len(versions) != 1:
        return [f"the Delta table has {len(versions)} commits of this release, expected one"]
    table = DeltaTable(str(path), version=versions[0])
    if [field.name for field in table.schema().fields] != [column["name"] for column in manifest["columns"]]:
        return ["the Delta table has other columns than the release"]
    released = sorted(str(file) for file in (public / release_id / "microdata").glob("*.parquet"))
    same = _contents(table.file_uris()) == _contents(released)
    return [] if same else ["the records of the Delta table are not those of the files"]


def _contents(files: list[str]) -> tuple[int, ...]:
    """Number of records, sum and exclusive or of their hashes: equal for equal multisets of records.

    Columns are taken by position, as names that differ in case alone are one name to DuckDB.
    """
    with duckdb.connect() as engine:
        engine.execute("SET enable_progress_bar = false")
        relation = engine.read_parquet(files)
        names = ", ".join('"' + name.replace('"', '""') + '"' for name in relation.columns)
        ((records, total, mixed),) = relation.aggregate(
            f"count(*), sum(hash({names})::HUGEINT), bit_xor(hash({names}))"
        ).fetchall()
    return int(records), int(total or 0), int(mixed or 0)
