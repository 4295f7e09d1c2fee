"""Signals that end a command: SIGINT (Ctrl-C), SIGTERM and SIGHUP.

The first raises KeyboardInterrupt, on which locks are released and Spark is stopped; whatever is raised after
it is its consequence. A second one, or a run that does not end within `GRACE` seconds, ends the process at
once: all that is written survives that (`tests/system/test_killed.py`).
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
GRACE = 30.0
"""Seconds from the first signal to the end of the process."""


class Interruption:
    """What became of the signals of one command.

    Attributes
    ----------
    signal : str or None
        Name of the first that came before the verb ended.
    """

    def __init__(self) -> None:
        self.signal: str | None = None
        self._settled = False

    def settle(self) -> None:
        """Raise nothing any more: the verb has ended, and what follows is its answer."""
        self._settled = True

    def note(self, number: int) -> None:
        """Keep the name of the first signal."""
        if self.signal is None and not self._settled:
            self.signal = signal.Signals(number).name

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal of `SIGNALS`, in the main thread: the first raises KeyboardInterrupt."""
        if self._settled:
            return
        self.note(number)
        self.settle()
        java = sys.modules.get("microguard.pipelines.engine.java_process")
        if java is not None:
            java.forget_call()
        raise KeyboardInterrupt


@contextmanager
def interruptible(end: Callable[[Interruption], None]) -> Iterator[Interruption]:
    """Handle the signals of a command; one that is ignored (`nohup`) stays so.

    Parameters
    ----------
    end : callable
        Answers in place of the main thread, which does not get to it; the process ends after it.
    """
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    arrivals, noted = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    before = {
        each: signal.signal(each, interruption.handle)
        for each in SIGNALS
        if signal.getsignal(each) not in (signal.SIG_IGN, None)
    }
    wakes = signal.set_wakeup_fd(noted, warn_on_full_buffer=False)
    watch = threading.Thread(target=_watch, args=[arrivals, interruption, end], daemon=True)
    watch.start()
    try:
        yield interruption
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        signal.set_wakeup_fd(wakes)
        os.write(noted, b"\0")
        watch.join()
        os.close(noted)
        os.close(arrivals)


def _watch(arrivals: int, interruption: Interruption, end: Callable[[Interruption], None]) -> None:
    """End the process at a second signal, or `GRACE` seconds after the first, whatever the main thread does.

    Python hands a signal to the main thread once that is back from compiled code; here it is seen at once.
    """
    seen = 0
    while seen < 2:
        ready, _, _ = select.select([arrivals], [], [], GRACE if seen else None)
        numbers = os.read(arrivals, 64) if ready else bytes(SIGNALS)
        if 0 in numbers:
            return
        for number in filter(SIGNALS.__contains__, numbers):
            interruption.note(number)
            seen += 1
    end(interruption)
