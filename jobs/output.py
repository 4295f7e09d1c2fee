"""Write the result of a command to standard output, standard error, a JSON line and the file of --outcome.

An output that fails (closed, full, or with another encoding) never changes the exit code.
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
"""Exit code after a signal: 128 + SIGINT, as in shells."""
MAX_LINE_WIDTH = 100
"""Maximum number of characters in a line of a paragraph, for readability."""


class CommandOutput:
    """Outputs that a command line selects; they work even if the command line is faulty.

    The result is written to the stream that is standard output when this object is created.

    Parameters
    ----------
    arguments : sequence of str
        The command line, not yet parsed.
    verb : str or None
        Verb in the command line, if there is one.
    """

    def __init__(self, arguments: Sequence[str], verb: str | None) -> None:
        self._verb = verb
        self._json = "--json" in arguments
        self._events = any(word == "--log" or word.startswith("--log=") for word in arguments)
        file = _option_value("--outcome", arguments)
        self._file = None if file is None else expanded(file)
        self._output = sys.stdout
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")

    def check_outcome_file(self) -> None:
        """Refuse a file of --outcome that cannot be written, before the command does anything.

        Raises
        ------
        SpecificationError
            If the path is a folder, or its folder is not writable.
        """
        if self._file is None:
            return
        folder = Path(self._file).absolute().parent
        if Path(self._file).is_dir() or not os.access(folder, os.W_OK):
            self._file = None
            raise SpecificationError(
                "--outcome: found a path that cannot be written, expected a file in an existing, writable "
                "folder. Create the folder, or choose another path."
            )

    @contextmanager
    def reserve_standard_output(self, debug: bool) -> Iterator[None]:
        """Redirect text that libraries print, such as banners and warnings, away from standard output.

        With --debug it is written to standard error. Otherwise it is discarded, because it could contain a
        value of a record. Exceptions of threads and finalizers and log messages are treated alike.
        """
        if debug:
            with redirect_stdout(sys.stderr):
                yield
            return
        hooks = sys.excepthook, sys.unraisablehook, threading.excepthook, logging.root.manager.disable
        sys.excepthook = sys.unraisablehook = threading.excepthook = _ignore
        logging.disable(logging.CRITICAL)
        try:
            with (
                warnings.catch_warnings(),
                open(os.devnull, "w") as null_device,
                redirect_stdout(null_device),
            ):
                warnings.simplefilter("ignore")
                yield
        finally:
            sys.excepthook, sys.unraisablehook, threading.excepthook, level = hooks
            logging.disable(level)

    def print_summary(self, text: str) -> None:
        """Print the summary for a person to standard output."""
        with _ignore_stream_errors(self._output):
            print(text, file=self._output, flush=True)

    def print_brief(self, text: str) -> None:
        """Print the single line of --quiet; with --json this line is the JSON object."""
        if not self._json:
            self.print_summary(one_line(text))

    def print_reason(self, text: str) -> None:
        """Print the reason for a failure: one text on standard error, or an event with `--log json`."""
        if self._events:
            from microguard.pipelines.engine.events import emit

            emit(event="reason", verb=self._verb, reason=one_line(text))
            return
        with _ignore_stream_errors(sys.stderr):
            print_error_line("\n".join(map(_wrapped, text.splitlines())))

    def write_result(self, exit_code: int, content: dict[str, Any]) -> None:
        """Write the JSON object of --json and --outcome."""
        status = STATUS.get(exit_code, "interrupted")
        whole = {"verb": self._verb, "exit_code": exit_code, "status": status} | content
        if self._json:
            with _ignore_stream_errors(self._output):
                utf8 = (self._output.encoding or "").lower().replace("-", "") == "utf8"
                line = json.dumps(whole, ensure_ascii=not utf8, default=_json_value)
                print(line, file=self._output, flush=True)
        if self._file is not None:
            try:
                _write_atomically(Path(self._file), json.dumps(whole, default=_json_value) + "\n")
            except OSError as error:
                cause = os.strerror(error.errno) if error.errno else type(error).__name__
                self.print_reason(
                    f"--outcome: the file could not be written ({cause}). The exit code is that of the "
                    "command."
                )


def _ignore(*_: object) -> None:
    """Do nothing; used as an exception hook."""


def submitted() -> bool:
    """Return whether spark-submit started this process; it merges standard output and standard error."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def print_error_line(text: str) -> None:
    """Print a line on standard error; below spark-submit only the JVM can write there."""
    if submitted():
        from microguard.pipelines.engine.spark_submit import say

        say(text)
    else:
        print(text, file=sys.stderr, flush=True)


def one_line(text: str) -> str:
    """Remove line breaks and terminal control characters from a text."""
    return legible(" ".join(text.split()))


def _wrapped(line: str) -> str:
    """Wrap a line between words, so that names are not split; the row of a table is indented only."""
    if line.startswith("  "):
        return " " * (len(line) - len(line.lstrip())) + legible(line.strip())
    width = min(shutil.get_terminal_size((MAX_LINE_WIDTH, 24)).columns, MAX_LINE_WIDTH)
    return textwrap.fill(one_line(line), width, break_long_words=False, break_on_hyphens=False)


def _option_value(option: str, arguments: Sequence[str]) -> str | None:
    value = None
    for position, word in enumerate(arguments):
        if word == option:
            value = next(iter(arguments[position + 1 :]), None)
        elif word.startswith(f"{option}="):
            value = word.partition("=")[2]
    return value or None


def _json_value(value: Any) -> Any:
    """Convert a NumPy scalar to a Python number, and any other value to the name of its type."""
    return value.item() if hasattr(value, "item") else type(value).__name__


def _write_atomically(path: Path, text: str) -> None:
    """Write a file atomically: a reader sees the whole new content or the previous file."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
    except OSError:
        with suppress(OSError):
            fresh.unlink()
        raise


@contextmanager
def _ignore_stream_errors(stream: TextIO) -> Iterator[None]:
    """Ignore errors of a stream and discard its buffer, so that the exit code does not change."""
    try:
        yield
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
