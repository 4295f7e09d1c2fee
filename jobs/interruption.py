"""Handle the signals that end a command: SIGINT (Ctrl-C), SIGTERM and SIGHUP.

The first signal raises KeyboardInterrupt, so that locks are released and Spark is stopped. Exceptions that
are raised afterwards are treated as consequences of the signal. A second signal, or a command that does not
end within `GRACE` seconds, ends the process at once. Published and staged files stay valid even then
(`tests/system/test_killed.py`).
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
"""Maximum number of seconds between the first signal and the end of the process."""


class Interruption:
    """State of signal handling for one command.

    Attributes
    ----------
    signal : str or None
        Name of the first signal that arrived before the verb ended.
    """

    def __init__(self) -> None:
        self.signal: str | None = None
        self._ignoring = False

    def ignore_signals(self) -> None:
        """Ignore further signals, because the verb has ended and its result is being written."""
        self._ignoring = True

    def record(self, number: int) -> None:
        """Record the name of the first signal."""
        if self.signal is None and not self._ignoring:
            self.signal = signal.Signals(number).name

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal of `SIGNALS`, in the main thread: the first raises KeyboardInterrupt."""
        if self._ignoring:
            return
        self.record(number)
        self.ignore_signals()
        java = sys.modules.get("microguard.pipelines.engine.java_process")
        if java is not None:
            java.forget_call()
        raise KeyboardInterrupt


@contextmanager
def interruptible(end: Callable[[Interruption], None]) -> Iterator[Interruption]:
    """Handle the signals of a command; signals that the parent process ignores (`nohup`) stay ignored.

    Parameters
    ----------
    end : callable
        Writes the result if the main thread cannot, and ends the process.
    """
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    read_end, write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    before = {
        each: signal.signal(each, interruption.handle)
        for each in SIGNALS
        if signal.getsignal(each) not in (signal.SIG_IGN, None)
    }
    wakes = signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    watch = threading.Thread(target=_watch, args=[read_end, interruption, end], daemon=True)
    watch.start()
    try:
        yield interruption
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        signal.set_wakeup_fd(wakes)
        os.write(write_end, b"\0")
        watch.join()
        os.close(write_end)
        os.close(read_end)


def _watch(read_end: int, interruption: Interruption, end: Callable[[Interruption], None]) -> None:
    """End the process at a second signal, or `GRACE` seconds after the first.

    Python runs a signal handler only after the main thread has returned from compiled code. This thread reads
    the wake-up descriptor, where signals arrive at once.
    """
    seen = 0
    while seen < 2:
        ready, _, _ = select.select([read_end], [], [], GRACE if seen else None)
        numbers = os.read(read_end, 64) if ready else bytes(SIGNALS)
        if 0 in numbers:
            return
        for number in filter(SIGNALS.__contains__, numbers):
            interruption.record(number)
            seen += 1
    end(interruption)
