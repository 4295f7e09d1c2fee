"""A shared ledger in an object store: entries are put only where there is none, under a lease.

The key never lies there: whoever reads the store sees keyed hashes. It stands in the file that all areas name
in the environment, and the store keeps by which key its sketches are, since one by another key could not be
compared with them and would pass as a stranger.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import obstore
import pyarrow as pa
from microguard.pipelines.publication.key import KEY_VARIABLE, key_name, required_key
from microguard.pipelines.publication.source_fingerprints.shared_ledger import (
    ENTRY,
    SKETCH,
    SharedEntry,
    entry_of,
)
from microguard.pipelines.publication.source_fingerprints.source_fingerprint import SourceSketch
from microguard.pipelines.publication.store.connection import asked, create, require_conditional_writes
from microguard.pipelines.publication.store.lease import Lease
from microguard.schemas.errors import SpecificationError
from obstore.store import ObjectStore

_PLACE = "shared ledger"
_KEY_NAME = "key-name"


class StoreLedger:
    """Everything below an address; see `SharedLedger`.

    Parameters
    ----------
    store : ObjectStore
    """

    def __init__(self, store: ObjectStore, lease: Lease | None = None) -> None:
        self._store = store
        self._lease = Lease(store) if lease is None else lease

    def key(self, public: Path | None) -> bytes:
        """That of the environment, once the store is known to be fit for a ledger, and to be by this key."""
        key = required_key(public, "ledger")
        require_conditional_writes(self._store, "ledger")
        with asked(_PLACE):
            if not create(self._store, _KEY_NAME, key_name(key).encode()):
                raise SpecificationError(
                    f"The sketches of [publish] ledger are by another key than the one that {KEY_VARIABLE} "
                    "names: nothing could be compared. Name the key that the other evidence areas use."
                )
        return key

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lease of the ledger."""
        with asked(_PLACE), self._lease.hold():
            yield

    def entries(self) -> list[SharedEntry]:
        """Its objects."""
        with asked(_PLACE):
            objects = obstore.list_with_delimiter(self._store)["objects"]
            paths = sorted(str(each["path"]) for each in objects if str(each["path"]).endswith(ENTRY))
            return [entry_of(name, bytes(obstore.get(self._store, name).bytes())) for name in paths]

    def sketch(self, release_id: str) -> SourceSketch | None:
        """Beside its entry; a store that does not answer is not one without it."""
        with asked(_PLACE):
            try:
                content = bytes(obstore.get(self._store, f"{release_id}{SKETCH}").bytes())
            except FileNotFoundError:
                return None
        return SourceSketch.read(pa.BufferReader(content))

    def put(self, entry: SharedEntry, sketch: Path) -> None:
        """Put sketch and entry, and go on only where the lease was held until the entry was there.

        Whoever takes the lease over after that finds the entry.
        """
        with asked(_PLACE):
            self._lease.require()
            if sketch.is_file():
                obstore.put(self._store, f"{entry.release_id}{SKETCH}", sketch)
            create(self._store, f"{entry.release_id}{ENTRY}", entry.written())
            self._lease.require()
