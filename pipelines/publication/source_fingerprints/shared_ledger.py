"""A ledger that several evidence areas share, so that each knows the sources published by the others.

Each release has one entry, which is written atomically and never changed, and the fingerprint of its source.
All areas compute fingerprints with one key, because fingerprints with different keys cannot be compared. If
the ledger is a private folder, it contains the key. An object store never contains the key, because everyone
who can read the store would know it. In this case the environment of all areas names a key file, and the
store contains only the name of the key.
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
from microguard.pipelines.publication.key import KEY_VARIABLE, key_at, key_name, required_key
from microguard.pipelines.publication.source_fingerprints.source_fingerprint import SourceFingerprint
from microguard.pipelines.publication.storage.storage import Storage, storage_at
from microguard.schemas.errors import MicroguardError, SpecificationError

#: File name suffixes of entries and fingerprints.
ENTRY, FINGERPRINT = ".json", ".sketch.parquet"
_KEY, _KEY_NAME = "key", "key-name"


@dataclass(frozen=True)
class SharedEntry:
    """The entry of a release for other areas.

    Attributes
    ----------
    release_id, name, source, content : str
    declared : bool
        Whether the specification names the source.
    series : str
        Kind of the series; "" for a single release.
    public, evidence : str
        The public and the evidence area of the release (`Areas.identity`).
    columns : tuple of str or None
        Published columns of its records; None in entries of versions that did not store them.
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
        """Return the content of the file of the entry."""
        return json.dumps(asdict(self), sort_keys=True).encode()


class SharedLedgerDamaged(MicroguardError):
    """Raised if an entry is unreadable; nothing can be published until the entry is repaired."""

    exit_code = 1


class SharedLedger:
    """The releases of all evidence areas that share this ledger.

    Parameters
    ----------
    storage : Storage
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def key(self, public: Path | None) -> bytes:
        """Return the secret with which all areas compute fingerprints.

        Parameters
        ----------
        public : Path or None
            The public area, if it is a folder; the key must not be inside.

        Raises
        ------
        SpecificationError
        """
        self._storage.make()
        if self._storage.is_private and self._storage.folder is not None:
            return key_at(self._storage.folder / _KEY)
        key = required_key(public, "ledger")
        self._storage.require_writable()
        if not self._storage.put_if_absent(_KEY_NAME, key_name(key).encode()):
            raise SpecificationError(
                f"{KEY_VARIABLE}: expected the key of the fingerprints in [publish] ledger, found another "
                "key: nothing could be compared. Name the key that the other evidence areas use."
            )
        return key

    def lock(self) -> AbstractContextManager[None]:
        """Lock the ledger while a release is published; wait for an area that is publishing."""
        return self._storage.lock()

    def entries(self) -> list[SharedEntry]:
        """Return the releases of all areas, by id.

        Raises
        ------
        SharedLedgerDamaged
        """
        entries = []
        for name in self._storage.list_files():
            if name.endswith(ENTRY) and not name.startswith(".") and "/" not in name:
                found = self._storage.get(name)
                entries.append(entry_of(name, b"" if found is None else found.content))
        return entries

    def fingerprint(self, release_id: str) -> SourceFingerprint | None:
        """Return the fingerprint of a release's source; None if there is no readable fingerprint."""
        found = self._storage.get(f"{release_id}{FINGERPRINT}")
        return None if found is None else SourceFingerprint.read(pa.BufferReader(found.content))

    def put(self, entry: SharedEntry, fingerprint: Path) -> None:
        """Add a release before its publication: first its fingerprint, then its entry, which is never
        replaced.

        The lock must be held until the entry is written, so that a run that takes the lock over later finds
        the entry.

        Raises
        ------
        AreaTaken
            If another area took the lock over and may not know this release.
        """
        self._storage.require_lock()
        if fingerprint.is_file():
            self._storage.put(f"{entry.release_id}{FINGERPRINT}", fingerprint)
        self._storage.put_if_absent(f"{entry.release_id}{ENTRY}", entry.written())
        self._storage.require_lock()


def shared_ledger(place: str) -> SharedLedger:
    """Return the ledger at a path or an address."""
    return SharedLedger(storage_at(place, "ledger"))


def lock_of(ledger: SharedLedger | None) -> AbstractContextManager[None]:
    """Return the lock of a ledger; do nothing if there is no ledger."""
    return nullcontext() if ledger is None else ledger.lock()


def entry_of(name: str, text: bytes) -> SharedEntry:
    """Read an entry.

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
            f"The entry {name} of the shared ledger: expected a file that microguard wrote, found one that "
            "is damaged, or of a newer version. Its information on a release must not be lost, so nothing "
            "is published. Restore the place of [publish] ledger from its back-up, or use the newer version."
        ) from None
