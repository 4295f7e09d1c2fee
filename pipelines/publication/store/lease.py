"""A lease: the lock of an object store, which has none.

One object says who holds it. It is created only where there is none, and changed only as the version that was
read, which the store compares; its holder changes it every few seconds. Who wants it and sees no change for
longer takes it over, by a clock of its own, so that clocks need not agree. A holder that was thought dead
learns of it at its next change, and changes nothing else after that.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import obstore
from microguard.pipelines.engine.files import FileDamaged, parse_json
from microguard.pipelines.publication.store.faults import AreaTaken
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import ObjectStore

LEASE = ".lease"
#: Seconds between two signs of life of a holder, and after how many without one it counts as dead.
BEAT, SILENCE = 10.0, 60.0
#: Seconds between two looks at a lease that another run holds.
LOOK = 1.0


class Lease:
    """The lease of a place.

    Parameters
    ----------
    store : ObjectStore
    beat, silence, look : float
        Seconds, as `BEAT`, `SILENCE` and `LOOK`.
    """

    def __init__(
        self, store: ObjectStore, beat: float = BEAT, silence: float = SILENCE, look: float = LOOK
    ) -> None:
        self._store, self._beat, self._silence, self._look = store, beat, silence, look
        self._holder = secrets.token_hex(16)
        self._changes = 0
        self._version: str | None = None
        self._mutex = threading.Lock()

    @contextmanager
    def hold(self, *, wait: bool = True) -> Iterator[None]:
        """Hold the lease; waits for its holder, or for its silence.

        Raises
        ------
        BlockingIOError
            Where its holder shows life and `wait` is false.
        """
        self._take(wait)
        done = threading.Event()
        beats = threading.Thread(target=self._show_life, args=[done], daemon=True)
        beats.start()
        try:
            yield
        finally:
            done.set()
            beats.join()
            self._give_back()

    @property
    def held(self) -> bool:
        """Whether it was taken here and not given back."""
        return self._version is not None

    def require(self) -> None:
        """Go on only where nobody took the lease over; to be called before what cannot be taken back.

        Raises
        ------
        AreaTaken
        """
        with self._mutex:
            self._change(held=True)

    def _take(self, wait: bool = True) -> None:
        seen, since = "", time.monotonic()
        while True:
            with suppress(AlreadyExistsError):
                answer = obstore.put(self._store, LEASE, self._content(held=True), mode="create")
                self._version = answer["e_tag"]
                return
            content, version = _read(self._store)
            if content["holder"] == self._holder:  # the answer to our own change was lost
                self._version = version
                return
            if version != seen:
                if seen and content["held"] and not wait:
                    raise BlockingIOError
                seen, since = version, time.monotonic()
            if not content["held"] or time.monotonic() - since >= self._silence:
                with suppress(PreconditionError):
                    self._version = self._swap(version, held=True)
                    return
            else:
                time.sleep(self._look)

    def _show_life(self, done: threading.Event) -> None:
        while not done.wait(self._beat):
            with self._mutex, suppress(BaseError):  # the next beat tries again
                try:
                    self._change(held=True)
                except (AreaTaken, FileDamaged):
                    return

    def _give_back(self) -> None:
        with self._mutex, suppress(BaseError, AreaTaken, FileDamaged):  # else its silence says it
            self._change(held=False)
        self._version = None

    def _change(self, *, held: bool) -> None:
        if self._version is None:
            raise AreaTaken("The place is not held by this run.")
        try:
            self._version = self._swap(self._version, held=held)
        except PreconditionError:
            content, version = _read(self._store)
            if content["holder"] != self._holder:
                raise AreaTaken(
                    "Another run took over what this one held in the object store, because this one gave no "
                    "sign of life for some time. What it had published is taken back; call it again."
                ) from None
            self._version = self._swap(version, held=held)  # the answer to the last change was lost

    def _swap(self, version: str, *, held: bool) -> str:
        answer = obstore.put(self._store, LEASE, self._content(held=held), mode={"e_tag": version})
        return str(answer["e_tag"])

    def _content(self, *, held: bool) -> bytes:
        self._changes += 1  # no two versions are the same bytes: some stores name a version by its content
        return json.dumps({"holder": self._holder, "held": held, "change": self._changes}).encode()


def _read(store: ObjectStore) -> tuple[dict[str, object], str]:
    answer = obstore.get(store, LEASE)
    remedy = "Delete it while no run is at work: the next one makes it anew."
    content = parse_json(bytes(answer.bytes()), f"{LEASE} of an object store", remedy, "holder", "held")
    return content, str(answer.meta["e_tag"])
