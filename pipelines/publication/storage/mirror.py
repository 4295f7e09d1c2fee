"""A private folder whose successive states are kept in a storage.

File contents are stored under names that are never used twice (``.objects/<state>-<sha256>``). One file,
``state.json``, maps file names to contents; only the version that was read may be replaced. A state is
therefore stored atomically, and a run that was believed dead cannot overwrite the state of another run. Files
for human readers are also stored under their own names; microguard does not read these copies.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from microguard.pipelines.engine.files import (
    PRIVATE,
    PRIVATE_FILE,
    checksum,
    damaged,
    in_threads,
    write_atomically,
)
from microguard.pipelines.publication.staging.staging_area import Part
from microguard.pipelines.publication.storage.faults import AreaTaken, StoreDamaged, VersionChanged
from microguard.pipelines.publication.storage.storage import Storage
from microguard.schemas.errors import MicroguardError

STATE, OBJECTS = "state.json", ".objects"
#: File of the private folder with the number of the last state that this machine saw.
SEEN = ".seen"
_OBJECT = re.compile(r"([0-9]{8,})-[0-9a-f]{64}")
#: Number of times that a state is read again because another run deleted its contents meanwhile.
_TRIES = 5


@dataclass(frozen=True)
class State:
    """The files of a folder at one point in time.

    Attributes
    ----------
    number : int
        Counted from 1; 0 is the state of an empty storage.
    writer : str
        Random token of the run that stored the state, so that no two states have the same bytes.
    files : dict of str to str
        Name below the folder -> name below `OBJECTS`, which ends in the checksum.
    """

    number: int
    writer: str
    files: dict[str, str]


class MirroredFolder:
    """A private folder and the storage that keeps its successive states.

    Parameters
    ----------
    storage : Storage
    folder : Path
        Folder on this machine that only this user can enter.
    is_stored : callable
        Returns whether a file of this name below the folder is stored.
    is_shown : callable
        Returns whether human readers look for a file by this name.
    """

    def __init__(
        self,
        storage: Storage,
        folder: Path,
        *,
        is_stored: Callable[[str], bool],
        is_shown: Callable[[str], bool],
    ) -> None:
        self.storage, self.folder = storage, folder
        self._is_stored, self._is_shown = is_stored, is_shown
        self._state: State | None = None
        self._version: str | None = None
        self._known: dict[str, tuple[tuple[int, ...], str]] = {}

    @property
    def address(self) -> str:
        """Return the address of the storage."""
        return self.storage.name

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Lock the storage for all machines; fetch its state first, and store the folder at the end.

        Raises
        ------
        BlockingIOError
            If another run holds the lock and is alive.
        AreaTaken
            If another run took the lock over.
        """
        self.storage.require_writable()
        with self.storage.lock(wait=False):
            self.fetch()
            try:
                yield
            except BaseException:
                with suppress(MicroguardError):  # evidence of the failure, which is raised
                    self.keep()
                raise
            self.keep()
            self._sweep()

    def fetch(self) -> None:
        """Make the folder equal to the current state of the storage.

        Raises
        ------
        StoreDamaged
            If the storage has an older state than this machine has seen, or lacks a file of its state.
        """
        for _ in range(_TRIES):
            state, version = self._read()
            if state.number < self._seen():
                raise StoreDamaged(
                    f"The {STATE} of the evidence area: expected state {self._seen()} or a later one, found "
                    f"{state.number}. The object store may have been restored from a back-up, or emptied. "
                    "Continuing would publish without knowledge of these releases. Restore the state after "
                    "the last run."
                )
            try:
                self._download(state)
            except FileNotFoundError:  # another run stored a newer state and deleted the contents it replaced
                continue
            self._state, self._version = state, version
            write_atomically(self.folder / SEEN, str(state.number))
            return
        raise StoreDamaged(
            f"The {STATE} of the evidence area: expected every file that it names, found that the object "
            "store lacks a file. Restore it from its back-up: the file may be the record of a publication."
        )

    def keep(self) -> None:
        """Store the changed files, and then the state; when this returns, both are durable.

        Raises
        ------
        AreaTaken
            If another run stored a state in the meantime.
        """
        if self._state is None:
            raise AreaTaken("The evidence area is not locked by this run: lock it before writing there.")
        before, here = self._state.files, self._here()
        if here == {name: _digest(each) for name, each in before.items()}:
            return
        number = self._state.number + 1
        stored = {_digest(each): each for each in before.values()}
        fresh = {digest: name for name, digest in here.items() if digest not in stored}
        stored |= {digest: f"{number:08d}-{digest}" for digest in fresh}
        in_threads(lambda digest: self._put(fresh[digest], stored[digest]), list(fresh))
        files = {name: stored[digest] for name, digest in here.items()}
        self._swap(State(number, secrets.token_hex(16), files))
        self._show({name for name in {*before, *files} if before.get(name) != files.get(name)})
        write_atomically(self.folder / SEEN, str(number))

    def parts(self, folder: Path) -> list[Part]:
        """Return the Parquet files below a folder, in order, with their names in the storage."""
        assert self._state is not None
        below = f"{folder.relative_to(self.folder).as_posix()}/"
        return [
            Part(f"{OBJECTS}/{each}", size=(self.folder / name).stat().st_size, checksum=_digest(each))
            for name, each in sorted(self._state.files.items())
            if name.startswith(below) and name.endswith(".parquet")
        ]

    def forget(self, prefix: str) -> None:
        """Delete files below a prefix that no state lists; after a failure the next run deletes the rest."""
        with suppress(MicroguardError):
            self.storage.require_lock()
            for name in self.storage.list_files(prefix):
                self.storage.delete(name)

    def _here(self) -> dict[str, str]:
        """Return the checksums of the files to store; files unchanged since the last call are not read."""
        here = {}
        for folder, folders, files in os.walk(self.folder):
            folders.sort()
            for file in sorted(files):
                path = Path(folder) / file
                name = path.relative_to(self.folder).as_posix()
                if self._is_stored(name):
                    status = path.stat()
                    mark = (status.st_mtime_ns, status.st_size, status.st_ino)
                    if name not in self._known or self._known[name][0] != mark:
                        self._known[name] = mark, checksum(path)
                    here[name] = self._known[name][1]
        return here

    def _download(self, state: State) -> None:
        here = self._here()
        for name, object_name in state.files.items():
            if here.get(name) != _digest(object_name):
                self._get(object_name, name)
        for name in sorted(set(here) - set(state.files)):
            path = self.folder / name
            path.unlink()
            while path.parent != self.folder and not any(path.parent.iterdir()):
                path = path.parent
                path.rmdir()

    def _get(self, object_name: str, name: str) -> None:
        path = self.folder / name
        for parent in reversed(path.relative_to(self.folder).parents):
            (self.folder / parent).mkdir(mode=PRIVATE, exist_ok=True)
        fresh = self.folder / f".{object_name}"
        os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE))
        try:
            self.storage.download(f"{OBJECTS}/{object_name}", fresh)
            if checksum(fresh) != _digest(object_name):
                raise StoreDamaged(
                    f"{name} of the evidence area: expected the content that was put into the object store, "
                    "found another one. Restore it from its back-up, and find out who writes there."
                )
            fresh.replace(path)
        finally:
            fresh.unlink(missing_ok=True)

    def _put(self, name: str, object_name: str) -> None:
        self.storage.put(f"{OBJECTS}/{object_name}", self.folder / name)
        if self.storage.checksum(f"{OBJECTS}/{object_name}")[0] != _digest(object_name):
            raise StoreDamaged(
                f"{name} of the evidence area: expected the content that was verified, found that it changed "
                "while it was put into the object store. Find the other writer of the private folder, and "
                "call this again."
            )

    def _read(self) -> tuple[State, str | None]:
        found = self.storage.get(STATE)
        if found is None:
            return State(0, "", {}), None
        try:
            content: dict[str, Any] = json.loads(found.content)
            state = State(int(content["number"]), str(content["writer"]), dict(content["files"]))
            sound = all(
                _is_below(name) and _OBJECT.fullmatch(object_name)
                for name, object_name in state.files.items()
            )
        except (ValueError, KeyError, TypeError):
            sound = False
        if not sound:
            raise StoreDamaged(
                f"The {STATE} of the evidence area: expected a file that microguard wrote, found one that is "
                "damaged, or of a newer version. Restore it from its back-up, or use the newer version."
            )
        return state, found.version

    def _swap(self, state: State) -> None:
        try:
            content = json.dumps(vars(state), sort_keys=True).encode()
            self._version = self.storage.replace(STATE, content, self._version)
        except VersionChanged:
            self._state = None
            raise AreaTaken(
                "Another run took over the lock of the evidence area, because this run did not renew the "
                "lock for some time. Since then nothing of this run was stored. Run the command again."
            ) from None
        self._state = state

    def _show(self, changed: set[str]) -> None:
        """Store the files for human readers under their own names, too; delete the names of removed files."""
        for name in sorted(filter(self._is_shown, changed)):
            if (self.folder / name).is_file():
                self.storage.put(name, self.folder / name)
            else:
                self.storage.delete(name)

    def _sweep(self) -> None:
        """Delete the contents that no state refers to any more; no later state can refer to them again."""
        assert self._state is not None
        named = set(self._state.files.values())
        for name in self.storage.list_files(OBJECTS):
            object_name = name.removeprefix(f"{OBJECTS}/")
            ours = _OBJECT.fullmatch(object_name)
            if ours is not None and object_name not in named and int(ours[1]) <= self._state.number:
                self.storage.delete(name)

    def _seen(self) -> int:
        path = self.folder / SEEN
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else "0"
        if not text.isdecimal():
            raise damaged(
                f"{SEEN} of the private copy of the evidence area",
                f"Remove the folder {self.folder}: the next run copies it again.",
            )
        return int(text)


def _is_below(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def _digest(object_name: str) -> str:
    return object_name.partition("-")[2]
