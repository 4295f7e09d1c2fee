"""A public area in a folder: a release is copied under a hidden name and appears in one rename."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microguard.pipelines.engine.files import (
    ANY_FILE,
    FileDamaged,
    checksum,
    copy_durably,
    read_json,
    sync_folder,
    write_atomically,
)
from microguard.pipelines.engine.lock import locked
from microguard.pipelines.publication.key import create_once
from microguard.pipelines.publication.public.public_area import (
    CURRENT,
    IDENTITY,
    MANIFEST,
    current_of,
    identity_of,
    not_what_was_staged,
)
from microguard.schemas.errors import SpecificationError


@dataclass(frozen=True)
class FolderArea:
    """A folder that every node mounts; see `PublicArea`."""

    folder: Path

    @property
    def name(self) -> str:
        """Absolute path."""
        return str(self.folder.resolve())

    def release(self, release_id: str) -> Path:
        """Folder of a release."""
        return self.folder / release_id

    def require_writable(self) -> None:
        """Refuse a place that is no folder, or where none can be made."""
        there = next(each for each in (self.folder, *self.folder.absolute().parents) if each.exists())
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            raise SpecificationError(
                "[publish] path is no folder that can be written, and none can be made there. Choose another "
                "one, or have it made writable for the user who runs this."
            )

    def identity(self) -> str | None:
        """What its identity file says."""
        try:
            return identity_of((self.folder / IDENTITY).read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None

    def begin(self, identity: str) -> None:
        """Make the folder, and link an identity file that is written whole to its name."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / IDENTITY
        try:
            self.identity()
        except FileDamaged:
            path.unlink()
        create_once(path, json.dumps({"area": identity}), ANY_FILE)

    def lock(self) -> AbstractContextManager[None]:
        """Hold the folder; waits for a run with another evidence area that is publishing there."""
        return locked(self.folder)

    def place(self, release_id: str) -> str:
        """Path of a release."""
        return str(self.release(release_id))

    def releases(self) -> list[str]:
        """Folders that have a manifest."""
        if not self.folder.is_dir():
            return []
        return sorted(each.name for each in self.folder.glob("[!.]*") if (each / MANIFEST).is_file())

    def exists(self, release_id: str) -> bool:
        """Whether its manifest is there."""
        return (self.release(release_id) / MANIFEST).is_file()

    def is_whole(self, release_id: str) -> bool:
        """Whether its files have the checksums of its manifest."""
        folder = self.release(release_id)
        try:
            files = _files(folder)
            return all(checksum(folder / name) == named["sha256"] for name, named in files.items())
        except (FileNotFoundError, NotADirectoryError, FileDamaged, ValueError, KeyError, TypeError):
            return False

    def put(
        self, release_id: str, source: Path, checksums: Mapping[str, str], manifest: Mapping[str, Any]
    ) -> None:
        """Copy to a hidden folder, compare every checksum, and rename."""
        folder, incoming = self.release(release_id), self.folder / f".{release_id}.incoming"
        for left in self.folder.glob(".*.incoming"):  # of runs that died while they copied
            shutil.rmtree(left)
        if folder.exists():
            if self.is_whole(release_id) and _holds(folder, checksums):
                return  # of a run whose ledger was lost: readers keep the very files they have
            self.remove(release_id)
        try:
            _copy(source, incoming, checksums, manifest)
            incoming.rename(folder)
        finally:
            shutil.rmtree(incoming, ignore_errors=True)
        sync_folder(self.folder)

    def remove(self, release_id: str) -> None:
        """Rename a release out of sight, then delete it; what an earlier try left goes too."""
        hidden = self.folder / f".{release_id}.withdrawn"
        for path in (hidden, self.folder / f".{release_id}.incoming"):
            if path.exists():
                shutil.rmtree(path)
        folder = self.release(release_id)
        if folder.exists():
            folder.rename(hidden)
            sync_folder(self.folder)
            shutil.rmtree(hidden)

    def current(self) -> str | None:
        """What ``current.json`` names."""
        try:
            return current_of((self.folder / CURRENT).read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None

    def set_current(self, release_id: str | None) -> None:
        """Replace ``current.json``, or remove it."""
        if release_id is not None:
            write_atomically(self.folder / CURRENT, json.dumps({"release_id": release_id}))
        else:
            (self.folder / CURRENT).unlink()
            sync_folder(self.folder)

    @contextmanager
    def reading(self, release_id: str) -> Iterator[Path]:
        """Its own folder."""
        yield self.release(release_id)


def _files(folder: Path) -> dict[str, Any]:
    what = f"{MANIFEST} of release {folder.name}"
    return dict(
        read_json(folder / MANIFEST, what, "Withdraw the release, and run its job again.", "files")["files"]
    )


def _holds(folder: Path, checksums: Mapping[str, str]) -> bool:
    """Whether a whole release is made of these files."""
    return {name: each["sha256"] for name, each in _files(folder).items()} == dict(checksums)


def _copy(source: Path, target: Path, checksums: Mapping[str, str], manifest: Mapping[str, Any]) -> None:
    """Copy what was staged, every file compared with its checksum, and add the manifest."""
    files = {}
    for name, expected in checksums.items():
        copied = target / name
        copied.parent.mkdir(parents=True, exist_ok=True)
        if (source / name).is_file():
            copy_durably(source / name, copied)
        if not copied.is_file() or checksum(copied) != expected:
            raise not_what_was_staged()
        files[name] = {"sha256": expected, "bytes": copied.stat().st_size}
    write_atomically(target / MANIFEST, json.dumps({**manifest, "files": files}, indent=2))
    for folder in [target, *(path for path in target.rglob("*") if path.is_dir())]:
        sync_folder(folder)
