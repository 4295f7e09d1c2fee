"""Simulate an object store: each object is a file of a folder, so that a test can inspect it like a reader.

Puts are conditional as in S3: on the absence of an object, or on its entity tag. A request is atomic: no
other thread sees an object between its condition and its last byte.
"""

from __future__ import annotations

import functools
import hashlib
import os
import threading
from dataclasses import dataclass
from pathlib import Path

from obstore.exceptions import AlreadyExistsError, PreconditionError

_MUTEX = threading.RLock()


def _whole(request):
    @functools.wraps(request)
    def alone(*arguments, **options):
        with _MUTEX:
            return request(*arguments, **options)

    return alone


@dataclass(frozen=True)
class Bucket:
    """Objects below a folder, which exists as long as it contains objects."""

    root: Path


class Answer:
    """Response to a request for an object."""

    def __init__(self, content: bytes) -> None:
        self._content, self.meta = content, {"e_tag": _tag(content)}

    def bytes(self) -> bytes:
        """Return the content."""
        return self._content

    def stream(self, min_chunk_size: int):
        """Return the content in pieces."""
        return iter([self._content])


@_whole
def put(bucket, name, content, *, mode=None, chunk_size=None):
    """Write an object unless the condition fails."""
    path, before = bucket.root / name, _read(bucket, name)
    if mode == "create" and before is not None:
        raise AlreadyExistsError("412")
    if isinstance(mode, dict) and (before is None or mode["e_tag"] != _tag(before)):
        raise PreconditionError("412")
    content = content.read_bytes() if isinstance(content, Path) else bytes(content)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return {"e_tag": _tag(content)}


@_whole
def get(bucket, name):
    """Read an object."""
    content = _read(bucket, name)
    if content is None:
        raise FileNotFoundError("404")
    return Answer(content)


def head(bucket, name):
    """Return the metadata of an object."""
    return get(bucket, name).meta


@_whole
def delete(bucket, name):
    """Delete an object; prefixes without objects do not exist."""
    path = bucket.root / name
    path.unlink(missing_ok=True)
    while path.parent != bucket.root and path.parent.is_dir() and not any(path.parent.iterdir()):
        path = path.parent
        path.rmdir()


@_whole
def list(bucket, prefix=None):  # the store library defines this name
    """Return one batch of all objects below a prefix."""
    folder = bucket.root / (prefix or "")
    files = [Path(each) / name for each, _, names in os.walk(folder) for name in names]
    return iter([[{"path": path.relative_to(bucket.root).as_posix()} for path in files]])


@_whole
def list_with_delimiter(bucket):
    """Return the first level of prefixes."""
    folders = bucket.root.iterdir() if bucket.root.is_dir() else ()
    return {"common_prefixes": [each.name for each in folders if each.is_dir()]}


#: Requests that can fail (`disk`), by the name of the library's function.
REQUESTS = {each.__name__: each for each in (put, get, head, delete, list, list_with_delimiter)}


def _read(bucket, name):
    path = bucket.root / name
    return path.read_bytes() if path.is_file() else None


def _tag(content):
    return hashlib.sha256(content).hexdigest()
