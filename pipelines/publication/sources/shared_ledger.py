"""A ledger that several evidence areas share, so that each knows of the sources that the others published.

One folder: an entry a release, put there whole or not at all and never changed, with the sketch of its
source beside it, and the key that all of them make their sketches by.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipelines.engine.files import copy_durably, private_folder, sync_folder
from pipelines.engine.lock import locked
from pipelines.publication.areas import key_at
from schemas.errors import MicroguardError

_ENTRY, _SKETCH, _KEY = ".json", ".sketch.parquet", "key"


@dataclass(frozen=True)
class SharedEntry:
    """A release as other areas know it.

    Attributes
    ----------
    release_id, name, source, content : str
    declared : bool
        Whether the specification names the source.
    series : str
        "" where it stands alone.
    public, evidence : str
        The areas it is of.
    """

    release_id: str
    name: str
    source: str
    declared: bool
    content: str
    series: str
    public: str
    evidence: str


class SharedLedgerDamaged(MicroguardError):
    """An entry cannot be read; nothing can be published beside it."""

    exit_code = 1


class SharedLedger:
    """The ledger in a folder.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def key(self) -> bytes:
        """The secret of the sketches; created with mode 0600 where it does not exist yet.

        Raises
        ------
        SpecificationError
        """
        return key_at(private_folder(self._folder) / _KEY)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the ledger while a release is published; waits for an area that is publishing."""
        with locked(private_folder(self._folder)):
            yield

    def entries(self) -> list[SharedEntry]:
        """All releases of all areas, by id.

        Raises
        ------
        SharedLedgerDamaged
        """
        paths = sorted(self._folder.glob(f"[!.]*{_ENTRY}"))
        return [SharedEntry(**_read(path)) for path in paths]

    def sketch(self, release_id: str) -> Path:
        """Where the sketch of a release's source is, if it has one."""
        return self._folder / f"{release_id}{_SKETCH}"

    def put(self, entry: SharedEntry, sketch: Path) -> None:
        """Add a release that is about to be published; one that is there stays as it is."""
        target = private_folder(self._folder) / f"{entry.release_id}{_ENTRY}"
        fresh = target.with_name(f".{target.name}.{os.getpid()}")
        copied = self.sketch(entry.release_id)
        try:
            if sketch.is_file():  # before the entry: what is there has its sketch
                copy_durably(sketch, fresh)
                fresh.replace(copied)
            with open(fresh, "w", encoding="utf-8") as file:
                json.dump(asdict(entry), file, sort_keys=True)
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(fresh, target)
        finally:
            fresh.unlink(missing_ok=True)
        sync_folder(self._folder)


def lock_of(ledger: SharedLedger | None) -> Any:
    """The lock of a ledger, where there is one."""
    return nullcontext() if ledger is None else ledger.lock()


def _read(path: Path) -> dict[str, Any]:
    try:
        content = dict(json.loads(path.read_text(encoding="utf-8")))
        SharedEntry(**content)
    except (OSError, ValueError, TypeError):
        raise SharedLedgerDamaged(
            f"The entry {path.name} of the shared ledger cannot be read: it is damaged, or of a newer "
            "version of microguard. What it says of a release must not be lost, so nothing is published "
            "beside it. Restore the folder of [publish] ledger from its back-up, or use the newer version."
        ) from None
    return content
