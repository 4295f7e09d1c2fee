"""Run one command from its arguments to its exit code; every failure prints its reason."""

from __future__ import annotations

import errno
import os
import sys
import threading
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from microguard.jobs.interruption import Interruption, interruptible
from microguard.jobs.output import INTERRUPTED, STATUS, CommandOutput, one_line, submitted
from microguard.jobs.parser import parse
from microguard.jobs.verbs import VERBS, call
from microguard.pipelines.engine.extras import missing_extra
from microguard.schemas.errors import MicroguardError

if TYPE_CHECKING:
    from microguard.pipelines.engine.command_result import CommandResult
    from microguard.pipelines.engine.progress import Progress


def run_command(arguments: Sequence[str]) -> int:
    """Run `microguard ARGUMENTS` and return the exit code.

    The reason for a failure is one text on standard error. The text of an unexpected error is shown only
    with --debug, because it could contain a value of a record; otherwise only its type is shown.
    """
    command = _Command(arguments)
    with interruptible(command.end_at_once) as interruption:
        try:
            outcome = command.run()
        except SystemExit:  # --help and --version raise SystemExit
            raise
        except BaseException as error:
            interruption.ignore_signals()
            if interruption.signal is not None or isinstance(error, KeyboardInterrupt):
                return command.interrupted(interruption)
            if isinstance(error, MicroguardError):
                return command.failed(error.exit_code, str(error), _listed(error))
            if isinstance(error, ImportError) and (missing := missing_extra(error)) is not None:
                return command.failed(missing.exit_code, str(missing))
            if isinstance(error, Exception):
                return command.failed(1, command.unexpected(error))
            raise
        interruption.ignore_signals()
        return command.done(outcome)


def _listed(error: MicroguardError) -> dict[str, Any]:
    """Return the failures of an error one by one, for programs."""
    return {"failures": [each.as_json() for each in error.failures]} if error.failures else {}


#: Sentence about a release by its last event in the ledger, for the case that the process ends now.
_LEDGER_SENTENCES = {
    "waiting": "Release {} is verified and pending approval.",
    "rejected": "Release {} is rejected.",
    "intended": "Release {} was interrupted during publication: it is not current, and the next call "
    "removes its files.",
    "published": "Release {} is published.",
    "withdrawing": "Release {} was interrupted during withdrawal: it is not current, and the next call "
    "removes its files.",
    "withdrawn": "Release {} is withdrawn.",
}


_FREE = "Free space in the evidence area, in the public area and in TMPDIR"
_ALLOW = "Give this user the right to read the input and to write to the evidence area and the public area"
#: What to do about errors of the system, whose texts contain no values of records.
_REMEDIES = {
    errno.ENOSPC: _FREE,
    errno.EDQUOT: _FREE,
    errno.EROFS: "Choose an evidence area and a public area that are not read-only",
    errno.EACCES: _ALLOW,
    errno.EPERM: _ALLOW,
    errno.EMFILE: "Allow more open files (ulimit -n)",
}


class _Command:
    """A command line with its outputs; it can be interrupted at any time, even before it is parsed."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.arguments = list(arguments)
        self.verb = next((word for word in arguments if word in VERBS), None)
        self.debug = "--debug" in arguments
        self.quiet = "--quiet" in arguments
        self.log = any(word == "--log" or word.startswith("--log=") for word in arguments)
        self.output = CommandOutput(arguments, self.verb)
        self.progress: Progress | None = None
        # The thread that writes the result acquires this and never releases it, so there is one result.
        self._output_lock = threading.Lock()

    def run(self) -> CommandResult:
        self.output.check_outcome_file()
        parsed = parse(self.arguments)
        if submitted():
            from microguard.pipelines.engine.spark_submit import silence

            silence()
        with self.output.reserve_standard_output(self.debug):
            return call(parsed, self._progress, lambda table: self.output.print_summary(f"{table}\n"))

    def _progress(self) -> Progress:
        from microguard.pipelines.engine.progress import Progress

        self.progress = Progress(quiet=self.quiet, events=self.log, verb=self.verb or "")
        return self.progress

    def done(self, outcome: CommandResult) -> int:
        self._output_lock.acquire()
        if not self.quiet or (self.verb in VERBS and VERBS[self.verb].shown_when_quiet):
            self.output.print_summary(outcome.summary())
        elif outcome.brief:
            self.output.print_brief(outcome.brief)
        self.output.write_result(0, outcome.as_json())
        self._end(0, outcome.as_json().get("release_id"))
        return 0

    def failed(self, exit_code: int, reason: str, more: dict[str, Any] | None = None) -> int:
        self._output_lock.acquire()
        if self.debug:
            traceback.print_exc()
        self.output.print_reason(reason)
        self.output.write_result(exit_code, {"reason": one_line(reason)} | (more or {}))
        self._end(exit_code, None)
        return exit_code

    def interrupted(self, interruption: Interruption) -> int:
        """Report the state of the releases in the ledger: a signal can arrive after the publication."""
        signal_name = interruption.signal or "SIGINT"
        sentences, published = _describe_releases()
        resume = "To resume, call this again with the same arguments."
        reason = f"Interrupted by {signal_name}. {sentences} {resume}"
        return self.failed(INTERRUPTED, reason, {"published": published})

    def end_at_once(self, interruption: Interruption) -> NoReturn:
        """End the process while the main thread is still running."""
        java = sys.modules.get("microguard.pipelines.engine.java_process")
        if java is not None:
            java.end()
        if self._output_lock.acquire(timeout=1):  # if this is false, the main thread is writing the result
            self._output_lock.release()
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
        cause = type(error).__name__
        if isinstance(error, OSError) and error.errno is not None:
            # The system's text for the error number has no path, which could contain a value.
            text = os.strerror(error.errno)
            if error.errno in _REMEDIES:
                return (
                    f"Stopped {where}, because a file could not be written or read: {text}. "
                    f"{_describe_releases()[0]} {_REMEDIES[error.errno]}, then call this again. "
                    "With --debug, it shows the path."
                )
            cause += f" ({text})"
        return (
            f"Stopped {where} by an unexpected {cause}. Its text is hidden, because it could contain values "
            "of records. Call this again with --debug to see it."
        )


def _describe_releases() -> tuple[str, list[str]]:
    """Describe the releases that this process wrote to the ledger; return also the published identifiers."""
    ledger = sys.modules.get("microguard.pipelines.publication.ledger")
    entries = [] if ledger is None else ledger.written_about()
    sentences = [
        _LEDGER_SENTENCES[entry.event].format(entry.release_id)
        for entry in entries
        if entry.event in _LEDGER_SENTENCES
    ]
    published = [entry.release_id for entry in entries if entry.event == "published"]
    if not published:
        sentences.append("Nothing was published.")
    return " ".join(sentences), published
