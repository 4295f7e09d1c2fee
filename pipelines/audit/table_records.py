"""Records that a Delta or Iceberg table must contain: those of a release and of its predecessors."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from microguard.pipelines.audit.footers import has_foreign_metadata, stale_dictionaries, wrong_footers
from microguard.pipelines.guarantees.queries import quiet_engine, quoted_name


def record_files_of_table(public: Path, manifest: dict[str, Any]) -> list[str]:
    """Return the record files of a release and of the earlier releases that it extends.

    Parameters
    ----------
    public : Path
        The public area.
    manifest : dict
        Manifest of the release. In a series of events it lists the current earlier releases.
    """
    releases = [*manifest.get("series", {}).get("releases", []), manifest["release_id"]]
    return sorted(
        str(path.resolve())
        for release in set(releases)
        for path in (public / release / "microdata").glob("*.parquet")
    )


def later_faults(
    public: Path, release_id: str, columns: Sequence[str], files: Sequence[str], title: str
) -> list[str]:
    """Return a fault if the newest state of a table is not the newest release that was committed to it.

    Readers of a table see its newest state. Another writer may have added, changed or deleted records since.

    Parameters
    ----------
    public : Path
        The public area.
    release_id : str
        The newest release in the history of the table.
    columns, files : sequences of str
        Columns and files of the newest state.
    title : str
        ``Delta`` or ``Iceberg``.
    """
    path = public / release_id / "manifest.json"
    if not path.is_file():
        return [f"the newest release of the {title} table is not in the public area"]
    manifest = json.loads(path.read_text(encoding="utf-8"))
    released = record_files_of_table(public, manifest)
    named = sorted(columns) == sorted(column["name"] for column in manifest["columns"])
    if named and files and multiset_hash(files) == multiset_hash(released):
        return []
    return [f"another writer changed the {title} table after its newest release, {release_id}"]


def earlier_faults(
    states: Iterable[Sequence[str]], released: Sequence[Sequence[str]], title: str
) -> list[str]:
    """Return the fault if readers can load an earlier state of a table with records of no release.

    Another writer may have added records and removed them again, so that the newest state is as it was.

    Parameters
    ----------
    states : iterable of sequences of str
        Files of the states that other writers committed.
    released : sequence of sequences of str
        Files of the states of releases.
    title : str
        ``Delta`` or ``Iceberg``.
    """
    known = {_place(file) for files in released for file in files if Path(file).exists()}
    hashes: set[tuple[int, ...]] | None = None  # read at most once, and only if other files are there
    for files in states:
        present = [file for file in files if Path(file).exists()]
        if all(_place(file) in known for file in present):
            continue
        if hashes is None:
            there = [each for each in released if each and all(map(os.path.exists, each))]
            hashes = set(map(multiset_hash, there))
        if len(present) < len(files) or multiset_hash(present) not in hashes:
            return [
                f"another writer committed other records to the {title} table, which an earlier state has"
            ]
    return []


def footer_faults(files: Sequence[str], released: Sequence[str], title: str) -> list[str]:
    """Return the fault if a file of a table has foreign metadata or statistics.

    Parameters
    ----------
    files, released : sequences of str
        Files of the table, which may be links, and those of releases, of which each audit reads its own.
    title : str
        ``Delta`` or ``Iceberg``.
    """
    read = {_place(file) for file in released}
    own = [Path(file) for file in files if _place(file) not in read]
    wrong = wrong_footers(own) + sum(has_foreign_metadata(file) + stale_dictionaries(file) for file in own)
    if wrong:
        return [f"files of the {title} table have metadata, texts or statistics that are not of their values"]
    return []


def _place(file: str) -> tuple[int, int]:
    """Return the identity of a file, which its hard links have in common."""
    status = Path(file).stat()
    return status.st_dev, status.st_ino


def count_records(files: Sequence[str]) -> int:
    """Return the number of records stated in the footers of the files."""
    return sum(pq.read_metadata(file).num_rows for file in files)


def multiset_hash(files: Sequence[str]) -> tuple[int, ...]:
    """Return the number of records, and the sum and the exclusive or of their hashes.

    The result is equal for equal multisets of records. Columns are compared by position, because DuckDB
    treats names that differ only in case as equal.
    """
    with quiet_engine() as engine:
        relation = engine.read_parquet(list(files), hive_partitioning=False)
        names = ", ".join(map(quoted_name, relation.columns))
        ((records, total, mixed),) = relation.aggregate(
            f"count(*), sum(hash({names})::HUGEINT), bit_xor(hash({names}))"
        ).fetchall()
    return int(records), int(total or 0), int(mixed or 0)
