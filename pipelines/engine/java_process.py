"""The Java process of the sessions of this process: started once, shielded from signals, ended by us."""

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
from py4j.java_gateway import JavaClass, JavaMember, JVMView
from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.errors import PySparkRuntimeError

#: Maximum number of files that a run on a small input opens at the same time.
OPEN_FILES = 512
#: Seconds within which a killed process must be gone; the system has to free its memory.
GONE_WITHIN = 5
#: Command that ignores the signals sent to all processes of a run, and then executes another command.
_DEAF = 'trap "" INT TERM HUP; exec "$@"'
#: Locales in which Java encodes file names in UTF-8.
_UTF8 = ("C.UTF-8", "C.utf8", "en_US.UTF-8", "en_US.utf8")
#: Java classes that pyspark calls for each column; pyspark names some without their package.
_OFTEN_CALLED = ("org.apache.spark.sql.functions", "org.apache.spark.api.python.PythonUtils")
_started: list[_Java] = []


class _Java(subprocess.Popen[bytes]):
    """A process started like Spark's launcher, which execs Java; replaces pyspark's `Popen`."""

    def __init__(self, command: list[str], **options: Any) -> None:
        options["env"] |= _locale_of_java()
        # If code runs between fork and exec, Python holds the locks of logging and imports during the fork. A
        # thread that imports in the background can hold one lock and wait for the other: a deadlock.
        options["preexec_fn"] = None
        _started.append(self)
        super().__init__(["/bin/sh", "-c", _DEAF, "sh", *command], **options)


def start_java(settings: Mapping[str, str]) -> None:
    """Start the Java process of the sessions of this process, if there is none.

    The output of Java and of its Python workers is discarded: a traceback of a worker can have values.

    Raises
    ------
    MicroguardError
        If Java does not start, or may open too few files.
    """
    _require_open_files()
    silence_calls()
    with SparkContext._lock:  # as in pyspark when it starts Java itself
        if SparkContext._gateway is None:
            conf = SparkConf().setAll(list(settings.items()))
            silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            try:
                with _launched_by(_Java):
                    gateway = java_gateway.launch_gateway(conf, silent)
            except PySparkRuntimeError:
                raise MicroguardError(
                    f"Java ({os.environ.get('JAVA_HOME', 'JAVA_HOME is not set')}): expected a process that "
                    "starts, found one that ended. Check its limits (ulimit -a, the memory of the "
                    "container) and JAVA_TOOL_OPTIONS; `java -version` shows whether Java starts at all."
                ) from None
            SparkContext._ensure_initialized(gateway=gateway)
            remember_lookups(gateway.jvm)


class _JavaClass(JavaClass):
    """A Java class that looks up each static method once; py4j does this before each call."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):
            setattr(self, name, found)
        return found


def remember_lookups(jvm: JVMView) -> None:
    """Make pyspark look up the Java classes that build columns only once.

    A third of the calls of a small run were lookups, for some of which Java searches all jars of Spark.
    """
    for name in _OFTEN_CALLED:
        found = _JavaClass(name, jvm._gateway_client)
        for asked in (name, name.rpartition(".")[2]):
            setattr(jvm, asked, found)


def silence_calls() -> None:
    """Keep py4j from logging the traceback of a call to Java that is interrupted by a signal or by Java's
    end.

    py4j writes the traceback to the root logger, and so to standard error. The caller explains the failure
    instead.
    """
    logging.getLogger().addFilter(_not_of_py4j)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return record.pathname != py4j.java_gateway.__file__


def end() -> None:
    """Kill the Java process at once, even during its start, and wait until it is gone."""
    for java in _started:
        # Without a process id the process cannot be ended yet.
        with suppress(OSError, AttributeError, subprocess.TimeoutExpired):
            java.kill()
            java.wait(GONE_WITHIN)


def forget_call() -> None:
    """Make the next call to Java use a new connection.

    If a signal interrupts a call of the main thread, the response to this call stays on the connection. The
    next call would read the wrong response, or wait for ever.
    """
    gateway = SparkContext._gateway
    client = getattr(gateway, "_gateway_client", None)
    if client is not None and hasattr(client, "thread_connection"):
        client.thread_connection.connection = None


@contextmanager
def without_signal_handler() -> Iterator[None]:
    """Keep this process's handler of SIGINT while pyspark makes a context.

    pyspark's handler calls Java from within the call that it interrupts.
    """
    context: Any = sys.modules[SparkContext.__module__]
    theirs = context.signal
    context.signal = _NoHandlers
    try:
        yield
    finally:
        context.signal = theirs


class _NoHandlers:
    """A replacement for the module `signal` in pyspark."""

    SIGINT = signal.SIGINT

    @staticmethod
    def signal(*_: object) -> None:
        """Ignore the handler that pyspark wants to set."""


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
    """Refuse a limit on open files that is known to be too low; Java raises its own limit."""
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit != resource.RLIM_INFINITY and limit < OPEN_FILES:
        raise MicroguardError(
            f"The limit of open files (ulimit -n): expected at least {OPEN_FILES}, about 350 of them for "
            f"Java; found {limit}. Raise it (ulimit -n 4096, or LimitNOFILE=4096 of a service), and call "
            "this again."
        )


def _locale_of_java() -> dict[str, str]:
    """Return the environment in which Java encodes file names as Python does.

    Python uses UTF-8 even if the locale is ASCII (PEP 540), as in cron or a container. Java would then not
    find files with non-ASCII names.
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
