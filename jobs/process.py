"""Prepare the process of a command: standard streams, limits of files and threads, the working folder."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

#: Limit of open files that we set if the system permits it: Spark opens hundreds of jars, and a large run
#: opens hundreds of partition files.
OPEN_FILES = 65_536
#: Makes OpenBLAS, which NumPy and SciPy load, use one thread unless the user decides otherwise. Least squares
#: of 2,000 x 60 takes 0.01 CPU seconds with one thread, and 0.1 to 1.7 with two that wait for each other on
#: two cores. The last bits of a product depend on the number of threads.
ONE_THREAD = ("OPENBLAS_NUM_THREADS", "1")


def prepare_process(arguments: Sequence[str]) -> str | None:
    """Prepare this process for a command before anything large is imported; return the reason if it fails."""
    _open_standard_streams()
    _keep_standard_output("--debug" in arguments)
    _raise_limit_of_open_files()
    os.environ.setdefault(*ONE_THREAD)
    try:
        os.getcwd()
    except OSError:  # relative paths cannot be resolved, and Java does not start
        return (
            "The working folder: expected a folder that exists, found one that was removed. Change to "
            "another folder (cd), and call this again."
        )
    return None


def _open_standard_streams() -> None:
    """Open closed standard streams on the null device.

    Otherwise the next opened file would get the number of standard output, and prints would be written to it.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            # the system assigns the lowest free number, which is the number of the closed stream
            os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115


def _keep_standard_output(debug: bool) -> None:
    """Give `sys.stdout` its own descriptor, because compiled code writes to descriptor 1.

    With --debug that text is written to standard error. Otherwise it is discarded, because it could contain a
    value of a record. The redirection is permanent: C libraries write their buffers when the process ends.
    """
    standard_output = sys.__stdout__
    if standard_output is None or sys.stdout is not standard_output or standard_output.fileno() != 1:
        return
    standard_output.flush()
    sys.stdout = open(os.dup(1), "w", encoding=standard_output.encoding)  # noqa: SIM115
    target = 2 if debug else os.open(os.devnull, os.O_WRONLY)
    os.dup2(target, 1)


def _raise_limit_of_open_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def exit_process(exit_code: int) -> NoReturn:
    """End this process immediately, without waiting for threads and exit functions."""
    java = sys.modules.get("microguard.pipelines.engine.java_process")
    if java is not None:
        java.end()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(exit_code)
