"""Progress on standard error: a bar for each stage on a terminal, else a plain line every few seconds."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any

from microguard.pipelines.engine.events import emit
from tqdm import tqdm

#: Seconds between plain lines if standard error is no terminal.
LINE_EVERY = 5.0
#: Seconds between queries of how much is done.
LOOK_EVERY = 0.5


class Progress:
    """Show the running stage and how much of it is done; nothing if `quiet`, events if `events`.

    Attributes
    ----------
    seconds : dict of str to float
        Wall time of each finished stage, for the evidence.
    """

    def __init__(self, quiet: bool = False, events: bool = False) -> None:
        self.quiet = quiet or events
        self._events = events
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(
        self, name: str, total: int | None = None, done: Callable[[], int] | None = None
    ) -> Iterator[None]:
        """Run a stage; `done` returns how much of `total` is finished, and is called twice a second."""
        start = time.monotonic()
        watch = None if self.quiet else _Watch(name, total, done)
        status = "failed"
        self._event(name, "started", blocks=total)
        try:
            if watch is None:
                yield
            else:
                with watch:
                    yield
            status = "done"
        finally:
            seconds = time.monotonic() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds
            self._event(name, status, seconds=round(seconds, 3))

    def warn(self, text: str) -> None:
        """Print a warning, which has no value of a record, even if nothing else is shown."""
        if self._events:
            emit(event="warning", reason=text)
            return
        with suppress(OSError, ValueError):  # a full or closed output does not change the result of a run
            print(f"Warning: {text}", file=sys.stderr, flush=True)

    def _event(self, stage: str, status: str, **more: Any) -> None:
        if self._events:
            given = {key: value for key, value in more.items() if value is not None}
            emit(event="stage", stage=stage, status=status, **given)


class _Watch:
    """A thread that draws one stage."""

    def __init__(self, name: str, total: int | None, done: Callable[[], int] | None) -> None:
        self._name, self._total, self._done = name, total, done
        self._stop = threading.Event()
        self._start = time.monotonic()
        self._bar = (
            tqdm(total=total or 1, desc=name, unit="block" if total else "stage") if _terminal() else None
        )
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        if self._bar is not None:
            if error is None:
                self._bar.n = self._bar.total
            self._bar.close()
        elif error is None:
            self._say(f"done in {time.monotonic() - self._start:.1f} s")

    def _run(self) -> None:
        line = self._start
        while not self._stop.wait(LOOK_EVERY):
            count = self._done() if self._done is not None else 0
            if self._bar is not None:
                self._bar.n = count
                self._bar.refresh()
            elif time.monotonic() - line >= LINE_EVERY:
                line = time.monotonic()
                self._say(
                    f"{count} of {self._total} blocks" if self._total else f"{line - self._start:.0f} s"
                )

    def _say(self, text: str) -> None:
        with suppress(OSError, ValueError):  # a full or closed output does not change the result of a run
            print(f"{self._name}: {text}", file=sys.stderr, flush=True)


def _terminal() -> bool:
    return sys.stderr.isatty()
