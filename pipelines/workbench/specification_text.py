"""State of the workbench: the text of a specification, with its history.

Every action of the user changes the text; there is no other state. Comments and the order of lines are
preserved, so that two states can be compared line by line.
"""

from __future__ import annotations

import codecs
import hashlib
import os
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomlkit
from microguard.pipelines.drafting.guess import LIKELY, SURE, UNSURE
from microguard.schemas.errors import SpecificationError
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.read import build_specification
from tomlkit.items import Table

#: Sections in which each line is one inline table.
INLINE = ("variables",)
REASON = "REASON, BY WHOM"
"""Placeholder of the reason in a line that accepts a limit (`accept_line`)."""


class SpecificationText:
    """Text of a specification; every change can be undone.

    Parameters
    ----------
    text : str
    path : Path
        File of the specification. Paths in the text are relative to the folder of this file.
    on_disk : bytes, optional
        The content of the file, if the file exists with this text.

    Attributes
    ----------
    changes : list of str
        One line for each change that was not undone.
    """

    def __init__(self, text: str, path: Path, on_disk: bytes | None = None) -> None:
        self.path = path
        self.changes: list[str] = []
        self._texts = [text]
        self._undone: list[tuple[str, str]] = []
        self._mark, self._line_end = _spelling(on_disk or b"")
        self._on_disk = None if on_disk is None else _digest(on_disk)

    @classmethod
    def from_file(cls, path: Path) -> SpecificationText:
        """Open a specification; saving preserves its byte order mark and line ends."""
        written = path.read_bytes()
        text = written.decode("utf-8-sig")
        return cls(text.replace("\r\n", "\n") if _spelling(written)[1] == "\r\n" else text, path, written)

    @property
    def text(self) -> str:
        """Return the current text."""
        return self._texts[-1]

    @property
    def is_saved(self) -> bool:
        """Return whether the text equals the content of the file when it was last read or written."""
        return self._on_disk == _digest(self._encoded())

    def content(self) -> dict[str, Any]:
        """Return the parsed text."""
        return tomllib.loads(self.text)

    def specification(self) -> Specification:
        """Return the parsed and validated specification.

        Raises
        ------
        SpecificationError
            If the text has faults; the error lists all of them.
        """
        return build_specification(self.content(), self.path.absolute().parent, self.path.name)

    def set(self, done: str, *keys: tuple[Sequence[str], Any]) -> None:
        """Change keys of the specification; None removes a key.

        Parameters
        ----------
        done : str
            The change in words, for the history.
        keys : pairs of path and value
            The path of each key, such as ("variables", "age", "role").
        """
        document = tomlkit.parse(self.text)
        for path, value in keys:
            _set(document, path, value)
        self.replace(tomlkit.dumps(document), done)

    def apply_line(self, line: str, reason: str = "") -> None:
        """Apply one line of TOML with its section, such as ``[release] k = 5``.

        Parameters
        ----------
        reason : str
            Replaces the placeholder for the reason in a line that accepts a limit.

        Raises
        ------
        SpecificationError
            If the line is not of this form.
        """
        section, bracket, assignment = line.partition("]")
        try:
            given = tomlkit.parse(f"{section}{bracket}\n{assignment.strip()}\n").unwrap()
        except tomlkit.exceptions.TOMLKitError:
            given = {}
        keys = [
            (path, reason if value == REASON else value) for path, value in _leaves(given, self.content())
        ]
        if ("", REASON) in [(reason.strip(), value) for _, value in _leaves(given, {})]:
            raise SpecificationError("Write the reason, and who accepts the limit.")
        if not keys:
            raise SpecificationError("The line contains no key of the specification: change the key by hand.")
        self.set(line, *keys)

    def replace(self, text: str, done: str) -> None:
        """Replace the text; an unchanged text is not recorded in the history."""
        if text == self.text:
            return
        self._texts.append(text)
        self.changes.append(done)
        self._undone.clear()

    def undo(self) -> None:
        """Return to the text before the last change."""
        if self.changes:
            self._undone.append((self._texts.pop(), self.changes.pop()))

    def redo(self) -> None:
        """Repeat the change that was last undone."""
        if self._undone:
            text, done = self._undone.pop()
            self._texts.append(text)
            self.changes.append(done)

    @property
    def can_redo(self) -> bool:
        """Return whether there is an undone change that can be repeated."""
        return bool(self._undone)

    def save(self) -> None:
        """Write the text to its file.

        Raises
        ------
        SpecificationError
            If the file was changed by somebody else, or cannot be written.
        """
        # a symbolic link is preserved, because its target is written
        place = Path(os.path.realpath(self.path))
        fresh, written = place.with_name(f".{place.name}.{os.getpid()}"), self._encoded()
        try:
            exists = place.exists()
            if exists and _digest(place.read_bytes()) != self._on_disk:
                raise SpecificationError(
                    f"{self.path.name} was changed by another program after it was opened here. Nothing was "
                    "written. Move that file away, or start the workbench again with it."
                )
            # no other user may read the file before it has its final mode
            fresh.touch(0o600 if exists else 0o666)
            fresh.write_bytes(written)
            if exists:
                shutil.copymode(place, fresh)
            fresh.replace(place)
        except OSError as error:
            fresh.unlink(missing_ok=True)
            raise SpecificationError(
                f"{self.path.name} cannot be written ({os.strerror(error.errno or 0)}). Free disk space, or "
                "start the workbench in a folder with write permission."
            ) from None
        self._on_disk = _digest(written)

    def _encoded(self) -> bytes:
        """Return the bytes to write to the file."""
        return self._mark + self.text.replace("\n", self._line_end).encode()


def _spelling(written: bytes) -> tuple[bytes, str]:
    """Return the byte order mark and the line end of a file; mixed line ends are preserved."""
    mark = codecs.BOM_UTF8 if written.startswith(codecs.BOM_UTF8) else b""
    windows = 0 < written.count(b"\r\n") == written.count(b"\n")
    return mark, "\r\n" if windows else "\n"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _set(document: Any, path: Sequence[str], value: Any) -> None:
    """Set or remove one key; create its sections."""
    *sections, key = path
    inside = document
    for depth, name in enumerate(sections):
        if name not in inside:
            if value is None:
                return
            inline = depth > 0 and sections[0] in INLINE
            inside[name] = tomlkit.inline_table() if inline else tomlkit.table()
        inside = inside[name]
    if value is not None:
        comment = _comment(inside, key, value)
        inside[key] = _item(value)
        if comment:
            inside[key].comment(comment)
        if isinstance(inside, Table) and isinstance(value, Mapping):
            inside[key].trivia.trail = "\n"
    elif key in inside:
        del inside[key]


def _comment(inside: Any, key: str, value: Any) -> str:
    """Return a comment that replaces the reason of the draft for another role; empty if there is none."""
    now = inside.get(key)
    if not (isinstance(value, Mapping) and isinstance(now, Mapping)):
        return ""
    words = inside[key].trivia.comment.removeprefix("#").strip()
    drafted = words.partition(":")[0] in (SURE, LIKELY, UNSURE)
    changed = value.get("role", now.get("role")) != now.get("role")
    return f"chosen by hand; the draft proposed {now['role']}" if drafted and changed else ""


def _item(value: Any) -> Any:
    """Return a value as TOML; a table becomes an inline table, a list of tables becomes one table for each
    item.
    """
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        tables = tomlkit.aot()
        for each in value:
            section = tomlkit.table()
            section.update(each)
            tables.append(section)
        return tables
    if isinstance(value, Mapping):
        table = tomlkit.inline_table()
        table.update({key: _item(each) for key, each in value.items()})
        return table
    return list(value) if isinstance(value, tuple) else value


def _leaves(given: Mapping[str, Any], present: Any, path: tuple[str, ...] = ()) -> Any:
    """Yield the path and value of each key of parsed TOML; a list extends the existing list."""
    for name, value in given.items():
        now = present.get(name) if isinstance(present, Mapping) else None
        if isinstance(value, Mapping):
            yield from _leaves(value, now, (*path, name))
        elif isinstance(value, list) and isinstance(now, list):
            yield (*path, name), [*now, *(each for each in value if each not in now)]
        else:
            yield (*path, name), value
