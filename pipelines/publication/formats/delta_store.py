"""Delta table of a public area in an object store, at ``delta`` in the area.

An object store has no links. Each file of a release is therefore copied into the table, and the copy is read
back. One commit makes a release the newest state. To remove a release, the remaining releases are committed
again, oldest first. Then a checkpoint of the oldest release replaces the earlier log, and files that belong
to no remaining release are deleted. The table then has no version of the removed release. During a removal,
readers see one of the remaining releases, which need not be the newest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction
from microguard.pipelines.audit.delta_log import read_log
from microguard.pipelines.publication.formats.delta import (
    FOLDER,
    PROPERTY,
    addition,
    allow,
    create,
    removal,
    schema_of,
    sizes_of,
    write,
)
from microguard.pipelines.publication.formats.steps import record_files, record_files_of_all
from microguard.pipelines.publication.public_area import PublicArea
from microguard.pipelines.publication.storage.faults import StoreFailed
from microguard.pipelines.publication.storage.object_store import connected
from obstore.exceptions import BaseError
from obstore.store import ObjectStore

_LOG = f"{FOLDER}/_delta_log"
_VERSION = re.compile(rf"{_LOG}/(\d{{20}})\.")
#: Retention setting with which no checkpoint contains removed files.
_NO_TOMBSTONES = {"delta.deletedFileRetentionDuration": "interval 0 seconds"}


@dataclass(frozen=True)
class StoredDeltaTable:
    """The Delta table of a public area in an object store."""

    public: PublicArea

    def commit(self, release_id: str) -> None:
        """Make a release the newest state of the table, unless the table already contains it.

        Raises
        ------
        StoreFailed
        """
        with self._answering():
            if release_id not in self.committed():
                self._make_current(release_id)

    def committed(self) -> list[str]:
        """Return the ids of the releases in the log, oldest first."""
        return list(self._versions())

    def _versions(self) -> dict[str, int]:
        """Return the number of each release's last version in the log."""
        return {release_id: version for version, release_id in self._commits().values()}

    def _commits(self) -> dict[str, tuple[int, str]]:
        """Return version and release of each commit in the log, oldest first; keys are file names."""
        commits: dict[str, tuple[int, str]] = {}
        for name in sorted(self.public.storage.list_files(_LOG)):
            content = self.public.storage.get(name) if name.endswith(".json") else None
            for line in [] if content is None else content.content.splitlines():
                release_id = json.loads(line).get("commitInfo", {}).get(PROPERTY)
                if release_id is not None:
                    commits[name] = int(name.rpartition("/")[2].removesuffix(".json")), str(release_id)
        return commits

    def faults(
        self, manifest: dict[str, Any], ledger: Mapping[str, bool] | None = None, *, whole: bool = False
    ) -> list[str]:
        """Read the version of a release again and return its faults, one sentence each.

        Parameters
        ----------
        ledger : mapping of str to bool, optional
            Releases of the ledger, and whether they stand; by default all of the public area do.
        whole : bool
            Whether every other version that readers can load is compared, too.
        """
        release_id = str(manifest["release_id"])
        with self._answering():
            commits = list(self._commits().values())
            versions = {name: version for version, name in commits}
            if release_id not in versions:
                return ["the Delta table has no commit of this release"]
            try:
                table = DeltaTable(self._address, version=versions[release_id])
                columns, held = [field.name for field in table.schema().fields], self._named(table)
            except DeltaError:
                return [
                    "readers can no longer load the version of this release: commits before it are missing"
                ]
            newest = max(versions, key=lambda each: versions[each])
            shown = self._named(DeltaTable(self._address))
        if columns != [column["name"] for column in manifest["columns"]]:
            return ["the columns of the Delta table differ from those of the release"]
        files = record_files(self.public, release_id)
        if held != {_copy_of(name) for name in files}:
            return ["the files of the Delta table differ from those of the release"]
        if not self.public.exists(newest) or shown != {
            _copy_of(name) for name in record_files(self.public, newest)
        }:
            return [f"another writer changed the Delta table after its newest release, {newest}"]
        storage = self.public.storage
        if not set(held) <= {name.removeprefix(f"{FOLDER}/") for name in storage.list_files(FOLDER)}:
            return ["files of this release are missing in the Delta table: another writer removed them"]
        changed = [
            name for name in files if storage.checksum(name) != storage.checksum(f"{FOLDER}/{_copy_of(name)}")
        ]
        if changed:
            return ["a file of the Delta table differs from the file of the release"]
        return self._earlier_faults(dict(commits), ledger) if whole else []

    def _earlier_faults(self, names: Mapping[int, str], ledger: Mapping[str, bool] | None) -> list[str]:
        """Return the fault if readers can load a version that does not have the files of releases.

        Parameters
        ----------
        names : mapping of version to release
            The commits that name a release. All other ones are those of other writers.
        """
        files = {
            each: set(map(_copy_of, listed))
            for each, listed in record_files_of_all(self.public).items()
            if ledger is None or ledger.get(each, True)
        }
        if not set(names.values()) <= files.keys():
            return ["a commit of the Delta table names a release that is not published"]
        of_releases = set().union(*files.values())
        with self._answering():
            storage, names_of_log = self.public.storage, list[str]()
            for name in storage.list_files(FOLDER):
                if name.startswith(f"{_LOG}/"):
                    names_of_log.append(name.removeprefix(f"{_LOG}/"))
                elif name.removeprefix(f"{FOLDER}/") not in of_releases:
                    return ["the folder of the Delta table has files of another writer"]
            try:
                log = read_log(names_of_log, self._read)
            except (ValueError, KeyError, TypeError):
                return ["the log of the Delta table cannot be read: commits are missing or damaged"]
        if log.faults:
            return log.faults[:1]
        for version, held in log.versions.items():
            release_id = names.get(version)
            if held is None:  # no reader can load it
                continue
            if set(held) != files[release_id] if release_id else not set(held) <= of_releases:
                return ["another writer committed other files to the Delta table, which a version has"]
        if any(json.loads(stated).keys() != {"numRecords"} for _, stated in log.stated):
            return ["the log of the Delta table states ends of columns, which no release states"]
        return []

    def _read(self, name: str) -> bytes:
        content = self.public.storage.get(f"{_LOG}/{name}")
        if content is None:
            raise KeyError(name)
        return content.content

    def _named(self, table: DeltaTable) -> set[str]:
        """Return the names of the files in the current state of a table; others have whole addresses."""
        return {unquote(each.removeprefix(f"{self._address}/")) for each in table.file_uris()}

    def forget(self, release_id: str) -> None:
        """Remove a release from the table, so that no version and no file contains it any more.

        Raises
        ------
        StoreFailed
        """
        with self._answering():
            history = self.committed()
            left = [each for each in history if each != release_id and self.public.exists(each)]
            if left and release_id in history:
                self._begin_again(left, release_id)
            held = {_copy_of(name) for each in left for name in record_files(self.public, each, release_id)}
            for name in self.public.storage.list_files(FOLDER):
                file = name.removeprefix(f"{FOLDER}/")
                if not left or (file not in held and file.endswith(".parquet") and "/" not in file):
                    self.public.storage.delete(name)

    @property
    def _address(self) -> str:
        return f"{self.public.name}/{FOLDER}"

    def _make_current(self, release_id: str, without: str = "") -> None:
        """Copy those files of a release that the table does not have; make all its files the table's state in
        one commit.
        """
        store, table, sizes = connected(self.public.name), None, {}
        if self.public.storage.list_files(_LOG):
            table = DeltaTable(self._address)
            sizes = sizes_of(table)
        files = {_copy_of(name): name for name in record_files(self.public, release_id, without)}
        adds: list[AddAction] = []
        for copy, name in files.items():
            footer, size = _footer(store, name)
            schema = schema_of(pq.read_schema(pa.BufferReader(footer)))
            if copy not in sizes:
                # the copy may be missing if an earlier version of microguard published the release
                if not self.public.storage.exists(f"{FOLDER}/{copy}"):
                    obstore.copy(store, name, f"{FOLDER}/{copy}")
                adds.append(addition(copy, size, pq.read_metadata(pa.BufferReader(footer))))
        if table is None:
            create(self._address, adds, schema, release_id, _NO_TOMBSTONES)
            return
        allow(table, schema)
        if table.schema() != schema:
            write(table, adds, schema, release_id)
            return
        leaving = [removal(copy, size) for copy, size in sizes.items() if copy not in files]
        write(table, [*adds, *leaving], None, release_id)

    def _begin_again(self, standing: Sequence[str], removed: str) -> None:
        """Commit each published release again, oldest first; the log then starts with these commits.

        The commits of the removed release are deleted last, so that the run after a kill repeats the whole
        procedure. All other commits are deleted newest first, so that the first commits of the releases keep
        their order.
        """
        self._make_current(standing[0], removed)
        table = DeltaTable(self._address)
        write(table, [], None, standing[0])  # the log entry of this commit refers to no removed files
        first = DeltaTable(self._address).version()
        for each in standing[1:]:
            self._make_current(each, removed)
        DeltaTable(self._address, version=first).create_checkpoint()
        commits, older = self._commits(), []
        for name in self.public.storage.list_files(_LOG):
            version = _VERSION.match(name)
            if version and int(version[1]) < first:
                older.append((commits.get(name, (0, ""))[1] == removed, -int(version[1]), name))
        for _, _, name in sorted(older):
            self.public.storage.delete(name)

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Translate the errors of the libraries, because their texts may contain credentials."""
        try:
            yield
        except (DeltaError, BaseError, OSError, ValueError) as error:
            raise StoreFailed(
                "[publish] path: expected an object store that contains the Delta table of "
                f"{self.public.name} and responds, found an error ({type(error).__name__}). Check that it "
                "can be reached and allows conditional writes, and run this again."
            ) from None


def _copy_of(name: str) -> str:
    """Return the name in the table of a record file ``<release id>/microdata/<file>``."""
    release_id, _, file = name.partition("/microdata/")
    return f"{release_id}-{file}"


def _footer(store: ObjectStore, name: str) -> tuple[bytes, int]:
    """Return the footer of a Parquet file (its metadata), and the size of the file in bytes."""
    size = int(obstore.head(store, name)["size"])
    last = bytes(obstore.get_range(store, name, start=size - 8, end=size))
    length = int.from_bytes(last[:4], "little")
    return bytes(obstore.get_range(store, name, start=size - 8 - length, end=size)), size
