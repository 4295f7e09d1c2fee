"""Records that a Delta or Iceberg table must contain: those of a release and of its predecessors."""

from __future__ import annotations

import filecmp
import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.audit.footers import has_foreign_metadata, stale_dictionaries, wrong_footers
from microguard.pipelines.guarantees.queries import quiet_engine, quoted_name

#: Identity of a file, and the number of its records, sum and exclusive or of their hashes, and its columns.
Place = tuple[int, int] | None
Hash = tuple[int, int, int, frozenset[tuple[str, ...]]]


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
    if not _is_release(public, release_id):
        return [f"the newest release of the {title} table is not in the public area"]
    manifest = _manifest(public, release_id)
    released = record_files_of_table(public, manifest)
    named = sorted(columns) == sorted(column["name"] for column in manifest["columns"])
    if named and files and multiset_hash(files) == multiset_hash(released):
        return []
    return [f"another writer changed the {title} table after its newest release, {release_id}"]


@dataclass(frozen=True)
class TableAudit:
    """Result of the audit of a table: faults, and what could not be compared, one sentence each."""

    faults: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class State:
    """A state of a table.

    Attributes
    ----------
    release_id : str
        The release that the commit names; "" if it names none.
    files : sequence of str or None
        Files of the state; None if readers can no longer load it.
    """

    release_id: str
    files: Sequence[str] | None


def audit_states(
    public: Path,
    names: Collection[str],
    compared: Sequence[str],
    states: Sequence[State],
    title: str,
    *,
    ledger: Mapping[str, bool] | None = None,
    of_releases: bool = True,
    further: Sequence[str] = (),
) -> TableAudit:
    """Compare the states of a table that readers can load with the releases of the public area.

    A state whose commit names a release must have the records of this release. Any other state must have the
    files of releases, or the records of one release: another writer may have joined files, or added records
    and removed them again. A state of which another writer removed the commit or files is not compared.

    Parameters
    ----------
    public : Path
        The public area.
    names : collection of str
        Releases that commits of the table name.
    compared : sequence of str
        Files of the states that were compared already: the audited one, and the newest one.
    states : sequence of State
        The other states.
    title : str
        ``Delta`` or ``Iceberg``.
    ledger : mapping of str to bool, optional
        Releases of the ledger, and whether they stand, if it is near.
    of_releases : bool
        Whether the states that name a release are compared too. Each was compared when it was committed.
    further : sequence of str
        Files in the folder of the table, each of which must be one of a state or a release.
    """
    absent = [name for name in names if not _is_release(public, name)]
    ledger = dict.fromkeys(names, True) if ledger is None else ledger
    gone = [name for name in names if not ledger.get(name, True)]
    for commits, what in ((absent, "is not in the public area"), (gone, "was withdrawn")):
        if commits:
            return TableAudit([f"{len(commits)} commits of the {title} table name a release that {what}"])
    unknown = [name for name in names if name not in ledger]
    notes = [f"{len(unknown)} commits name a release of another ledger"] if unknown else []
    released = {name: record_files_of_table(public, _manifest(public, name)) for name in names}
    known = {_place(file) for files in [compared, *released.values()] for file in files}
    hashes: set[Hash | None] = set()  # computed only if another writer made files
    read: dict[Place, Hash | None] = {}
    others: dict[Place, str] = {}  # files that other writers made
    of_area = {_place(str(file)): file for file in public.glob("*/microdata/**/*.parquet")}
    incomplete: list[Sequence[str]] = []
    for state in sorted(states, key=lambda each: not each.release_id):
        if any("://" in file for file in state.files or ()):  # a file of another place, which is not read
            return TableAudit([_OTHER_RECORDS.format(title)])
        places = set(map(_place, state.files or ()))
        if state.files is None or None in places:
            incomplete.append(state.files or ())
            continue
        if state.release_id:
            expected = released[state.release_id]
            linked = Counter(map(_place, state.files)) == Counter(map(_place, expected))
            if of_releases and not linked and _hash(state.files, read) != _hash(expected, read):
                return TableAudit(
                    [f"a commit of the {title} table names a release and has records of another one"]
                )
        elif not places <= known:
            hashes = hashes or {_hash(files, read) for files in released.values()}
            if _hash(state.files, read) not in hashes:
                return TableAudit([_OTHER_RECORDS.format(title)])
        known |= places
        others |= {_place(file): file for file in state.files if _place(file) not in of_area}
    if not {_place(file) for files in incomplete for file in files} <= {None, *known}:
        return TableAudit([_OTHER_RECORDS.format(title)])
    left = [Path(file) for file in further if _place(file) not in {None, *known, *of_area}]
    if not all(any(_equal(file, own) for own in of_area.values()) for file in left):
        return TableAudit([_NO_STATE.format(title)])
    wrong = footer_faults(list(others.values()), [], title)
    if wrong:
        return TableAudit(wrong)
    notes += [_NOT_COMPARED.format(len(incomplete), title)] if incomplete else []
    return TableAudit([], notes)


_OTHER_RECORDS = "another writer committed other records to the {} table, which an earlier state has"
_NO_STATE = "the folder of the {} table has files of another writer that no version of the table has"
_NOT_COMPARED = (
    "{} earlier versions of the {} table were not compared, because another writer removed their commits or "
    "files, so that readers can no longer load them"
)
_RELEASE_ID = re.compile("[0-9a-f]{32}")


def _is_release(public: Path, name: str) -> bool:
    """Return whether the public area contains a release; a commit may name anything."""
    return bool(_RELEASE_ID.fullmatch(name)) and (public / name / "manifest.json").is_file()


def _manifest(public: Path, release_id: str) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((public / release_id / "manifest.json").read_text(encoding="utf-8"))
    return manifest


def missing_files(files: Sequence[str], title: str, whose: str) -> list[str]:
    """Return the fault if files of a state are missing, for example after ``VACUUM`` of another writer.

    Parameters
    ----------
    whose : str
        The state: ``this release`` or ``its newest state``.
    """
    missing = sum(_place(file) is None for file in files)
    if missing:
        return [f"{missing} files of {whose} are missing in the {title} table: another writer removed them"]
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


def _equal(file: Path, other: Path) -> bool:
    """Return whether a file is a copy of another one, as an interrupted run leaves it without hard links."""
    return file.stat().st_size == other.stat().st_size and filecmp.cmp(file, other, shallow=False)


def _place(file: str) -> tuple[int, int] | None:
    """Return the identity of a file, which its hard links have in common; None if it does not exist."""
    try:
        status = Path(file).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


def count_records(files: Sequence[str]) -> int:
    """Return the number of records stated in the footers of the files."""
    return sum(pq.read_metadata(file).num_rows for file in files)


def _hash(files: Sequence[str], read: dict[Place, Hash | None]) -> Hash | None:
    """Return the sum of the hashes of files, of which each is read once.

    None, which no release has, if DuckDB cannot read a file.
    """
    records, total, mixed, names = 0, 0, 0, set[tuple[str, ...]]()
    for file in files:
        place = _place(file)
        if place not in read:
            read[place] = _hash_of_file(file)
        own = read[place]
        if own is None:
            return None
        records, total, mixed = records + own[0], total + own[1], mixed ^ own[2]
        names |= own[3]
    return records, total, mixed, frozenset(names)


def _hash_of_file(file: str) -> Hash | None:
    try:
        records, total, mixed = multiset_hash([file])
        return records, total, mixed, frozenset([tuple(pq.read_schema(file).names)])
    except (duckdb.Error, pa.ArrowException):  # the text of the error may quote a record
        return None


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
