"""One command from its arguments to its exit code: every ending is one of six, and each says why."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from microguard.jobs.answer import INTERRUPTED, STATUS, Answer, one_line, submitted
from microguard.jobs.interruption import Interruption, interruptible
from microguard.jobs.verbs import VERBS, call, parse
from microguard.schemas.errors import MicroguardError

if TYPE_CHECKING:
    from microguard.pipelines.engine.command_result import CommandResult
    from microguard.pipelines.engine.progress import Progress


def run_command(arguments: Sequence[str]) -> int:
    """Run `microguard ARGUMENTS`; the exit code.

    A failure is told in one paragraph on standard error. The text of an error that was not raised on purpose
    is never shown without --debug, as it could hold a value of a record: only its type is.
    """
    command = _Command(arguments)
    with interruptible(command.end_at_once) as interruption:
        try:
            outcome = command.run()
        except SystemExit:  # of --help and --version
            raise
        except BaseException as error:
            interruption.settle()
            if interruption.signal is not None or isinstance(error, KeyboardInterrupt):
                return command.interrupted(interruption)
            if isinstance(error, MicroguardError):
                return command.failed(error.exit_code, str(error))
            if isinstance(error, Exception):
                return command.failed(1, command.unexpected(error))
            raise
        interruption.settle()
        return command.done(outcome)


#: What a line of the ledger means once the process that wrote it has ended.
_TOLD = {
    "waiting": "Release {} is verified and waits for approval.",
    "rejected": "Release {} is rejected.",
    "intended": "Release {} was being published: it is not current, and the next call removes what is there.",
    "published": "Release {} is published.",
    "withdrawing": "Release {} was being withdrawn: it is not current, and the next call removes the rest.",
    "withdrawn": "Release {} is withdrawn.",
}


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
        self._answers = threading.Lock()  # held by who answers, and never released: there is one answer

    def run(self) -> CommandResult:
        self.answer.check()
        parsed = parse(self.arguments)
        if submitted():
            from microguard.pipelines.engine.spark_submit import silence

            silence()
        with self.answer.alone(self.debug):
            return call(parsed, self._progress, lambda table: self.answer.summary(f"{table}\n"))

    def _progress(self) -> Progress:
        from microguard.pipelines.engine.progress import Progress

        self.progress = Progress(quiet=self.quiet, events=self.log)
        return self.progress

    def done(self, outcome: CommandResult) -> int:
        self._answers.acquire()
        if not self.quiet or (self.verb in VERBS and VERBS[self.verb].shown_when_quiet):
            self.answer.summary(outcome.summary())
        self.answer.content(0, outcome.as_json())
        self._end(0, outcome.as_json().get("release_id"))
        return 0

    def failed(self, exit_code: int, reason: str, more: dict[str, Any] | None = None) -> int:
        self._answers.acquire()
        if self.debug:
            traceback.print_exc()
        self.answer.reason(reason)
        self.answer.content(exit_code, {"reason": one_line(reason)} | (more or {}))
        self._end(exit_code, None)
        return exit_code

    def interrupted(self, interruption: Interruption) -> int:
        """Say what became of releases, by what the ledger holds: a signal can come after the publication."""
        by = interruption.signal or "SIGINT"
        told, published = _releases()
        again = "To resume, call this again with the same arguments."
        return self.failed(INTERRUPTED, f"Interrupted by {by}. {told} {again}", {"published": published})

    def end_at_once(self, interruption: Interruption) -> NoReturn:
        """End the process while the main thread is at work still."""
        java = sys.modules.get("microguard.pipelines.engine.java_process")
        if java is not None:
            java.end()
        if self._answers.acquire(timeout=1):  # else the main thread is answering
            self._answers.release()
            self.interrupted(interruption)
        os._exit(INTERRUPTED)

    def _end(self, exit_code: int, release_id: str | None) -> None:
        if self.log:
            from microguard.pipelines.engine.events import emit

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


def _releases() -> tuple[str, list[str]]:
    """What the ledger says last of the releases that this process wrote lines about, and who is published."""
    ledger = sys.modules.get("microguard.pipelines.publication.ledger")
    entries = [] if ledger is None else ledger.written_about()
    told = [_TOLD[entry.event].format(entry.release_id) for entry in entries if entry.event in _TOLD]
    published = [entry.release_id for entry in entries if entry.event == "published"]
    if not published:
        told.append("Nothing was published.")
    return " ".join(told), published
