"""The Java process of this process's sessions: it starts once, ignores signals, and ends when we end it."""

from __future__ import annotations

import locale
import logging
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import py4j.java_gateway
from microguard.schemas.errors import MicroguardError
from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.errors import PySparkRuntimeError

#: Files that a run on a small input opens at once, at most.
OPEN_FILES = 512
#: Signals that a terminal or a supervisor sends to all processes of a run: what they mean, this one decides.
_OF_THE_RUN = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: Locales by which Java names files in UTF-8, on the systems that there are.
_UTF8 = ("C.UTF-8", "C.utf8", "en_US.UTF-8", "en_US.utf8")
_started: list[_Java] = []


class _Java(subprocess.Popen[bytes]):
    """Spark's launcher, which becomes Java; in place of the `Popen` that pyspark would call."""

    def __init__(self, command: list[str], **options: Any) -> None:
        options["env"] |= _locale_of_java()
        options["preexec_fn"] = _ignore_signals
        _started.append(self)
        super().__init__(command, **options)


def start_java(settings: Mapping[str, str]) -> None:
    """Start the Java process of this process's sessions, if there is none.

    What it and the Python workers behind it print is not kept: a traceback of a worker can hold values.

    Raises
    ------
    MicroguardError
        Where it does not start, or may open too few files.
    """
    _require_open_files()
    silence_calls()
    with SparkContext._lock:  # as pyspark does where it starts Java itself
        if SparkContext._gateway is None:
            conf = SparkConf().setAll(list(settings.items()))
            silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            try:
                with _launched_by(_Java):
                    gateway = java_gateway.launch_gateway(conf, silent)
            except PySparkRuntimeError:
                raise MicroguardError(
                    f"Java ({os.environ.get('JAVA_HOME', 'JAVA_HOME is not set')}): expected a process that "
                    "starts, found one that ended. Look at what it may use (ulimit -a, the memory of the "
                    "container) and at JAVA_TOOL_OPTIONS; `java -version` says whether it starts at all."
                ) from None
            SparkContext._ensure_initialized(gateway=gateway)


def silence_calls() -> None:
    """Keep py4j from logging the traceback of a call to Java that a signal interrupts, or that Java ends.

    py4j writes it to the root logger, and so to standard error. Whoever called says why.
    """
    logging.getLogger().addFilter(_not_of_py4j)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return record.pathname != py4j.java_gateway.__file__


def end() -> None:
    """End the Java process at once, also one that is starting."""
    for java in _started:
        with suppress(OSError, AttributeError):  # one without a process id yet is ended by nobody
            java.kill()


def forget_call() -> None:
    """Let the next call to Java take a connection of its own.

    A call of the main thread that a signal interrupts leaves its answer on the connection, where the next
    call would take it for its own, or wait for it.
    """
    gateway = SparkContext._gateway
    client = getattr(gateway, "_gateway_client", None)
    if client is not None and hasattr(client, "thread_connection"):
        client.thread_connection.connection = None


@contextmanager
def without_signal_handler() -> Iterator[None]:
    """Keep this process's handler of SIGINT while pyspark makes a context.

    Its own calls Java from within the call that it interrupts.
    """
    context: Any = sys.modules[SparkContext.__module__]
    theirs = context.signal
    context.signal = _NoHandlers
    try:
        yield
    finally:
        context.signal = theirs


class _NoHandlers:
    """What pyspark sees of the module `signal`."""

    SIGINT = signal.SIGINT

    @staticmethod
    def signal(*_: object) -> None:
        """Set no handler."""


@contextmanager
def _launched_by(popen: type[subprocess.Popen[bytes]]) -> Iterator[None]:
    gateway: Any = java_gateway
    theirs = gateway.Popen
    gateway.Popen = popen
    try:
        yield
    finally:
        gateway.Popen = theirs


def _require_open_files() -> None:
    """Refuse a limit that is known to be too low; Java itself takes all that it may."""
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit != resource.RLIM_INFINITY and limit < OPEN_FILES:
        raise MicroguardError(
            f"The limit of open files (ulimit -n): expected at least {OPEN_FILES}, of which Java takes some "
            f"350; found {limit}. Raise it (ulimit -n 4096, or LimitNOFILE=4096 of a service), and call this "
            "again."
        )


def _ignore_signals() -> None:
    for each in _OF_THE_RUN:
        signal.signal(each, signal.SIG_IGN)


def _locale_of_java() -> dict[str, str]:
    """The environment by which Java names files as Python does.

    Python takes UTF-8 also where the locale says ASCII (PEP 540), as the one of cron or of a container does;
    Java would find no file of another name.
    """
    if sys.getfilesystemencoding() != "utf-8" or locale.nl_langinfo(locale.CODESET).upper() == "UTF-8":
        return {}
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        for name in _UTF8:
            with suppress(locale.Error):
                locale.setlocale(locale.LC_CTYPE, name)
                return {"LC_ALL": name}
        return {}
    finally:
        locale.setlocale(locale.LC_CTYPE, before)
