"""Read a public area and its ledgers without code of microguard."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

TABLES = ("delta", "iceberg")
CURRENT = "current.json"


def checksums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file below a folder."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def served(public: Path) -> str | None:
    """Return the release that ``current.json`` names."""
    path = public / CURRENT
    return str(json.loads(path.read_text())["release_id"]) if path.exists() else None


def releases(public: Path) -> set[str]:
    """Return the ids of everything in the area that readers may take for a release."""
    names = {path.name for path in public.glob("[!.]*")} if public.exists() else set()
    return names - {CURRENT, *TABLES}


def hidden(public: Path) -> list[str]:
    """Return hidden files of the area."""
    return [path.name for path in public.glob(".*")]


def manifest(public: Path, release_id: str) -> dict[str, Any]:
    """Return the manifest of a release."""
    return dict(json.loads((public / release_id / "manifest.json").read_text()))


def whole(public: Path, release_id: str) -> bool:
    """Return whether a release has exactly the files that its manifest lists."""
    found = checksums(public / release_id)
    found.pop("manifest.json", None)
    return found == {name: each["sha256"] for name, each in manifest(public, release_id)["files"].items()}


def smallest_class(public: Path, release_id: str) -> int | None:
    """Return the size of the smallest equivalence class; None for a table."""
    said = manifest(public, release_id)
    if not (public / release_id / "microdata").is_dir():
        return None
    names = [each["name"] for each in said["columns"] if each["protected"] or each["role"] == "region"]
    frame = _records(public, release_id).select(names).to_pandas().astype(str)
    return int(frame.groupby(names).size().min())


def events(evidence: Path) -> dict[str, dict[str, Any]]:
    """Return the last line of each release in a ledger, oldest first."""
    path = evidence / "ledger.jsonl"
    last: dict[str, dict[str, Any]] = {}
    for line in map(json.loads, path.read_text().splitlines() if path.exists() else []):
        last.pop(line["release_id"], None)
        last[line["release_id"]] = line
    return last


def faults_of_tables(public: Path, standing: Iterable[str]) -> Iterator[str]:
    """Return records of releases that are not current in any table version, and unreferenced files."""
    known = set(standing)
    for name, versions in (("delta", _delta), ("iceberg", _iceberg)):
        folder = public / name
        if not folder.is_dir():
            continue
        named: set[str] = set()
        for release_id, records, files in versions(folder):
            named |= files
            if release_id not in known:
                yield f"{name} shows a release that does not stand: {release_id}"
                continue
            series = manifest(public, release_id).get("series", {})
            parts = [each for each in series.get("releases", [release_id]) if each in known]
            if _counted([records]) != _counted([_records(public, each) for each in parts]):
                yield f"{name} shows other records of release {release_id}"
        left = {str(path.resolve()) for path in folder.rglob("*.parquet")} - named
        if left:
            yield f"{name} has {len(left)} files of no version"


def _delta(folder: Path) -> Iterator[tuple[str, pa.Table, set[str]]]:
    ids = {each["version"]: each.get("release_id") for each in DeltaTable(folder).history()}
    for version, release_id in sorted(ids.items()):
        if (
            release_id is not None
        ):  # a version that only adds a table feature has the records of the previous one
            table = DeltaTable(folder, version=version)
            yield release_id, table.to_pyarrow_table(), set(table.file_uris())


def _iceberg(folder: Path) -> Iterator[tuple[str, pa.Table, set[str]]]:
    table = StaticTable.from_metadata(str(folder))
    last = {}
    for snapshot in sorted(table.snapshots(), key=lambda each: each.sequence_number or 0):
        last[snapshot.summary["release_id"]] = (
            snapshot.snapshot_id
        )  # a release may be committed as two snapshots
    for release_id, number in last.items():
        scan = table.scan(snapshot_id=number)
        yield (
            release_id,
            scan.to_arrow(),
            {task.file.file_path.removeprefix("file://") for task in scan.plan_files()},
        )


def _records(public: Path, release_id: str) -> pa.Table:
    parts = sorted((public / release_id / "microdata").glob("*.parquet"))
    return pa.concat_tables([pq.read_table(part) for part in parts])


def _counted(tables: list[pa.Table]) -> Counter[str]:
    return Counter(
        repr(sorted(row.items()))
        for table in tables
        for row in table.to_pandas().astype(str).to_dict("records")
    )
