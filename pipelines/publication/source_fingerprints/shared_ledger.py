"""A ledger that several evidence areas share, so that each knows of the sources that the others published.

An entry a release, put there whole or not at all and never changed, with the sketch of its source beside it.
It lies in a folder or in an object store; what is asked of it is in `SharedLedger`.
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from microguard.pipelines.publication.source_fingerprints.source_fingerprint import SourceSketch
from microguard.schemas.errors import MicroguardError

#: How the names of entries and sketches end.
ENTRY, SKETCH = ".json", ".sketch.parquet"


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
        The areas it is of (`Areas.identity`).
    columns : tuple of str or None
        Published of its records; None in entries of software that did not keep them.
    """

    release_id: str
    name: str
    source: str
    declared: bool
    content: str
    series: str
    public: str
    evidence: str
    columns: tuple[str, ...] | None = None

    def written(self) -> bytes:
        """As it lies in the ledger."""
        return json.dumps(asdict(self), sort_keys=True).encode()


class SharedLedgerDamaged(MicroguardError):
    """An entry cannot be read; nothing can be published beside it."""

    exit_code = 1


class SharedLedger(Protocol):
    """The releases of all evidence areas that share it."""

    def key(self, public: Path | None) -> bytes:
        """The secret that all of them make their sketches by.

        Parameters
        ----------
        public : Path or None
            The public area, where it is a folder: the key does not lie there.

        Raises
        ------
        SpecificationError
        """
        ...

    def lock(self) -> AbstractContextManager[None]:
        """Hold the ledger while a release is published; waits for an area that is publishing."""
        ...

    def entries(self) -> list[SharedEntry]:
        """All releases of all areas, by id.

        Raises
        ------
        SharedLedgerDamaged
        """
        ...

    def sketch(self, release_id: str) -> SourceSketch | None:
        """The sketch of a release's source, if it has one that can be read."""
        ...

    def put(self, entry: SharedEntry, sketch: Path) -> None:
        """Add a release that is about to be published, its sketch first; one that is there stays as it is.

        Raises
        ------
        AreaTaken
            Where another area holds the ledger by now, and may not have seen this release.
        """


def shared_ledger(place: str) -> SharedLedger:
    """The ledger at a path or an address."""
    if "://" in place:
        from microguard.pipelines.publication.source_fingerprints.store_ledger import StoreLedger
        from microguard.pipelines.publication.store.connection import connected

        return StoreLedger(connected(place, "ledger"))
    from microguard.pipelines.publication.source_fingerprints.folder_ledger import FolderLedger

    return FolderLedger(Path(place))


def lock_of(ledger: SharedLedger | None) -> AbstractContextManager[None]:
    """The lock of a ledger, where there is one."""
    return nullcontext() if ledger is None else ledger.lock()


def entry_of(name: str, text: bytes) -> SharedEntry:
    """An entry as it was written.

    Raises
    ------
    SharedLedgerDamaged
    """
    try:
        content = json.loads(text)
        columns = content.get("columns")
        return SharedEntry(**{**content, "columns": None if columns is None else tuple(columns)})
    except (ValueError, TypeError, AttributeError):
        raise SharedLedgerDamaged(
            f"The entry {name} of the shared ledger cannot be read: it is damaged, or of a newer "
            "version of microguard. What it says of a release must not be lost, so nothing is published "
            "beside it. Restore the place of [publish] ledger from its back-up, or use the newer version."
        ) from None
