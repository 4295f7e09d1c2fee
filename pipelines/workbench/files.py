"""Detect whether files were replaced since they were read."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

BLOCK_BYTES = 1 << 20


class Files:
    """The files of an input as they were when this was created; create it before they are read."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = tuple(files)
        self._digest = digest_of(self._files)

    def is_replaced(self) -> bool:
        """Return whether their contents are no longer the same."""
        return digest_of(self._files) != self._digest


def digest_of(files: Sequence[Path]) -> str:
    """Return a digest of the contents of files; one that is gone changes it."""
    whole = hashlib.sha256()
    for file in files:
        whole.update(b"\0file\0")
        try:
            with open(file, "rb") as stream:
                while block := stream.read(BLOCK_BYTES):
                    whole.update(block)
        except OSError:
            whole.update(b"gone")
    return whole.hexdigest()
