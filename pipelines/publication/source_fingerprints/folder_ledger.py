"""A shared ledger in a folder, with the key that all areas make their sketches by."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from microguard.pipelines.engine.files import copy_durably, private_folder, sync_folder
from microguard.pipelines.engine.lock import locked
from microguard.pipelines.publication.key import key_at
from microguard.pipelines.publication.source_fingerprints.shared_ledger import (
    ENTRY,
    SKETCH,
    SharedEntry,
    entry_of,
)
from microguard.pipelines.publication.source_fingerprints.source_fingerprint import SourceSketch

_KEY = "key"


class FolderLedger:
    """A folder that all areas reach; see `SharedLedger`.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def key(self, public: Path | None) -> bytes:
        """Created in the folder, with mode 0600, where it does not exist yet; the folder is not public."""
        return key_at(private_folder(self._folder) / _KEY)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the folder."""
        with locked(private_folder(self._folder)):
            yield

    def entries(self) -> list[SharedEntry]:
        """Its files."""
        paths = sorted(self._folder.glob(f"[!.]*{ENTRY}"))
        return [entry_of(path.name, path.read_bytes()) for path in paths]

    def sketch(self, release_id: str) -> SourceSketch | None:
        """Beside its entry."""
        return SourceSketch.read(self._sketch(release_id))

    def put(self, entry: SharedEntry, sketch: Path) -> None:
        """Link the entry, written whole, to its name."""
        target = private_folder(self._folder) / f"{entry.release_id}{ENTRY}"
        fresh = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            if sketch.is_file():  # before the entry: what is there has its sketch
                copy_durably(sketch, fresh)
                fresh.replace(self._sketch(entry.release_id))
            with open(fresh, "wb") as file:
                file.write(entry.written())
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(fresh, target)
        finally:
            fresh.unlink(missing_ok=True)
        sync_folder(self._folder)

    def _sketch(self, release_id: str) -> Path:
        return self._folder / f"{release_id}{SKETCH}"
