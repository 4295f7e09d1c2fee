"""Where the answer of a command goes: standard output, standard error, a JSON line, the file of --outcome.

An output that fails (closed, full, of another encoding) never changes how the run ended.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import textwrap
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any, TextIO

from microguard.schemas.errors import SpecificationError
from microguard.schemas.paths import expanded
from microguard.schemas.specification.faults import legible

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
WIDEST = 100
"""Characters of a line of a paragraph: more is hard to read."""


class Answer:
    """The outputs that a command line asks for, however faulty it is otherwise.

    Standard output is what it is when this is made: `alone` keeps it for the answer.

    Parameters
    ----------
    arguments : sequence of str
        The command line, not yet parsed.
    verb : str or None
        Its verb, where it names one.
    """

    def __init__(self, arguments: Sequence[str], verb: str | None) -> None:
        self._verb = verb
        self._json = "--json" in arguments
        self._events = any(word == "--log" or word.startswith("--log=") for word in arguments)
        file = _value_of("--outcome", arguments)
        self._file = None if file is None else expanded(file)
        self._output = sys.stdout
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")

    def check(self) -> None:
        """Refuse a file of --outcome that could not be written, before anything is done.

        Raises
        ------
        SpecificationError
        """
        if self._file is None:
            return
        folder = Path(self._file).absolute().parent
        if Path(self._file).is_dir() or not os.access(folder, os.W_OK):
            self._file = None
            raise SpecificationError(
                "--outcome: found a path that cannot be written, allowed: a file in a folder that exists."
            )

    @contextmanager
    def alone(self, debug: bool) -> Iterator[None]:
        """Keep what libraries print, a banner or a warning, out of standard output.

        It goes to standard error with --debug, else nowhere, as nobody knows whether it holds a value; so do
        exceptions of threads and finalizers, and logs.
        """
        if debug:
            with redirect_stdout(sys.stderr):
                yield
            return
        hooks = sys.excepthook, sys.unraisablehook, threading.excepthook, logging.root.manager.disable
        sys.excepthook = sys.unraisablehook = threading.excepthook = _silent
        logging.disable(logging.CRITICAL)
        try:
            with warnings.catch_warnings(), open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
                warnings.simplefilter("ignore")
                yield
        finally:
            sys.excepthook, sys.unraisablehook, threading.excepthook, level = hooks
            logging.disable(level)

    def summary(self, text: str) -> None:
        """What a person called for."""
        with _unbroken(self._output):
            print(text, file=self._output, flush=True)

    def reason(self, text: str) -> None:
        """Why the run ended, in one paragraph on standard error; with `--log json` it is an event."""
        if self._events:
            from microguard.pipelines.engine.events import emit

            emit(event="reason", verb=self._verb, reason=one_line(text))
            return
        with _unbroken(sys.stderr):
            say(_paragraph(text))

    def content(self, exit_code: int, content: dict[str, Any]) -> None:
        """The object of --json and --outcome."""
        status = STATUS.get(exit_code, "interrupted")
        whole = {"verb": self._verb, "exit_code": exit_code, "status": status} | content
        if self._json:
            with _unbroken(self._output):
                utf8 = (self._output.encoding or "").lower().replace("-", "") == "utf8"
                line = json.dumps(whole, ensure_ascii=not utf8, default=_plain)
                print(line, file=self._output, flush=True)
        if self._file is not None:
            try:
                _replace(Path(self._file), json.dumps(whole, default=_plain) + "\n")
            except OSError as error:
                cause = os.strerror(error.errno) if error.errno else type(error).__name__
                self.reason(f"The file of --outcome could not be written: {cause}.")


def _silent(*_: object) -> None:
    """Say nothing."""


def submitted() -> bool:
    """Whether spark-submit started this process; it merges our two outputs into one."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def say(text: str) -> None:
    """A line on standard error, through the JVM where that is the only way there."""
    if submitted():
        from microguard.pipelines.engine.spark_submit import say as say_through_jvm

        say_through_jvm(text)
    else:
        print(text, file=sys.stderr, flush=True)


def one_line(text: str) -> str:
    """Without line breaks, and without characters that a terminal would obey."""
    return legible(" ".join(text.split()))


def _paragraph(text: str) -> str:
    """One paragraph, wrapped between words only, so that names stay whole."""
    width = min(shutil.get_terminal_size((WIDEST, 24)).columns, WIDEST)
    return textwrap.fill(one_line(text), width, break_long_words=False, break_on_hyphens=False)


def _value_of(option: str, arguments: Sequence[str]) -> str | None:
    value = None
    for position, word in enumerate(arguments):
        if word == option:
            value = next(iter(arguments[position + 1 :]), None)
        elif word.startswith(f"{option}="):
            value = word.partition("=")[2]
    return value or None


def _plain(value: Any) -> Any:
    """Numbers of numpy as numbers of JSON; of anything else its type."""
    return value.item() if hasattr(value, "item") else type(value).__name__


def _replace(path: Path, text: str) -> None:
    """Write a file so that whoever looks sees all of it or none."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
    except OSError:
        with suppress(OSError):
            fresh.unlink()
        raise


@contextmanager
def _unbroken(stream: TextIO) -> Iterator[None]:
    """Whatever happens to the stream, the run goes on; what is left in its buffer goes nowhere."""
    try:
        yield
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
