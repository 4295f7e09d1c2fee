"""One command from its arguments to its exit code: every ending is one of six, and each says why."""

from __future__ import annotations

import os
import signal
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from jobs.answer import INTERRUPTED, STATUS, Answer, one_line, submitted
from jobs.verbs import VERBS, call, parse
from schemas.errors import MicroguardError

if TYPE_CHECKING:
    from pipelines.engine.outcome import Outcome
    from pipelines.engine.progress import Progress


def run_command(arguments: Sequence[str]) -> int:
    """Run `microguard ARGUMENTS`; the exit code.

    A failure is told in one paragraph on standard error. The text of an error that was not raised on purpose
    is never shown without --debug, as it could hold a value of a record: only its type is.
    """
    command = _Command(arguments)
    try:
        outcome = command.run()
    except MicroguardError as error:
        return command.failed(error.exit_code, str(error))
    except KeyboardInterrupt:
        return command.failed(INTERRUPTED, "Interrupted.")
    except Exception as error:
        return command.failed(1, command.unexpected(error))
    return command.done(outcome)


class _Command:
    """A command line that may end at any moment, even before it is parsed."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.arguments = list(arguments)
        self.verb = next((word for word in arguments if word in VERBS), None)
        self.debug = "--debug" in arguments
        self.quiet = "--quiet" in arguments
        self.log = any(word == "--log" or word.startswith("--log=") for word in arguments)
        self.answer = Answer(arguments, self.verb)
        self.progress: Progress | None = None

    def run(self) -> Outcome:
        self.answer.check()
        parsed = parse(self.arguments)
        if submitted():
            from pipelines.engine.spark_submit import silence

            silence()
        if not self.debug:
            warnings.simplefilter("ignore")
        with _terminated_in_order():
            return call(parsed, self._progress)

    def _progress(self) -> Progress:
        from pipelines.engine.progress import Progress

        self.progress = Progress(quiet=self.quiet, events=self.log)
        return self.progress

    def done(self, outcome: Outcome) -> int:
        if not self.quiet or (self.verb in VERBS and VERBS[self.verb].shown_when_quiet):
            self.answer.summary(outcome.summary())
        self.answer.content(0, outcome.as_json())
        self._end(0, outcome.as_json().get("release_id"))
        return 0

    def failed(self, exit_code: int, reason: str) -> int:
        if self.debug:
            traceback.print_exc()
        self.answer.reason(reason)
        self.answer.content(exit_code, {"reason": one_line(reason)})
        self._end(exit_code, None)
        return exit_code

    def _end(self, exit_code: int, release_id: str | None) -> None:
        if self.log:
            from pipelines.engine.events import emit

            emit(
                event="end",
                verb=self.verb,
                exit_code=exit_code,
                status=STATUS.get(exit_code, "interrupted"),
                release_id=release_id,
            )

    def unexpected(self, error: Exception) -> str:
        stages = list(self.progress.seconds) if self.progress is not None else []
        where = f"in or after the stage {stages[-1]!r}" if stages else f"in {self.verb or 'microguard'}"
        what = type(error).__name__
        if isinstance(error, OSError) and error.errno is not None:
            what += f" ({os.strerror(error.errno)})"  # the system's words alone: a path could hold a value
        return (
            f"Stopped {where} by an unexpected {what}. "
            "Its text is not shown, as it could hold values of records: call again with --debug to see it."
        )


@contextmanager
def _terminated_in_order() -> Iterator[None]:
    """Let SIGTERM end a run as Ctrl-C does: locks released, sessions stopped, the reason told."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
