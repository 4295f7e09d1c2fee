"""Small files and private folders that survive a crash: atomic replacement, durable names, checksums.

A small JSON file of ours that cannot be read is named (`FileDamaged`), whoever reads it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from microguard.schemas.errors import MicroguardError

PRIVATE, PRIVATE_FILE, ANY_FILE = 0o700, 0o600, 0o666
"""Modes of a folder and a file that are their owner's alone, and of one that the umask decides of."""


class FileDamaged(MicroguardError):
    """A file of ours cannot be read: it is cut off, was changed, or is of a newer version."""

    exit_code = 1


def parse_json(content: bytes, what: str, remedy: str, *keys: str) -> dict[str, Any]:
    """Parse a JSON object of ours.

    Parameters
    ----------
    content : bytes
    what : str
        Names the file in the message.
    remedy : str
        A sentence: what to do if it is damaged.
    *keys : str
        Keys that it must have.

    Raises
    ------
    FileDamaged
    """
    try:
        parsed = json.loads(content)
        for key in keys:
            parsed[key]
        return dict(parsed)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise damaged(what, remedy) from None


def read_json(path: Path, what: str, remedy: str, *keys: str) -> dict[str, Any]:
    """Read a JSON object of ours from a file; see `parse_json`."""
    return parse_json(path.read_bytes(), what, remedy, *keys)


def damaged(what: str, remedy: str) -> FileDamaged:
    """The error of a file that cannot be read."""
    return FileDamaged(
        f"{what}: expected a file that microguard wrote, found one that is cut off, was changed, or is of a "
        f"newer version. {remedy}"
    )


def private_folder(path: Path) -> Path:
    """Create a folder that only its owner may enter; one that exists already keeps the mode it has.

    Missing parents are private as well where they lie in a private folder; others are left to the umask, as
    public folders may come to lie in them.
    """
    missing = [each for each in path.parents if not each.exists()]
    above = next((each for each in path.parents if each.exists()), path)
    private = not above.stat().st_mode & 0o077
    for each in reversed(missing):
        each.mkdir(mode=PRIVATE if private else 0o777, exist_ok=True)
    path.mkdir(mode=PRIVATE, exist_ok=True)
    return path


def write_atomically(path: Path, text: str, mode: int = ANY_FILE) -> None:
    """Replace a small file in one step that survives a crash of the machine."""
    for left in path.parent.glob(f".{path.name}.*"):  # of runs that died while they wrote
        left.unlink(missing_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync_folder(path.parent)


def copy_durably(source: Path, target: Path) -> None:
    """Copy a file so that its contents survive a crash of the machine."""
    shutil.copyfile(source, target)
    with open(target, "rb") as file:
        os.fsync(file.fileno())


def hardlink(source: Path, target: Path) -> None:
    """Give a file that nobody changes a second name, in one step; a copy where a file has one name only."""
    fresh = target.with_name(f".{target.name}")
    fresh.unlink(missing_ok=True)
    try:
        os.link(source, fresh)
    except OSError:
        shutil.copyfile(source, fresh)
    fresh.replace(target)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(path: Path) -> None:
    """Make everything below a folder durable: what other libraries wrote, they may not have."""
    for folder, _, names in os.walk(path):
        for name in names:
            with open(Path(folder) / name, "rb") as file:
                os.fsync(file.fileno())
        sync_folder(Path(folder))


def checksum(path: Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
