"""One command from its arguments to its exit code: every ending is one of six, and each says why."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import traceback
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jobs.arguments import VERBS as KNOWN_VERBS
from jobs.arguments import parse
from jobs.verbs import call
from schemas.errors import MicroguardError

if TYPE_CHECKING:
    from pipelines.engine.outcome import Outcome
    from pipelines.engine.progress import Progress

SHOWN_EVEN_IF_QUIET = frozenset({"draft", "check", "verify", "benchmark"})
"""Verbs whose summary is what they were called for."""

STATUS = {
    0: "done",
    1: "failed",
    2: "specification refused",
    3: "input rejected",
    4: "gate refused",
    5: "protection failed",
}
INTERRUPTED = 130
"""128 + SIGINT, as shells have it."""


def run_command(arguments: Sequence[str]) -> int:
    """Run `microguard ARGUMENTS`; the exit code.

    A failure is told in one paragraph on standard error. The text of an error that was not raised on purpose
    is never shown without --debug, as it could hold a value of a record: only its type is.
    """
    run = _Run(arguments)
    try:
        return run.go()
    except MicroguardError as error:
        return run.failed(error.exit_code, str(error))
    except KeyboardInterrupt:
        return run.failed(INTERRUPTED, "Interrupted.")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        return run.failed(1, run.unexpected(error))


class _Run:
    """What an ending needs to know about its beginning, however early it comes."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.arguments = list(arguments)
        self.verb = next((word for word in arguments if word in KNOWN_VERBS), None)
        self.json = "--json" in arguments
        self.debug = "--debug" in arguments
        self.quiet = "--quiet" in arguments
        self.progress: Progress | None = None

    def go(self) -> int:
        parsed = parse(self.arguments)
        if _submitted():
            from pipelines.engine.spark_submit import silence

            silence()
        if not self.debug:
            warnings.simplefilter("ignore")
        outcome = call(parsed, self._progress)
        self._show(outcome)
        return 0

    def _progress(self) -> Progress:
        from pipelines.engine.progress import Progress

        self.progress = Progress(quiet=self.quiet)
        return self.progress

    def _show(self, outcome: Outcome) -> None:
        if not self.quiet or self.verb in SHOWN_EVEN_IF_QUIET:
            print(outcome.summary())
        self._json_line(0, outcome.as_json())
        sys.stdout.flush()

    def failed(self, exit_code: int, reason: str) -> int:
        if self.debug:
            traceback.print_exc()
        _say(_paragraph(reason))
        self._json_line(exit_code, {"reason": " ".join(reason.split())})
        return exit_code

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

    def _json_line(self, exit_code: int, content: dict[str, Any]) -> None:
        if self.json:
            head = {"verb": self.verb, "exit_code": exit_code, "status": STATUS.get(exit_code, "interrupted")}
            print(json.dumps(head | content, ensure_ascii=False, default=_plain), flush=True)


def _submitted() -> bool:
    """Whether spark-submit started this process; it merges our two outputs into one."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _say(text: str) -> None:
    if _submitted():
        from pipelines.engine.spark_submit import say

        say(text)
    else:
        print(text, file=sys.stderr)


def _plain(value: Any) -> Any:
    """Numbers of numpy as numbers of JSON."""
    return value.item()


def _paragraph(text: str) -> str:
    """One paragraph, wrapped between words only, so that names stay whole."""
    width = min(shutil.get_terminal_size((100, 24)).columns, 100)
    return textwrap.fill(" ".join(text.split()), width, break_long_words=False, break_on_hyphens=False)
