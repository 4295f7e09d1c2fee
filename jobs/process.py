"""The process of a command: open standard streams, standard output for the answer alone, enough files."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

#: Open files that a process is given if the system allows as many: Spark opens some hundred jars, and as many
#: files again for the parts of a large run.
OPEN_FILES = 65_536


def prepare(arguments: Sequence[str]) -> str | None:
    """Prepare this process for a command, before anything large is imported; what to say if it cannot be."""
    _open_standard_streams()
    _keep_standard_output("--debug" in arguments)
    _raise_limit_of_open_files()
    try:
        os.getcwd()
    except OSError:  # nothing relative to it has a meaning, and Java does not start
        return (
            "The working folder: expected a folder that exists, found one that was removed. Change to "
            "another folder (cd), and call this again."
        )
    return None


def _open_standard_streams() -> None:
    """Open closed ones to nowhere: else the next file that is opened gets the number of standard output."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115


def _keep_standard_output(debug: bool) -> None:
    """Give `sys.stdout` a descriptor of its own: what compiled code writes to number 1 is not the answer.

    It goes to standard error with --debug, else nowhere: nobody knows whether it holds a value. This is not
    undone, as the buffer of a C library is written out when the process ends.
    """
    given = sys.__stdout__
    if given is None or sys.stdout is not given or given.fileno() != 1:
        return
    given.flush()
    sys.stdout = open(os.dup(1), "w", encoding=given.encoding)  # noqa: SIM115
    elsewhere = 2 if debug else os.open(os.devnull, os.O_WRONLY)
    os.dup2(elsewhere, 1)


def _raise_limit_of_open_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def leave(exit_code: int) -> NoReturn:
    """End this process with no more than is said already: threads and exit functions are not waited for."""
    java = sys.modules.get("microguard.pipelines.engine.java_process")
    if java is not None:
        java.end()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(exit_code)
