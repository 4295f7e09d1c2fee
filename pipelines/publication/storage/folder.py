"""Storage in a folder that every machine of a cluster mounts: atomic renames, hard links and file locks."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from microguard.pipelines.engine.files import (
    ANY_FOLDER,
    PRIVATE,
    checksum,
    copy_atomically,
    copy_durably,
    create_once,
    in_threads,
    locked,
    sync_folder,
    write_atomically,
)
from microguard.pipelines.publication.storage.faults import AreaTaken, ContentChanged, VersionChanged
from microguard.pipelines.publication.storage.storage import PLACES, Content, Key
from microguard.schemas.errors import SpecificationError

#: Names of trees that are being copied or deleted, and of files that are being written: `list_files` omits
#: them.
_HIDDEN_TREE = re.compile(r"\..+\.(incoming|withdrawn)")
_FRESH = re.compile(r"\..+\.[0-9]+")


class FolderStorage:
    """Storage in a folder; see `Storage`.

    Parameters
    ----------
    folder : Path
    key : str
        Key of ``[publish]``: the public area is open to readers, every other folder is created for its owner
        alone.
    """

    def __init__(self, folder: Path | str, key: Key = "path") -> None:
        self.folder = Path(folder)
        self.is_private = key != "path"
        self._key: Key = key
        self._held = False

    @property
    def name(self) -> str:
        """Return the absolute path."""
        return str(self.folder.resolve())

    def require_writable(self) -> None:
        """Refuse a path that is not a folder and cannot be created as one."""
        existing = next(each for each in (self.folder, *self.folder.absolute().parents) if each.exists())
        if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
            raise SpecificationError(
                f"[publish] {self._key}: expected a folder that the user who runs this can write or create, "
                f"found none. Choose another {PLACES[self._key]}, or make the folder writable."
            )

    def make(self) -> None:
        """Create the folder."""
        self.folder.mkdir(mode=PRIVATE if self.is_private else ANY_FOLDER, parents=True, exist_ok=True)

    def get(self, name: str) -> Content | None:
        """Read a file; its version is its checksum."""
        try:
            content = (self.folder / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return Content(content, hashlib.sha256(content).hexdigest())

    def exists(self, name: str) -> bool:
        """Return whether there is a file."""
        return (self.folder / name).is_file()

    def put(self, name: str, content: bytes | memoryview | Path) -> None:
        """Write a hidden file, make it durable, and rename it to its name."""
        path = self._path(name)
        if isinstance(content, Path):
            copy_atomically(content, path)
        else:
            write_atomically(path, content)

    def put_if_absent(self, name: str, content: bytes) -> bool:
        """Write a hidden file, and create a hard link with its name."""
        path = self._path(name)
        create_once(path, content)
        return path.read_bytes() == content

    def replace(self, name: str, content: bytes, version: str | None) -> str:
        """Compare the version and rename a new file, with the folder locked."""
        fresh = hashlib.sha256(content).hexdigest()
        if self._held:
            before = self.get(name)
            found = None if before is None else before.version
            if found not in (version, fresh):
                raise VersionChanged(name)
            self.put(name, content)
        else:
            with self.lock():
                self.replace(name, content, version)
        return fresh

    def delete(self, name: str) -> None:
        """Unlink a file."""
        path = self.folder / name
        try:
            path.unlink()
        except (FileNotFoundError, NotADirectoryError):
            return
        sync_folder(path.parent)

    def list_files(self, prefix: str = "") -> list[str]:
        """List the files by walking the folder."""
        names = []
        for folder, folders, files in os.walk(self.folder / prefix):
            folders[:] = [each for each in folders if not _HIDDEN_TREE.fullmatch(each)]
            below = Path(folder).relative_to(self.folder)
            names += [(below / each).as_posix() for each in files if not _FRESH.fullmatch(each)]
        return sorted(names)

    def prefixes(self) -> list[str]:
        """Return the names of the folders that are not hidden."""
        if not self.folder.is_dir():
            return []
        return sorted(each.name for each in self.folder.glob("[!.]*") if each.is_dir())

    def checksum(self, name: str) -> tuple[str, int]:
        """Compute the checksum by reading the file."""
        path = self.folder / name
        return checksum(path), path.stat().st_size

    def download(self, name: str, target: Path) -> None:
        """Copy a file."""
        shutil.copyfile(self.folder / name, target)

    def put_tree(
        self, name: str, source: Path, checksums: Mapping[str, str], last: str, content: bytes
    ) -> None:
        """Copy to a hidden folder, verify the checksum of every copy, and rename the folder."""
        self.require_lock()
        incoming = self.folder / f".{name}.incoming"
        for left in self.folder.glob(".*.incoming"):  # remove trees of runs that died during the copy
            shutil.rmtree(left)

        def copy(file: str) -> None:
            copied = incoming / file
            copied.parent.mkdir(parents=True, exist_ok=True)
            if (source / file).is_file():
                copy_durably(source / file, copied)
            if not copied.is_file() or checksum(copied) != checksums[file]:
                raise ContentChanged(file)

        try:
            in_threads(copy, list(checksums))
            write_atomically(incoming / last, content)
            for folder in [incoming, *(path for path in incoming.rglob("*") if path.is_dir())]:
                sync_folder(folder)
            incoming.rename(self.folder / name)
        finally:
            shutil.rmtree(incoming, ignore_errors=True)
        sync_folder(self.folder)

    def remove_tree(self, name: str, first: str) -> None:
        """Rename a tree to a hidden name, then delete it; also delete what an earlier attempt left."""
        hidden = self.folder / f".{name}.withdrawn"
        for path in (hidden, self.folder / f".{name}.incoming"):
            if path.exists():
                shutil.rmtree(path)
        folder = self.folder / name
        if folder.exists():
            folder.rename(hidden)
            sync_folder(self.folder)
            shutil.rmtree(hidden)

    @contextmanager
    def local_tree(self, name: str) -> Iterator[Path]:
        """Return the folder of the tree itself."""
        yield self.folder / name

    @contextmanager
    def lock(self, *, wait: bool = True) -> Iterator[None]:
        """Lock the folder; the system releases the lock when the process dies."""
        if self.is_private:
            self.make()
        with locked(self.folder, wait=wait):
            self._held = True
            try:
                yield
            finally:
                self._held = False

    def require_lock(self) -> None:
        """Refuse to continue unless `lock` was entered: a file lock cannot be taken over."""
        if not self._held:
            raise AreaTaken(
                f"The {PLACES[self._key]} is not locked by this run: lock it before writing there."
            )

    def _path(self, name: str) -> Path:
        path = self.folder / name
        if path.parent != self.folder:
            path.parent.mkdir(mode=PRIVATE if self.is_private else ANY_FOLDER, parents=True, exist_ok=True)
        return path
