"""Log of a Delta table: the files of each version that a reader could load, read once.

Readers begin with a checkpoint, if there is one, and apply the commits after it. Which checkpoint is up to
the reader. A checkpoint must therefore have the files that the commits before it result in.

Source: Delta transaction log protocol, https://github.com/delta-io/delta/blob/master/PROTOCOL.md
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

#: Reader features that neither hide records (as deletion vectors do) nor rename columns.
FEATURES = {"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
#: Reader protocol versions of Delta: the one that maps columns to other names, and the first one that lists
#: its features.
_MAPPED, _LISTED = 2, 3
_COMMIT = re.compile("([0-9]{20})[.]json")
_CHECKPOINT = re.compile(r"([0-9]{20})[.]checkpoint[.](.*?)(?:[.]?)(parquet|json)")
_PARTS = re.compile(r"[0-9]{10}[.]([0-9]{10})")
#: Files of the log that no reader takes files of the table from.
_OTHERS = re.compile(r"_last_checkpoint|(_sidecars/)?[.].*[.]crc|_sidecars/.*[.]parquet|[0-9]{20}[.]crc")
#: Commits that an interrupted writer had not yet given their names.
_UNNAMED = re.compile("([0-9]{20})[.]json#[0-9]+")
_COLUMNS = ("add", "remove", "metaData", "protocol", "sidecar", "cdc")
HIDDEN = "another writer gave the Delta table a feature that changes the records that readers see"
_DISAGREES = "a checkpoint of the Delta table has other files than the commits before it"
_FOREIGN = "the log of the Delta table has files that microguard does not compare"


@dataclass
class DeltaLog:
    """Versions of a Delta table.

    Attributes
    ----------
    versions : mapping of version to paths or None
        Paths of the files of each commit, as the log has them, without percent encoding; None if commits
        before it are missing.
    stated : mapping of path and statistics to version
        All statistics that commits and checkpoints state of a file, and where first.
    added : set of str
        Paths of all files that were ever added.
    checkpoints : set of int
        Versions with a checkpoint.
    faults : list of str
    """

    versions: dict[int, list[str] | None] = field(default_factory=dict)
    stated: dict[tuple[str, str], int] = field(default_factory=dict)
    added: set[str] = field(default_factory=set)
    checkpoints: set[int] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)


def read_log(names: Iterable[str], read: Callable[[str], bytes]) -> DeltaLog:
    """Read a log.

    Parameters
    ----------
    names : iterable of str
        Files of the log, relative to it.
    read : callable
        Returns the content of a file.

    Raises
    ------
    OSError, ValueError, KeyError, TypeError
        If the log is damaged.
    """
    log, commits, parts = DeltaLog(), dict[int, str](), dict[tuple[int, str], list[str]]()
    for name in sorted(names):
        commit, checkpoint, unnamed = (each.fullmatch(name) for each in (_COMMIT, _CHECKPOINT, _UNNAMED))
        if unnamed:  # readers do not load it, but its files must be known
            _applied(log, int(unnamed[1]), _lines(read(name)), set())
        elif commit:
            commits[int(commit[1])] = name
        elif checkpoint:
            several = _PARTS.fullmatch(checkpoint[2])
            parts.setdefault((int(checkpoint[1]), several[1] if several else name), []).append(name)
        elif not _OTHERS.fullmatch(name):
            log.faults.append(_FOREIGN)
    state: set[str] | None = set()
    log.checkpoints = {version for version, _ in parts}
    last = -1
    for version in sorted(commits.keys() | log.checkpoints):
        state = state if version == last + 1 and version in commits else None
        if version in commits:
            after = _applied(log, version, _lines(read(commits[version])), state or set())
            state = None if state is None else after
        for (of, _), files in parts.items():
            if of == version:
                found = _applied(log, version, _checkpointed(files, read), set())
                if state is not None and found != state:
                    log.faults.append(_DISAGREES)
                state = found
        if version in commits:
            log.versions[version] = None if state is None else sorted(state)
        last = version
    return log


def _applied(log: DeltaLog, version: int, actions: Iterable[Mapping[str, Any]], state: set[str]) -> set[str]:
    """Return the files after some actions; collect what they state, and the faults."""
    after, removed = set(state), set[str]()
    for action in actions:
        for kind, content in action.items():
            if kind == "add":
                path = unquote(content["path"])
                after.add(path)
                log.added.add(path)
                removed.discard(path)
                if content.get("stats"):
                    if not isinstance(json.loads(content["stats"]), dict):
                        raise TypeError("statistics of a file are no object")
                    log.stated.setdefault((path, content["stats"]), version)
                if content.get("deletionVector") or content.get("partitionValues"):
                    log.faults.append(HIDDEN)
            elif kind == "remove":
                removed.add(unquote(content["path"]))
            elif (kind == "protocol" and not _is_plain(content)) or (
                kind == "metaData" and content.get("partitionColumns")
            ):
                log.faults.append(HIDDEN)
            elif kind == "cdc":
                log.faults.append(_FOREIGN)
    return after - removed


def _is_plain(protocol: Mapping[str, Any]) -> bool:
    version, features = int(protocol["minReaderVersion"]), set(protocol.get("readerFeatures") or ())
    return features <= FEATURES and version != _MAPPED and version <= _LISTED


def _lines(content: bytes) -> Iterator[dict[str, Any]]:
    for line in content.split(b"\n"):  # JSON may have the other line ends of Unicode
        if line.strip():
            yield {key: each for key, each in json.loads(line).items() if each is not None}


def _checkpointed(files: Iterable[str], read: Callable[[str], bytes]) -> Iterator[dict[str, Any]]:
    """Return the actions of a checkpoint, also those of its sidecars."""
    for name in files:
        content = read(name)
        for action in _lines(content) if name.endswith(".json") else _rows(content):
            yield action
            if "sidecar" in action:
                path = str(action["sidecar"]["path"])
                yield from _rows(read(path if "/" in path else f"_sidecars/{path}"))


def _rows(content: bytes) -> Iterator[dict[str, Any]]:
    with pq.ParquetFile(pa.BufferReader(content)) as file:
        names = [name for name in _COLUMNS if name in file.schema_arrow.names]
        for batch in file.iter_batches(columns=names):
            for row in batch.to_pylist():
                yield {key: each for key, each in row.items() if each is not None}
