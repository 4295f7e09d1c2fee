"""A public area in an object store: a release is there once its manifest is, which is put last.

Nothing can be renamed in an object store, but an object can be put only where there is none, or only in the
place of the version that was read. Manifests are put the first way and ``current.json`` the second, under a
lease. Every file is read back and compared before its manifest is put. Credentials and endpoints are those of
the environment, as the cloud's own tools read them.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import obstore
from microguard.pipelines.engine.files import FileDamaged, parse_json
from microguard.pipelines.publication.public.public_area import (
    CURRENT,
    IDENTITY,
    MANIFEST,
    current_of,
    identity_of,
    not_what_was_staged,
)
from microguard.pipelines.publication.store.connection import (
    CHUNK,
    asked,
    checksum_of,
    create,
    names,
    require_conditional_writes,
)
from microguard.pipelines.publication.store.faults import AreaTaken
from microguard.pipelines.publication.store.lease import Lease
from obstore.exceptions import AlreadyExistsError, PreconditionError
from obstore.store import ObjectStore

_PLACE = "public area"


class ObjectStoreArea:
    """Everything below an address; see `PublicArea`.

    Parameters
    ----------
    name : str
        The address.
    store : ObjectStore
        What is below it.
    """

    folder = None

    def __init__(self, name: str, store: ObjectStore, lease: Lease | None = None) -> None:
        self.name, self._store = name.rstrip("/"), store
        self._lease = Lease(store) if lease is None else lease
        self._current: str | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectStoreArea) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def require_writable(self) -> None:
        """Refuse a store that does not let us write, or does not compare versions."""
        require_conditional_writes(self._store)

    def identity(self) -> str | None:
        """What its identity object says."""
        with asked(_PLACE):
            content = self._read(IDENTITY)[0]
        return None if content is None else identity_of(content)

    def begin(self, identity: str) -> None:
        """Put an identity object where there is none."""
        try:
            self.identity()
        except FileDamaged:
            with asked(_PLACE):
                obstore.delete(self._store, IDENTITY)
        with asked(_PLACE):
            create(self._store, IDENTITY, json.dumps({"area": identity}).encode())

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lease of the area; waits for another run that is publishing there."""
        with asked(_PLACE), self._lease.hold():
            _, self._current = self._read(CURRENT)
            yield

    def place(self, release_id: str) -> str:
        """Address of a release."""
        return f"{self.name}/{release_id}"

    def releases(self) -> list[str]:
        """Prefixes that have a manifest."""
        with asked(_PLACE):
            prefixes = [str(each) for each in obstore.list_with_delimiter(self._store)["common_prefixes"]]
        return sorted(each for each in prefixes if not each.startswith(".") and self.exists(each))

    def exists(self, release_id: str) -> bool:
        """Whether its manifest is there."""
        with asked(_PLACE):
            try:
                obstore.head(self._store, f"{release_id}/{MANIFEST}")
            except FileNotFoundError:
                return False
        return True

    def is_whole(self, release_id: str) -> bool:
        """Whether its objects have the checksums of its manifest."""
        with asked(_PLACE):
            try:
                files = self._files(release_id)
                return all(
                    checksum_of(self._store, f"{release_id}/{name}")[0] == named["sha256"]
                    for name, named in files.items()
                )
            except (FileNotFoundError, FileDamaged, ValueError, KeyError, TypeError):
                return False

    def put(
        self, release_id: str, source: Path, checksums: Mapping[str, str], manifest: Mapping[str, Any]
    ) -> None:
        """Put every file, read it back, and put the manifest where there is none."""
        if self.exists(release_id) and self.is_whole(release_id):
            with asked(_PLACE):
                there = self._files(release_id)
            if {name: each["sha256"] for name, each in there.items()} == dict(checksums):
                return  # of a run whose ledger was lost: readers keep the very files they have
        self.remove(release_id)
        with asked(_PLACE):
            files = {}
            for name, expected in checksums.items():
                if not (source / name).is_file():
                    raise not_what_was_staged()
                self._lease.require()
                obstore.put(self._store, f"{release_id}/{name}", source / name)
                arrived, size = checksum_of(self._store, f"{release_id}/{name}")
                if arrived != expected:
                    raise not_what_was_staged()
                files[name] = {"sha256": expected, "bytes": size}
            self._lease.require()
            text = json.dumps({**manifest, "files": files}, indent=2)
            if not create(self._store, f"{release_id}/{MANIFEST}", text.encode()):
                raise AreaTaken("Another run put this very release into the public area. Call this again.")

    def remove(self, release_id: str) -> None:
        """Delete the manifest, with which the release is gone to readers, then all else."""
        with asked(_PLACE):
            objects = self._objects(release_id)
            for name in sorted(objects, key=lambda name: name != f"{release_id}/{MANIFEST}"):
                with suppress(FileNotFoundError):
                    obstore.delete(self._store, name)

    def current(self) -> str | None:
        """What ``current.json`` names."""
        with asked(_PLACE):
            content = self._read(CURRENT)[0]
        return None if content is None else current_of(content)

    def set_current(self, release_id: str | None) -> None:
        """Put ``current.json`` in the place of the version that was there when the area was taken.

        Raises
        ------
        AreaTaken
            Where another run has moved it since.
        """
        with asked(_PLACE):
            if self._lease.held:
                self._lease.require()
            else:
                _, self._current = self._read(CURRENT)
            if release_id is None:
                obstore.delete(self._store, CURRENT)
                self._current = None
                return
            content = json.dumps({"release_id": release_id}).encode()
            how: Any = "create" if self._current is None else {"e_tag": self._current}
            try:
                self._current = obstore.put(self._store, CURRENT, content, mode=how)["e_tag"]
            except (AlreadyExistsError, PreconditionError):
                there, self._current = self._read(CURRENT)
                if there != content:  # else the answer was lost
                    raise AreaTaken(
                        "Another run moved current.json of the public area while this one published. Look at "
                        "who writes there, and call this again."
                    ) from None

    @contextmanager
    def reading(self, release_id: str) -> Iterator[Path]:
        """A copy in a private folder."""
        with tempfile.TemporaryDirectory(prefix="microguard-") as folder:
            root = Path(folder) / release_id
            with asked(_PLACE):
                for name in self._objects(release_id):
                    target = Path(folder) / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with open(target, "wb") as file:
                        for chunk in obstore.get(self._store, name).stream(min_chunk_size=CHUNK):
                            file.write(chunk)
            yield root

    def _objects(self, release_id: str) -> list[str]:
        return names(self._store, f"{release_id}/")

    def _files(self, release_id: str) -> dict[str, Any]:
        content = bytes(obstore.get(self._store, f"{release_id}/{MANIFEST}").bytes())
        what, remedy = f"{MANIFEST} of release {release_id}", "Withdraw the release, and run its job again."
        return dict(parse_json(content, what, remedy, "files")["files"])

    def _read(self, name: str) -> tuple[bytes | None, str | None]:
        """Content and version of a small object; None where there is none."""
        try:
            answer = obstore.get(self._store, name)
        except FileNotFoundError:
            return None, None
        return bytes(answer.bytes()), str(answer.meta["e_tag"])
