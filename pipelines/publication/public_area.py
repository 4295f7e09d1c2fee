"""The public area: the place where readers find releases.

A release is visible as a whole or not at all. One small file, ``current.json``, names the release to read.
A `storage` stores the files: a folder or an object store.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from microguard.pipelines.engine.files import FileDamaged, damaged, in_threads, parse_json
from microguard.pipelines.publication.storage.faults import AreaTaken, ContentChanged, VersionChanged
from microguard.pipelines.publication.storage.storage import Storage, storage_at
from microguard.schemas.errors import ProtectionFailed

MANIFEST = "manifest.json"
CURRENT = "current.json"
#: Random identity of the area (`pipelines.publication.area_identity`); independent of key and input.
IDENTITY = ".area.json"
_IDENTITY = re.compile(r"[0-9a-f]{32}")


class PublicArea:
    """Releases by id, and the id of the current release.

    Parameters
    ----------
    storage : Storage
    """

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._version: str | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PublicArea) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def name(self) -> str:
        """Return the absolute path or the address, as written in the ledger."""
        return self.storage.name

    @property
    def folder(self) -> Path | None:
        """Return the folder of the area, which the table formats need; None for an object store."""
        return self.storage.folder

    def require_writable(self) -> None:
        """Refuse a place that cannot be written before hours of computation.

        Raises
        ------
        SpecificationError
        """
        self.storage.require_writable()

    def identity(self) -> str | None:
        """Return the identity in the identity file; None if there is no such file.

        Raises
        ------
        FileDamaged
        """
        found = self.storage.get(IDENTITY)
        if found is None:
            return None
        what = f"{IDENTITY} of the public area"
        remedy = (
            "Restore it from the back-up of the area. The next run rewrites it if the area has a release "
            "that the ledger knows."
        )
        identity = str(parse_json(found.content, what, remedy, "area")["area"])
        if not _IDENTITY.fullmatch(identity):
            raise damaged(what, remedy)
        return identity

    def begin(self, identity: str) -> None:
        """Create the place and give it an identity if it has none; of two writers the first succeeds."""
        self.storage.make()
        try:
            self.identity()
        except FileDamaged:
            self.storage.delete(IDENTITY)
        self.storage.put_if_absent(IDENTITY, json.dumps({"area": identity}).encode())

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the existing area; wait for another run that is publishing there."""
        with self.storage.lock():
            found = self.storage.get(CURRENT)
            self._version = None if found is None else found.version
            yield

    def place(self, release_id: str) -> str:
        """Return the path or address at which readers find a release."""
        return str(self.release(release_id)) if self.folder is not None else f"{self.name}/{release_id}"

    def release(self, release_id: str) -> Path:
        """Return the folder of a release in an area that is a folder."""
        assert self.folder is not None
        return self.folder / release_id

    def releases(self) -> list[str]:
        """Return the ids of all releases in the area, including releases that no ledger knows."""
        return list(filter(self.exists, self.storage.prefixes()))

    def exists(self, release_id: str) -> bool:
        """Return whether readers can see a release."""
        return self.storage.exists(f"{release_id}/{MANIFEST}")

    def is_whole(self, release_id: str) -> bool:
        """Return whether a release has exactly the bytes that its manifest describes."""
        return self._whole_files(release_id) is not None

    def put(
        self, release_id: str, source: Path, checksums: Mapping[str, str], manifest: Mapping[str, Any]
    ) -> None:
        """Make a complete release visible and durable, with its manifest; equal files are not replaced.

        Parameters
        ----------
        source : Path
            Private folder with the files.
        checksums : mapping of file name to str
            SHA-256 of the files when they were verified.
        manifest : mapping
            Written with the checksums and sizes of all files.

        Raises
        ------
        ProtectionFailed
            If a copied file differs from the file that was verified.
        AreaTaken
        """
        files = {
            name: {"sha256": expected, "bytes": path.stat().st_size if path.is_file() else 0}
            for name, expected in checksums.items()
            for path in [source / name]
        }
        content = json.dumps({**manifest, "files": files}, indent=2).encode()
        if self._whole_files(release_id) == dict(checksums):
            # A run whose ledger was lost has put these files: readers keep exactly the files they have. The
            # manifest states what was counted now.
            self.storage.put(f"{release_id}/{MANIFEST}", content)
            return
        self.remove(release_id)
        try:
            self.storage.put_tree(release_id, source, checksums, MANIFEST, content)
        except ContentChanged:
            raise ProtectionFailed(
                f"Release {release_id}: expected the files that were staged and verified, found a file that "
                "changed after it was staged, or while it was copied to the public area. Nothing was "
                "published. Look for a faulty disk or another writer, and call this again."
            ) from None

    def remove(self, release_id: str) -> None:
        """Remove a release, or the part of it that a killed run left.

        Raises
        ------
        OSError, MicroguardError
            If a part of the release could not be removed.
        """
        self.storage.remove_tree(release_id, MANIFEST)

    def current(self) -> str | None:
        """Return the id of the release that ``current.json`` names; None if there is no such file.

        Raises
        ------
        FileDamaged
        """
        found = self.storage.get(CURRENT)
        if found is None:
            return None
        what = f"{CURRENT} of the public area"
        remedy = (
            "Name the release by its own folder, or run the job again: the next run rewrites the file if "
            "the ledger knows every release of the area. Otherwise restore the file of the last release."
        )
        return str(parse_json(found.content, what, remedy, "release_id")["release_id"])

    def set_current(self, release_id: str | None) -> None:
        """Make a release, or none, the current one in one step; call this with the area locked.

        Raises
        ------
        AreaTaken
            If another run changed ``current.json`` since the area was locked.
        """
        self.storage.require_lock()
        if release_id is None:
            self.storage.delete(CURRENT)
            self._version = None
            return
        content = json.dumps({"release_id": release_id}).encode()
        try:
            self._version = self.storage.replace(CURRENT, content, self._version)
        except VersionChanged:
            raise AreaTaken(
                f"{CURRENT} of the public area {self.name}: expected the version of when this run locked "
                "the area, found a newer one of another run. Find out which other program writes there, and "
                "call this again."
            ) from None

    def reading(self, release_id: str) -> AbstractContextManager[Path]:
        """Return a folder with the files of a release; the files stay available inside the context."""
        return self.storage.local_tree(release_id)

    def _whole_files(self, release_id: str) -> dict[str, str] | None:
        """Return the checksums of the files of a release; None unless all of them match its manifest."""
        try:
            found = self.storage.get(f"{release_id}/{MANIFEST}")
            if found is None:
                return None
            what, remedy = (
                f"{MANIFEST} of release {release_id}",
                "Withdraw the release, and run its job again.",
            )
            files = dict(parse_json(found.content, what, remedy, "files")["files"])
            expected = {name: each["sha256"] for name, each in files.items()}
            found_now = in_threads(self.storage.checksum, [f"{release_id}/{name}" for name in expected])
            whole = [each for each, _ in found_now] == list(expected.values())
        except (FileNotFoundError, NotADirectoryError, FileDamaged, ValueError, KeyError, TypeError):
            return None
        return expected if whole else None


def public_area(place: str | Path) -> PublicArea:
    """Return the area at a path or an address."""
    return PublicArea(storage_at(place))
