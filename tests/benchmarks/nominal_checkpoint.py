"""Answers of a long benchmark, kept as they come: what was interrupted goes on where it stopped.

An answer is kept under its key and the contents of the sources, so that none outlives a change of the code.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import sdc


class Checkpoint:
    """Counts and CPU seconds by key, on disk, with a line of progress for each."""

    def __init__(self, folder: Path | None = None) -> None:
        root = Path(tempfile.gettempdir()) / f"microguard-benchmark-{os.getuid()}"
        self._folder = (folder or root) / _sources()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def counts(self, key: str, solve: Callable[[], np.ndarray]) -> tuple[np.ndarray, float]:
        """The answer under a key, solved where it is not known, and the CPU seconds it took."""
        path = self._folder / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.npz"
        if path.is_file():
            with np.load(path, allow_pickle=False) as known:
                return known["counts"], float(known["seconds"])
        begin = time.process_time()
        counts = solve()
        seconds = time.process_time() - begin
        fresh = path.with_suffix(".fresh.npz")
        np.savez(fresh, counts=counts, seconds=seconds)
        fresh.replace(path)
        print(f"{key}: {seconds:.1f} s", file=sys.stderr, flush=True)
        return counts, seconds


def _sources() -> str:
    content = hashlib.sha256()
    for path in sorted(Path(sdc.__file__).parent.rglob("*.py")):
        content.update(path.read_bytes())
    return content.hexdigest()[:16]
