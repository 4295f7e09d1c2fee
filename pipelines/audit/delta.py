"""Audit of a release's Delta table: its commit must contain exactly the records of the published files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from microguard.pipelines.audit.delta_log import DeltaLog, read_log
from microguard.pipelines.audit.footers import is_end, plain
from microguard.pipelines.audit.table_records import (
    State,
    TableAudit,
    audit_states,
    footer_faults,
    later_faults,
    missing_files,
    multiset_hash,
    record_files_of_table,
)

FOLDER = "delta"
PROPERTY = "release_id"
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_MILLISECOND = 10**6
_COMMIT = re.compile("[0-9]{20}[.]json")
_REMOVED = "another writer removed the commits before version {} of the Delta table, which were not compared"
_UNREADABLE = (DeltaError, OSError)
_STATED = {"numRecords", "minValues", "maxValues", "nullCount", "tightBounds"}
_MISSTATED = "the log of the Delta table states numbers or ends of files that are not those of their values"


def audit(
    public: Path,
    manifest: dict[str, Any],
    ledger: Mapping[str, bool] | None = None,
    *,
    of_releases: bool = True,
) -> TableAudit:
    """Return the faults of a release's Delta commit, and what could not be compared.

    Parameters
    ----------
    public : Path
        The public area, with the table at ``delta`` and the release in the folder of its id.
    manifest : dict
        Manifest of the release.
    ledger : mapping of str to bool, optional
        Releases of the ledger, and whether they stand, if it is near.
    of_releases : bool
        Whether the commits of all other releases are compared with their files, too.
    """
    path, release_id = public / FOLDER, str(manifest["release_id"])
    try:
        if not DeltaTable.is_deltatable(str(path)):
            return TableAudit(["the folder of the release has no Delta table next to it"])
        newest = DeltaTable(str(path))
        releases, log = _commits(path), _log(path)
    except (
        *_UNREADABLE,
        ValueError,
        KeyError,
        TypeError,
    ):  # the text may quote the log, which may have values
        return TableAudit(["the log of the Delta table cannot be read: commits are missing or damaged"])
    versions = [version for version, name in releases.items() if name == release_id]
    removed = [_REMOVED.format(min(releases))] if min(releases, default=0) else []
    if len(versions) != 1:
        wrong = f"the Delta table has {len(versions)} commits of this release, expected one"
        return TableAudit([wrong, *removed])
    table = _version(path, versions[0])
    if table is None:
        return TableAudit(
            [
                "readers can no longer load the version of this release, because another writer removed "
                "earlier commits of the Delta table"
            ]
        )
    found = _faults_of_version(public, manifest, table)
    if found:
        return TableAudit(found)
    of_newest = missing_files(_files(newest), "Delta", "the newest state") or log.faults[:1]
    of_newest = of_newest or ([_MISSTATED] if _misstated(newest, path) else [])
    if of_newest:
        return TableAudit(of_newest)
    compared = [*_files(table), *_files(newest)]
    if newest.version() != versions[0]:
        last = max(version for version, name in releases.items() if name)
        changed = later_faults(public, releases[last], _columns(newest), _files(newest), "Delta")
        if changed:
            return TableAudit(changed)
    others = [version for version in releases if version not in (versions[0], newest.version())]
    if not of_releases and all(releases[version] for version in others):
        return TableAudit()
    states = [State(releases[each], _placed(path, log.versions.get(each))) for each in others]
    names = set(releases.values()) - {""}
    further = _further(path, log) if of_releases else []
    earlier = audit_states(
        public, names, compared, states, "Delta", ledger=ledger, of_releases=of_releases, further=further
    )
    if not earlier.faults:
        wrong_statistics = _faults_of_statistics(path, log)
        if wrong_statistics:
            return TableAudit(wrong_statistics)
    return TableAudit(earlier.faults, [*earlier.unchecked, *removed])


def _commits(path: Path) -> dict[int, str]:
    """Return the release that each commit of the log names; "" if it names none.

    Raises
    ------
    OSError, ValueError
    """
    releases = {}
    for file in (path / "_delta_log").glob("*.json"):
        if _COMMIT.fullmatch(file.name):
            actions = map(json.loads, filter(None, file.read_text(encoding="utf-8").split("\n")))
            about = [action["commitInfo"] for action in actions if "commitInfo" in action]
            releases[int(file.stem)] = str(about[0].get(PROPERTY, "")) if about else ""
    return dict(sorted(releases.items()))


def _log(path: Path) -> DeltaLog:
    folder = path / "_delta_log"
    names = [each.relative_to(folder).as_posix() for each in folder.rglob("*") if not each.is_dir()]
    return read_log(names, _reading(folder))


def _reading(folder: Path) -> Callable[[str], bytes]:
    def read(name: str) -> bytes:
        try:
            return (folder / name).read_bytes()
        except FileNotFoundError:
            if "#" in name:  # a commit got its name meanwhile
                return b""
            raise

    return read


def _placed(path: Path, files: Iterable[str] | None) -> list[str] | None:
    """Return the addresses of files of the log; those of other places have a scheme."""
    return None if files is None else [_address(path, each) for each in files]


def _address(path: Path, file: str) -> str:
    named = file.removeprefix("file://")
    return named if "://" in named else str(path / named)


def _further(path: Path, log: DeltaLog) -> list[str]:
    """Return all files of the folder of a table, except for its log, and all that the log ever added."""
    inside = [each for each in path.rglob("*") if not each.is_dir() and not _is_checksum(each)]
    found = {str(each) for each in inside if path / "_delta_log" not in each.parents}
    return sorted(found.union(_placed(path, log.added) or ()))


def _states_otherwise(file: str, stated: Mapping[str, Any]) -> bool:
    """Return whether statistics are not those of a file, as the log has them as text.

    Libraries drop numbers that are out of the range of a type, and columns that the table does not have.
    """
    if not stated.keys() <= _STATED:
        return True
    with pq.ParquetFile(file) as opened:
        names = set(opened.schema_arrow.names)
        for key, end in (("minValues", "min"), ("maxValues", "max"), ("nullCount", "")):
            values = stated.get(key) or {}
            if not values.keys() <= names:
                return True
            for name, value in values.items() if end else ():
                column = plain(opened.read(columns=[name]).select([name])).column(0)
                exact = pa.types.is_integer(column.type) or pa.types.is_string(column.type)
                if exact and value is not None and not is_end(value, pc.min_max(column)[end].as_py(), end):
                    return True
    return False


def _is_checksum(file: Path) -> bool:
    """Return whether a file has checksums of another one, which Hadoop writes next to it."""
    return file.name.startswith(".") and file.suffix == ".crc" and file.with_name(file.stem[1:]).is_file()


def _faults_of_statistics(path: Path, log: DeltaLog) -> list[str]:
    """Return the fault if the log states other numbers or ends of a file than it has, in any version."""
    versions = set[int]()
    for (file, stated), version in log.stated.items():
        place = _address(path, file)
        content = json.loads(stated)
        if content.keys() != {"numRecords"}:
            versions.add(version)
            if Path(place).is_file() and _states_otherwise(place, content):
                return [_MISSTATED]
        elif Path(place).is_file() and pq.read_metadata(place).num_rows != content["numRecords"]:
            return [_MISSTATED]
    tables = [_version(path, version) for version in sorted(versions | log.checkpoints)]
    return [_MISSTATED] if any(each is not None and _misstated(each, path) for each in tables) else []


def _faults_of_version(public: Path, manifest: dict[str, Any], table: DeltaTable) -> list[str]:
    """Return the faults of the state that the commit of the release made."""
    if _columns(table) != [column["name"] for column in manifest["columns"]]:
        return ["the Delta table has other columns than the release"]
    files, released = _files(table), record_files_of_table(public, manifest)
    missing = missing_files(files, "Delta", "this release")
    if missing:
        return missing
    if not files or multiset_hash(files) != multiset_hash(released):
        return ["the records of the Delta table are not those of the files"]
    if _misstated(table, public / FOLDER):
        return [_MISSTATED]
    return footer_faults(files, released, "Delta")


def _version(path: Path, version: int) -> DeltaTable | None:
    """Return a version of a table; None if its commits or the checkpoint before them are missing or
    damaged.
    """
    try:
        return DeltaTable(str(path), version=version)
    except _UNREADABLE:
        return None


def _columns(table: DeltaTable) -> list[str]:
    return [field.name for field in table.schema().fields]


def _misstated(table: DeltaTable, path: Path) -> int:
    """Count the files of which the log states another number of records, minimum or maximum.

    Files that are missing are not counted.
    """
    actions = pa.table(table.get_add_actions(flatten=True)).to_batches(1)
    wrong = 0
    for batch in actions:
        action = {name: batch[name][0] for name in batch.schema.names if batch[name][0].is_valid}
        file = _address(path, unquote(action["path"].as_py()))
        wrong += Path(file).is_file() and _differs(file, action)
    return wrong


def _differs(file: str, action: Mapping[str, pa.Scalar]) -> bool:
    with pq.ParquetFile(file) as opened:
        if "num_records" in action and action["num_records"].as_py() != opened.metadata.num_rows:
            return True
        for name in opened.schema_arrow.names:
            if not {f"{end}.{name}" for end in ("min", "max", "null_count")} & action.keys():
                continue  # the log of a release of microguard states the number of records only
            column = plain(opened.read(columns=[name]).select([name])).column(0)
            nulls = action.get(f"null_count.{name}")
            if nulls is not None and nulls.as_py() != column.null_count:
                return True
            ends = pc.min_max(column)
            for end in ("min", "max"):
                if f"{end}.{name}" in action and not _near(action[f"{end}.{name}"], ends[end], end):
                    return True
    return False


def _near(stated: pa.Scalar, value: pa.Scalar, end: str) -> bool:
    """Return whether the log may state an end so: it shortens texts, and times to milliseconds.

    Times and days are compared as numbers, because those of Python have years of four digits.
    """
    if not value.is_valid:
        return False
    if pa.types.is_timestamp(stated.type) and pa.types.is_timestamp(value.type):
        return abs(_nanoseconds(stated) - _nanoseconds(value)) <= _MILLISECOND
    if pa.types.is_date(stated.type) and pa.types.is_date(value.type):
        return bool(stated.cast(pa.date32()).value == value.cast(pa.date32()).value)
    try:
        return is_end(stated.as_py(), value.as_py(), end)
    except (OverflowError, ValueError):
        return False


def _nanoseconds(moment: pa.TimestampScalar) -> int:
    return int(moment.value) * _NANOSECONDS[moment.type.unit]


def _files(table: DeltaTable) -> list[str]:
    return [unquote(address) for address in table.file_uris()]
