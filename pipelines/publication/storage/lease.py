"""A lease, which replaces a file lock in a storage without locks.

One file states who holds the lease. A run creates the file only if there is none, and replaces only the
version that it has read. The holder replaces the file every few seconds (heartbeat). A waiting run that sees
no change for a longer time takes the lease over. It measures the time by its own clock, so that clocks need
not agree. A holder that was wrongly believed dead detects this at its next heartbeat and then changes nothing
else.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from microguard.pipelines.engine.files import FileDamaged, parse_json
from microguard.pipelines.publication.storage.faults import AreaTaken, StoreFailed, VersionChanged
from microguard.pipelines.publication.storage.storage import Storage

LEASE = ".lease"
#: Seconds between two heartbeats of a holder, and seconds without a heartbeat after which it counts as dead.
BEAT, SILENCE = 10.0, 60.0
#: Seconds between two reads of a lease that another run holds.
LOOK = 1.0


class Lease:
    """The lease of a storage.

    Parameters
    ----------
    storage : Storage
    beat, silence, look : float
        Seconds, as `BEAT`, `SILENCE` and `LOOK`.
    """

    def __init__(
        self, storage: Storage, beat: float = BEAT, silence: float = SILENCE, look: float = LOOK
    ) -> None:
        self._storage, self._beat, self._silence, self._look = storage, beat, silence, look
        self._holder = secrets.token_hex(16)
        self._changes = 0
        self._version: str | None = None
        self._mutex = threading.Lock()

    @contextmanager
    def hold(self, *, wait: bool = True) -> Iterator[None]:
        """Hold the lease; wait until its holder releases it or its heartbeats stop.

        Raises
        ------
        BlockingIOError
            If another holder is alive and `wait` is false.
        """
        self._take(wait)
        done = threading.Event()
        beats = threading.Thread(target=self._beat_until, args=[done], daemon=True)
        beats.start()
        try:
            yield
        finally:
            done.set()
            beats.join()
            self._give_back()

    def require(self) -> None:
        """Refuse to continue if another run took the lease over; call this before irreversible changes.

        Raises
        ------
        AreaTaken
        """
        with self._mutex:
            self._change(held=True)

    def _take(self, wait: bool = True) -> None:
        seen, since = "", time.monotonic()
        while True:
            with suppress(VersionChanged):
                self._version = self._swap(None, held=True)
                return
            found = self._read()
            if found is None:
                continue
            content, version = found
            if content["holder"] == self._holder:  # the response to this run's own change was lost
                self._version = version
                return
            if version != seen:
                if seen and content["held"] and not wait:
                    raise BlockingIOError
                seen, since = version, time.monotonic()
            if not content["held"] or time.monotonic() - since >= self._silence:
                with suppress(VersionChanged):
                    self._version = self._swap(version, held=True)
                    return
            else:
                time.sleep(self._look)

    def _beat_until(self, done: threading.Event) -> None:
        while not done.wait(self._beat):
            with self._mutex, suppress(StoreFailed):  # the next heartbeat tries again
                try:
                    self._change(held=True)
                except (AreaTaken, FileDamaged):
                    return

    def _give_back(self) -> None:
        with self._mutex, suppress(StoreFailed, AreaTaken, FileDamaged):  # else the lease expires
            self._change(held=False)
        self._version = None

    def _change(self, *, held: bool) -> None:
        if self._version is None:
            raise AreaTaken("The object store is not locked by this run: lock it before writing there.")
        try:
            self._version = self._swap(self._version, held=held)
        except VersionChanged:
            found = self._read()
            if found is None or found[0]["holder"] != self._holder:
                raise AreaTaken(
                    "Another run took over the lock of this one in the object store, because this run did "
                    "not renew the lock for some time. Its release is withdrawn. Run the command again."
                ) from None
            self._version = self._swap(found[1], held=held)  # the response to the last change was lost

    def _swap(self, version: str | None, *, held: bool) -> str:
        self._changes += 1  # makes all contents differ: some stores version by content
        content = {"holder": self._holder, "held": held, "change": self._changes}
        return self._storage.replace(LEASE, json.dumps(content).encode(), version)

    def _read(self) -> tuple[dict[str, object], str] | None:
        found = self._storage.get(LEASE)
        if found is None:
            return None
        remedy = "Delete it while no run is active: the next run creates a new one."
        what = f"{LEASE} of an object store"
        return parse_json(found.content, what, remedy, "holder", "held"), found.version
