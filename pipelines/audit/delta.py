"""Audit of a release's Delta table: its commit must contain exactly the records of the published files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from microguard.pipelines.audit.footers import is_end, plain
from microguard.pipelines.audit.table_records import (
    earlier_faults,
    footer_faults,
    later_faults,
    multiset_hash,
    record_files_of_table,
)

FOLDER = "delta"
PROPERTY = "release_id"
#: Reader features that neither hide records (as deletion vectors do) nor rename columns.
FEATURES = {"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
#: Reader protocol versions of Delta: the one that maps columns to other names, and the first one that lists
#: its features.
_MAPPED, _LISTED = 2, 3
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_MILLISECOND = 10**6


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
        return ["the Delta table has other columns than the release"]
    released = record_files_of_table(public, manifest)
    if multiset_hash(_files(table)) != multiset_hash(released):
        return ["the records of the Delta table are not those of the files"]
    if _misstated(table) or _misstated(newest):
        return [
            "the log of the Delta table states numbers or ends of files that are not those of their values"
        ]
    discrepancies = footer_faults(_files(table), released, "Delta")
    if discrepancies:
        return discrepancies
    protocol = newest.protocol()
    features = set(protocol.reader_features or ()) - FEATURES
    if features or protocol.min_reader_version == _MAPPED or protocol.min_reader_version > _LISTED:
        return ["another writer gave the Delta table a feature that changes the records that readers see"]
    committed = {version for version, _ in releases}
    others = [line["version"] for line in newest.history() if line["version"] not in committed]
    discrepancies = earlier_faults(
        (_files(DeltaTable(str(path), version=version)) for version in others),
        [_files(DeltaTable(str(path), version=version)) for version in committed] if others else [],
        "Delta",
    )
    if newest.version() == versions[0]:
        return discrepancies
    of_newest = later_faults(public, max(releases)[1], _columns(newest), _files(newest), "Delta")
    return of_newest or discrepancies


def _columns(table: DeltaTable) -> list[str]:
    return [field.name for field in table.schema().fields]


def _misstated(table: DeltaTable) -> int:
    """Count the files of which the log states another number of records, minimum or maximum."""
    actions = pa.table(table.get_add_actions(flatten=True)).to_batches(1)
    paths = {Path(file).name: file for file in _files(table)}
    wrong = 0
    for batch in actions:
        action = {name: batch[name][0] for name in batch.schema.names if batch[name][0].is_valid}
        wrong += _differs(paths[unquote(action["path"].as_py()).rpartition("/")[2]], action)
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
