"""Progress on standard error: one line for the whole run, with the completed share and the remaining time.

On a terminal the line is rewritten in place, otherwise a new line is written every few seconds. The share is
computed from the measured seconds of the stages (`STAGE_SECONDS`). Within a stage it is computed from the
number of finished blocks if known, else from the time that the stage takes in a run of this speed. A verb
without measured stages shows the stage and the elapsed time.

Stages are also written to the Python log and to the descriptions of Spark's jobs: names of stages and keys,
no value of a record. The logger is ``microguard.run``; handlers and levels of ``microguard`` apply to it. The
command sets none.
"""

from __future__ import annotations

import logging
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Any

from microguard.pipelines.engine.events import emit
from microguard.schemas.errors import MicroguardError

#: Seconds between two lines if standard error is not a terminal.
LINE_EVERY = 5.0
#: Seconds between two updates of the completed share.
LOOK_EVERY = 0.5
#: Maximum share of a stage without a count that is shown before the stage ends.
MOST_GUESSED = 0.95
#: Share of the run after which the remaining time is shown; before it, start-up times make the estimate
#: unreliable.
LEAST_SHARE = 0.1
#: Mean seconds of each stage on 2 cores, measured with `protect` of the demo's 20,000 persons, `adjust` of
#: nine reference tables, and `check` of 14,827 persons of EU-SILC. A stage "protect NAME" is estimated as
#: "protect".
STAGE_SECONDS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "protect": {
            "read": 3.8, "screen": 9.6, "check": 0.8, "compare sources": 5.0, "risk before": 3.9,
            "block": 0.1, "protect": 20.5, "reconcile": 7.9, "measure": 12.1, "write": 1.6, "verify": 3.0,
            "evidence": 1.0, "describe": 0.5, "publish": 0.2,
        },
        "adjust": {
            "read": 1.5, "screen": 1.6, "check": 0.2, "compare sources": 3.8, "tabulate": 1.4, "adjust": 7.2,
            "attack": 1.5, "verify": 0.5, "evidence": 1.0, "describe": 0.5, "publish": 0.2,
        },
        "check": {
            "read": 3.1, "check": 7.3, "risk before": 9.3, "foretell": 3.8, "protect": 2.2, "reconcile": 2.3,
            "measure": 3.2,
        },
    }
)  # fmt: skip


class Progress:
    """Progress of a run on standard error: nothing if `quiet`, events instead of lines if `events`.

    Parameters
    ----------
    verb : str
        Selects the measured seconds of the stages.

    Attributes
    ----------
    seconds : dict of str to float
        Wall time of each finished stage, for the evidence.
    """

    def __init__(self, quiet: bool = False, events: bool = False, verb: str = "") -> None:
        self.quiet = quiet or events
        self._events = events
        self._expected = STAGE_SECONDS.get(verb, {})
        self._start = self._line = time.monotonic()
        self._share = 0.0
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(
        self, name: str, total: int | None = None, done: Callable[[], int] | None = None
    ) -> Iterator[None]:
        """Run a stage; `done` returns the completed part of `total`, and is called twice a second."""
        start = time.monotonic()
        status = "failed"
        self._event(name, "started", blocks=total)
        LOGGER.info("%s started", name)
        try:
            with self._shown(name, total, done), describe_jobs(name):
                yield
            status = "done"
        except BaseException as error:
            log_failure(name, error)
            raise
        finally:
            seconds = time.monotonic() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds
            self._event(name, status, seconds=round(seconds, 3))
            LOGGER.info("%s %s after %.3f s", name, status, seconds)

    def line(self, name: str, seconds: float, total: int | None = None, count: int = 0) -> str:
        """Return the line of a running stage: completed share, stage with its count, elapsed time, remaining
        time.

        Parameters
        ----------
        seconds : float
            Seconds since the stage started.
        total, count : int or None, int
            Total and finished number of blocks of the stage.
        """
        elapsed = time.monotonic() - self._start
        counted = f" {count:,} of {total:,} blocks" if total and total > 1 else ""
        parts = [f"{name}{counted}", f"{_minutes(elapsed)} elapsed"]
        if not self._expected:
            return ", ".join(parts)
        share = self._share_of_run(name, seconds, total, count)
        if share >= LEAST_SHARE:
            parts.append(f"about {_minutes(elapsed * (1 - share) / share)} left")
        return f"{100 * share:3.0f} % {', '.join(parts)}"

    def _share_of_run(self, name: str, seconds: float, total: int | None, count: int) -> float:
        """Return the completed share of the run, which never decreases."""
        known = {_stage(stage) for stage in self.seconds} - {_stage(name)}
        before = sum(self._expected.get(stage, 0.0) for stage in known)
        of_stage = self._expected.get(_stage(name), 0.0)
        within = count / total if total and count else self._guessed(seconds, of_stage, before)
        share = (before + min(within, 1.0) * of_stage) / sum(self._expected.values())
        self._share = max(self._share, min(share, 0.99))
        return self._share

    def _guessed(self, seconds: float, of_stage: float, before: float) -> float:
        """Estimate the completed share of a stage from its elapsed time and the speed of the earlier
        stages.
        """
        taken = sum(self.seconds.values())
        pace = taken / before if before > 0 else 1.0
        return min(seconds / (of_stage * pace), MOST_GUESSED) if of_stage * pace > 0 else 0.0

    @contextmanager
    def _shown(self, name: str, total: int | None, done: Callable[[], int] | None) -> Iterator[None]:
        """Draw the line in a thread while a stage runs; afterwards erase it if the output is a terminal."""
        if self.quiet:
            yield
            return
        stop, start, terminal = threading.Event(), time.monotonic(), sys.stderr.isatty()

        def draw() -> None:
            while not stop.wait(LOOK_EVERY):
                now = time.monotonic()
                if not terminal and now - self._line < LINE_EVERY:
                    continue
                self._line = now
                # an error of the progress display must not change the result of a run
                with suppress(Exception):
                    self._write(self.line(name, now - start, total, 0 if done is None else done()), terminal)

        thread = threading.Thread(target=draw, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            if terminal:
                self._write("", terminal)

    def _write(self, text: str, terminal: bool) -> None:
        # an output that is full or closed must not change the result of a run
        with suppress(OSError, ValueError):
            if terminal:
                width = shutil.get_terminal_size().columns - 1
                print(f"\r{text[:width]}\x1b[K", end="", file=sys.stderr, flush=True)
            else:
                print(text, file=sys.stderr, flush=True)

    def _event(self, stage: str, status: str, **more: Any) -> None:
        if self._events:
            given = {key: value for key, value in more.items() if value is not None}
            emit(event="stage", stage=stage, status=status, **given)


def _stage(name: str) -> str:
    """Return the name of a stage without the name of its clustering."""
    return "protect" if name.startswith("protect ") else name


def _minutes(seconds: float) -> str:
    """Return seconds as minutes:seconds, or hours:minutes:seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


_PROPERTY = "spark.job.description"
LOGGER = logging.getLogger("microguard.run")
LOGGER.addHandler(logging.NullHandler())  # without a handler, Python would print errors to standard error


def log_failure(stage: str, error: BaseException) -> None:
    """Log the class of an error and, for a refusal, the keys of the unmet requirements; do not log the
    message.

    The user who runs a job may see the message, but other people also read logs.
    """
    failures = error.failures if isinstance(error, MicroguardError) else ()
    keys = ", ".join(failure.key for failure in failures)
    LOGGER.error("%s failed: %s%s", stage, type(error).__name__, f" ({keys})" if keys else "")


@contextmanager
def describe_jobs(stage: str) -> Iterator[None]:
    """Set the description of the Spark jobs that this thread starts; restore the description of a classic
    session afterwards.
    """
    context = _context()
    before = None
    if context is not None:
        # an error while setting the description must not change the result of a run
        with suppress(Exception):
            before = context.getLocalProperty(_PROPERTY)
            context.setLocalProperty(_PROPERTY, f"microguard: {stage}")
    try:
        yield
    except BaseException:
        raise  # no call to Java, which may be busy with another call or have ended
    else:
        if context is not None:
            with suppress(Exception):
                context.setLocalProperty(_PROPERTY, before)


def _context() -> Any:
    pyspark = sys.modules.get("pyspark")
    return None if pyspark is None else getattr(pyspark.SparkContext, "_active_spark_context", None)
