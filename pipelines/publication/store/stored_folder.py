"""A private folder that is kept in an object store, which holds whole states of it, one after the other.

Contents are put under names that are never used twice (``.objects/<state>-<sha256>``), and one object,
``state.json``, says which file has which. It is put in the place of the version that was read: a state is
there whole or not at all, and a run that was thought dead cannot put one behind another's. What people read
lies under its own name as well; nothing is read back from there.
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

import obstore
from microguard.pipelines.engine.files import PRIVATE, PRIVATE_FILE, checksum, damaged, write_atomically
from microguard.pipelines.publication.staging.staging_area import Part
from microguard.pipelines.publication.store.connection import (
    CHUNK,
    asked,
    checksum_of,
    names,
    require_conditional_writes,
)
from microguard.pipelines.publication.store.faults import AreaTaken, StoreDamaged
from microguard.pipelines.publication.store.lease import Lease
from microguard.schemas.errors import MicroguardError
from obstore.exceptions import AlreadyExistsError, PreconditionError
from obstore.store import ObjectStore

STATE, OBJECTS = "state.json", ".objects"
#: In the private folder: the last state that was seen here.
SEEN = ".seen"
_PLACE = "evidence area"
_OBJECT = re.compile(r"([0-9]{8,})-[0-9a-f]{64}")
#: How often a state is read again whose objects another run has taken away meanwhile.
_TRIES = 5


@dataclass(frozen=True)
class State:
    """What a folder holds.

    Attributes
    ----------
    number : int
        Counted from 1; 0 is that of a store with nothing in it.
    writer : str
        Who put it: no two states are the same bytes.
    files : dict of str to str
        Name below the folder to name below `OBJECTS`, which ends in the checksum.
    """

    number: int
    writer: str
    files: dict[str, str]


class StoredFolder:
    """A private folder and the store that holds its states.

    Parameters
    ----------
    address : str
    store : ObjectStore
        What is below the address.
    folder : Path
        On this machine, of this user alone.
    is_stored : callable
        Whether a file of this name below the folder goes into the store.
    is_shown : callable
        Whether people look for it by its name.
    """

    def __init__(
        self,
        address: str,
        store: ObjectStore,
        folder: Path,
        *,
        is_stored: Callable[[str], bool],
        is_shown: Callable[[str], bool],
    ) -> None:
        self.address, self.folder = address.rstrip("/"), folder
        self._store, self._is_stored, self._is_shown = store, is_stored, is_shown
        self._lease = Lease(store)
        self._state: State | None = None
        self._version: str | None = None
        self._known: dict[str, tuple[tuple[int, ...], str]] = {}

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the folder for all machines, as the store has it; how it was left is kept in the end.

        Raises
        ------
        BlockingIOError
            Where another run holds it and shows life.
        AreaTaken
            Where another run has taken it over since.
        """
        require_conditional_writes(self._store, "evidence")
        with asked(_PLACE), self._lease.hold(wait=False):
            self.fetch()
            try:
                yield
            except BaseException:
                with suppress(MicroguardError):  # why a run failed is evidence, too, and comes first
                    self.keep()
                raise
            self.keep()
            self._sweep()

    def fetch(self) -> None:
        """Make the folder what the store says.

        Raises
        ------
        StoreDamaged
            Where the store has an older state than this machine has seen, or lacks a part of it.
        """
        with asked(_PLACE):
            for _ in range(_TRIES):
                state, version = self._read()
                if state.number < self._seen():
                    raise StoreDamaged(
                        "The object store of the evidence area holds an older state than this machine has "
                        "seen: it may have been restored from a back-up, or emptied. Going on would publish "
                        "beside releases that it does not know. Restore it as it was after the last run."
                    )
                try:
                    self._bring(state)
                except FileNotFoundError:  # another run has put a newer state, and swept what it replaced
                    continue
                self._state, self._version = state, version
                write_atomically(self.folder / SEEN, str(state.number))
                return
            raise StoreDamaged(
                "The object store of the evidence area lacks a file that its state names. Restore it from "
                "its back-up: what is lost may say what readers have seen."
            )

    def keep(self) -> None:
        """Put what changed, and then the state that it makes; when this returns, both are durable.

        Raises
        ------
        AreaTaken
            Where another run has put a state since.
        """
        if self._state is None:
            raise AreaTaken("The evidence area is not held by this run.")
        before, here = self._state.files, self._here()
        if here == {name: _digest(each) for name, each in before.items()}:
            return
        with asked(_PLACE):
            number = self._state.number + 1
            there = {_digest(each): each for each in before.values()}
            for name, digest in here.items():
                if digest not in there:
                    there[digest] = f"{number:08d}-{digest}"
                    self._put(name, there[digest])
            files = {name: there[digest] for name, digest in here.items()}
            self._swap(State(number, secrets.token_hex(16), files))
            self._show({name for name in {*before, *files} if before.get(name) != files.get(name)})
        write_atomically(self.folder / SEEN, str(number))

    def parts(self, folder: Path) -> list[Part]:
        """The Parquet files below a folder, in order, as the store holds them."""
        assert self._state is not None
        below = f"{folder.relative_to(self.folder).as_posix()}/"
        return [
            Part(f"{OBJECTS}/{each}", size=(self.folder / name).stat().st_size, checksum=_digest(each))
            for name, each in sorted(self._state.files.items())
            if name.startswith(below) and name.endswith(".parquet")
        ]

    def forget(self, prefix: str) -> None:
        """Delete what lies below a prefix and is in no state; whoever comes next does where this cannot."""
        with suppress(MicroguardError), asked(_PLACE):
            self._lease.require()
            for name in names(self._store, prefix):
                with suppress(FileNotFoundError):
                    obstore.delete(self._store, name)

    def _here(self) -> dict[str, str]:
        """Checksums of the files that are kept; what has not been touched since is not read again."""
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

    def _bring(self, state: State) -> None:
        here = self._here()
        for name, object_name in state.files.items():
            if here.get(name) != _digest(object_name):
                self._get(object_name, self.folder / name)
        for name in sorted(set(here) - set(state.files)):
            path = self.folder / name
            path.unlink()
            while path.parent != self.folder and not any(path.parent.iterdir()):
                path = path.parent
                path.rmdir()

    def _get(self, object_name: str, path: Path) -> None:
        for parent in reversed(path.relative_to(self.folder).parents):
            (self.folder / parent).mkdir(mode=PRIVATE, exist_ok=True)
        fresh = self.folder / f".{object_name}"
        answer = obstore.get(self._store, f"{OBJECTS}/{object_name}")
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE), "wb") as file:
            for chunk in answer.stream(min_chunk_size=CHUNK):
                file.write(chunk)
        if checksum(fresh) != _digest(object_name):
            fresh.unlink()
            raise StoreDamaged(
                "A file of the evidence area is not what was put into its object store. Restore it from its "
                "back-up, and look at who writes there."
            )
        fresh.replace(path)

    def _put(self, name: str, object_name: str) -> None:
        obstore.put(self._store, f"{OBJECTS}/{object_name}", self.folder / name)
        if checksum_of(self._store, f"{OBJECTS}/{object_name}")[0] != _digest(object_name):
            raise StoreDamaged(
                "A file of the evidence area changed while it was put into the object store. Look for "
                "another writer of the private folder, and call this again."
            )

    def _read(self) -> tuple[State, str | None]:
        try:
            answer = obstore.get(self._store, STATE)
        except FileNotFoundError:
            return State(0, "", {}), None
        try:
            content: dict[str, Any] = json.loads(bytes(answer.bytes()))
            state = State(int(content["number"]), str(content["writer"]), dict(content["files"]))
            sound = all(
                _is_below(name) and _OBJECT.fullmatch(object_name)
                for name, object_name in state.files.items()
            )
        except (ValueError, KeyError, TypeError):
            sound = False
        if not sound:
            raise StoreDamaged(
                f"The {STATE} of the evidence area cannot be read: it is damaged, or of a newer version of "
                "microguard. Restore it from its back-up, or use the newer version."
            )
        return state, str(answer.meta["e_tag"])

    def _swap(self, state: State) -> None:
        content = json.dumps(vars(state), sort_keys=True).encode()
        how: Any = "create" if self._version is None else {"e_tag": self._version}
        try:
            self._version = str(obstore.put(self._store, STATE, content, mode=how)["e_tag"])
        except (AlreadyExistsError, PreconditionError):
            there, version = self._read()
            if there != state:  # else the answer was lost
                self._state = None
                raise AreaTaken(
                    "Another run took the evidence area over, because this one gave no sign of life for some "
                    "time. Nothing of this one counts from here on; call it again."
                ) from None
            self._version = version
        self._state = state

    def _show(self, changed: set[str]) -> None:
        """Put what people read under its own name, too, and take away what is gone."""
        for name in sorted(filter(self._is_shown, changed)):
            if (self.folder / name).is_file():
                obstore.put(self._store, name, self.folder / name)
            else:
                with suppress(FileNotFoundError):
                    obstore.delete(self._store, name)

    def _sweep(self) -> None:
        """Delete what no state names any more, or ever did: no later one can name it again."""
        assert self._state is not None
        named = set(self._state.files.values())
        for name in names(self._store, f"{OBJECTS}/"):
            object_name = name.removeprefix(f"{OBJECTS}/")
            ours = _OBJECT.fullmatch(object_name)
            if ours is not None and object_name not in named and int(ours[1]) <= self._state.number:
                with suppress(FileNotFoundError):
                    obstore.delete(self._store, name)

    def _seen(self) -> int:
        path = self.folder / SEEN
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else "0"
        if not text.isdecimal():
            raise damaged(
                f"{SEEN} of the private copy of the evidence area",
                f"Remove the folder {self.folder}: the copy is made anew.",
            )
        return int(text)


def _is_below(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def _digest(object_name: str) -> str:
    return object_name.partition("-")[2]
