"""Storage of audit results in the evidence area, so that a later audit examines only what changed.

The name of a result is a digest of the files from which it was computed, of the code of the audit and of the
versions of its libraries. Every result is signed with the agency's key. Results that are missing, changed or
signed with another key are computed again. Nothing is stored without a key, or if the code cannot be read.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import scipy

#: Minimum size in bytes of an array that is stored in a file of its own, which is memory-mapped and read in
#: parts.
MAPPED = 1 << 20
#: Minimum time in nanoseconds between the last change of a file and reading it. If the time is shorter, a
#: further change could have the same time stamp, so the file is read again in the next audit.
SETTLED = 2_000_000_000
_REST = "rest.npz"


class Kept:
    """Stored results of earlier audits of one population.

    Attributes
    ----------
    known, used : dict of dict
        Entries of the last audit and of this audit, by kind and name: "answers" (what attackers learn in a
        component), "differences" (between large sets) and "exposures" (counts of a whole audit).
    """

    def __init__(self, folder: Path | None, name: str, key: bytes) -> None:
        self._folder, self._name, self._key = folder if key and code() else None, name, key
        self._files: dict[str, list[Any]] = {}
        self._arrays: dict[str, str] = {}
        self._seen: dict[str, list[Any]] = {}
        self.known: dict[str, dict[str, Any]] = {}
        self.used: dict[str, dict[str, Any]] = {"answers": {}, "differences": {}, "exposures": {}}
        self._loaded: dict[str, str] = {}
        if self._folder is not None:
            # a damaged file counts as no stored results
            with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
                self._read(json.loads((self._folder / f"{name}.json").read_text(encoding="utf-8")))

    def _read(self, content: dict[str, Any]) -> None:
        signature = content.pop("signature")
        if hmac.compare_digest(signature, self._signature(content)) and content["code"] == code():
            self._files, self._arrays = content["files"], content["arrays"]
            self.known = {name: content[name] for name in self.used}

    def get(self, kind: str, name: str) -> Any:
        """Return an entry of `answers`, `differences` or `exposures`; None if there is no such entry."""
        found = self.known.get(kind, {}).get(name)
        if found is not None:
            self.used[kind][name] = found
        return found

    def put(self, kind: str, name: str, entry: Any) -> Any:
        """Store an entry, and return it."""
        self.used[kind][name] = entry
        return entry

    def keep_all(self) -> None:
        """Mark all results of an earlier audit as used, because they are still valid."""
        self.used, self._loaded = self.known, self._arrays
        self._seen = {**self._files, **self._seen}

    def digest(self, files: Mapping[str, Path]) -> str:
        """Return a hash of the contents and names of files.

        If size, inode and times of a file are those of the last audit, the stored digest is used.
        """
        digests = {name: self._digest(path) for name, path in sorted(files.items())}
        return hashlib.sha256(json.dumps(digests).encode()).hexdigest()

    def _digest(self, path: Path) -> str:
        if self._folder is None:
            return ""  # nothing was stored yet
        status = path.stat()
        noted = [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
        before = self._files.get(str(path))
        if before is None or before[:-1] != noted:
            with path.open("rb") as file:
                before = [*noted, hashlib.file_digest(file, "sha256").hexdigest()]
        if time.time_ns() - status.st_ctime_ns > SETTLED:
            self._seen[str(path)] = before
        return str(before[-1])

    def load(self, name: str) -> dict[str, np.ndarray] | None:
        """Return the arrays saved under a name; None if there are none or if the file was changed."""
        if self._folder is None or name not in self._arrays:
            return None
        place = self._place(name)
        with suppress(OSError, ValueError, LookupError):
            if self.digest(_inside(place)) != self._arrays[name]:
                return None
            with np.load(place / _REST, allow_pickle=False) as rest:
                arrays = dict(rest)
            for file in sorted(place.glob("*.npy")):
                arrays[file.stem] = np.load(file, mmap_mode="r", allow_pickle=False)
            self._loaded[name] = self._arrays[name]
            return arrays
        return None

    def save(self, name: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Save arrays under a name."""
        if self._folder is None:
            return
        place = self._place(name)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(mode=0o700, parents=True)
        large = {each: array for each, array in arrays.items() if array.nbytes >= MAPPED}
        for each, array in large.items():
            np.save(place / f"{each}.npy", array, allow_pickle=False)
        small: dict[str, Any] = {each: array for each, array in arrays.items() if each not in large}
        np.savez(place / _REST, **small)
        for file in place.iterdir():
            file.chmod(0o600)
        self._loaded[name] = self.digest(_inside(place))

    def write(self) -> None:
        """Write the results used by this audit in one step, and remove all others."""
        if self._folder is None:
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        content = {"code": code(), "files": self._seen, "arrays": self._loaded, **self.used}
        if content == {"code": code(), "files": self._files, "arrays": self._arrays, **self.known}:
            return
        fresh = self._folder / f".{self._name}.{os.getpid()}"
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump({**content, "signature": self._signature(content)}, file)
        fresh.replace(self._folder / f"{self._name}.json")
        for place in self._folder.glob(f"{self._name}-*"):
            if place.name.removeprefix(f"{self._name}-") not in self._loaded:
                shutil.rmtree(place, ignore_errors=True)

    def _place(self, name: str) -> Path:
        assert self._folder is not None
        return self._folder / f"{self._name}-{name}"

    def _signature(self, content: Mapping[str, Any]) -> str:
        text = json.dumps(content, sort_keys=True).encode()
        return hmac.new(self._key, b"joint audit " + text, hashlib.sha256).hexdigest()


@cache
def code() -> str:
    """Return a hash of the code of the audit and its libraries; empty if the code cannot be read.

    Results of other code are not used. Code in an archive (such as a zip file) cannot be read.
    """
    folder = Path(__file__).parents[1]
    files = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*.py")}
    if not files:
        return ""
    parts = [[name, files[name].read_text(encoding="utf-8")] for name in sorted(files)]
    versions = [each.__version__ for each in (np, pd, pa, scipy)]
    return hashlib.sha256(json.dumps([parts, versions]).encode()).hexdigest()


def _inside(place: Path) -> dict[str, Path]:
    return {file.name: file for file in place.iterdir()}
