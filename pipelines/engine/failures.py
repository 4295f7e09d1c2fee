"""Explain why Spark failed, with our own text for cause and remedy: Spark's text may quote a record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from microguard.schemas.errors import MicroguardError
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

_AGAIN = "Nothing was published. Call this again: finished blocks are kept."
#: Errors, in addition to py4j's own, of a call to a Java process that has ended.
GONE = (ConnectionRefusedError, ConnectionResetError)
#: Patterns of py4j's messages about a Java exception, about its cause, and about the error that ended a task
#: after all attempts: these capture class names only.
_CAUSE = re.compile(
    r"An error occurred while calling [^\n]*\n: (?P<exception>[\w.$]+)"
    r"(?:: Exception thrown in awaitResult: *\n(?:\tat [^\n]*\n)*Caused by: (?P<awaited>[\w.$]+))?"
    r"(?:: Job aborted [^\n]*?"
    r"(?:: Lost task [\d.]+ in stage [\d.]+ \(TID \d+\) \([^()\n]*\): |Most recent failure reason:\s*)"
    r"(?P<task>[\w.$]+))?"
)
#: Pattern of the message of Spark and py4j about a Python error in a task: the class name is first or after a
#: traceback.
_RAISED = re.compile(
    r"(?:see the stack trace below\.\n|PythonException: )(?:Traceback [^\n]*\n(?: [^\n]*\n)*)?"
    r"(?P<raised>[A-Za-z_][\w.]*)"
)
#: Spark's messages about a worker that the system killed, and about a lost executor.
_LOST_WORKER = "Python worker exited unexpectedly"
_LOST_EXECUTOR = "ExecutorLostFailure"
#: Spark's message about a session that was stopped.
_STOPPED = "stopped SparkContext"
#: Spark's messages if Python did not start, or did not follow Spark's protocol.
_NO_PYTHON = ("Error from python worker:", "Invalid port number/socket path:")
#: Spark error classes that mean an executor failed (memory, disk), not bad input.
_OF_MACHINES = (
    _LOST_WORKER,
    _LOST_EXECUTOR,
    _STOPPED,
    *_NO_PYTHON,
    "FetchFailed",
    "TaskResultLost",
    "OutOfMemoryError",
    "No space left on device",
    "SparkContext was shut down",
)
#: Errors that tasks raise about an object store, and what they mean.
_OF_STORES = {
    "StoreDamaged": (
        "An object that tasks wrote to the object store of the evidence area is missing or was changed. "
        "Find out which other program writes there."
    ),
    "StoreFailed": (
        "Tasks could not write to the object store of the evidence area, or read from it. Each machine of a "
        "cluster needs region, endpoint and credentials in its environment; check these, and the state of "
        "the store."
    ),
}


@contextmanager
def without_values_of_records() -> Iterator[None]:
    """Replace exceptions of Spark by our own, because their text may quote a record.

    Raises
    ------
    MicroguardError
    """
    try:
        yield
    except (PySparkException, Py4JError, *GONE) as error:
        raise MicroguardError(f"{_why(error)} {_AGAIN}") from None


def of_machines(error: Exception) -> bool:
    """Return whether machines, processes or stores caused the failure, not the input."""
    text = str(error)
    return isinstance(error, GONE) or any(
        cause in text for cause in (*_OF_MACHINES, *(f"{raised}: " for raised in _OF_STORES))
    )


def _why(error: Exception) -> str:
    """Return the cause and its remedy in our own words."""
    if isinstance(error, PySparkException):
        condition = error.getCondition() or type(error).__name__
    elif isinstance(error, Py4JJavaError):
        condition = _java_class(error)
    else:
        return (
            "Spark's Java process ended before the run did, usually because the system ran out of memory. "
            "Free memory, or give Spark less (spark.driver.memory)."
        )
    if condition == "PythonException":
        condition = _python_class(error)
    if _LOST_WORKER in str(error):
        return (
            "A Python worker of Spark was ended, usually because the system ran out of memory, and the "
            "retry was ended too. Make blocks smaller ([blocking] max_records), or run fewer tasks at once "
            "(--master local[1])."
        )
    if _LOST_EXECUTOR in str(error):
        return (
            "An executor of Spark was lost, usually because its machine ran out of memory or ended the "
            "executor. Give executors more memory (spark.executor.memory, spark.executor.memoryOverhead), "
            "or make blocks smaller ([blocking] max_records)."
        )
    if _STOPPED in str(error):
        return "The session of Spark was stopped by other code before the run ended. Start a new session."
    if any(each in str(error) for each in _NO_PYTHON):
        return (
            "Spark could not start Python on a machine. Call `python -m "
            "microguard.pipelines.records.daemon` there, with the Python and the variables that Spark has "
            "(PYSPARK_PYTHON, PYTHONPATH), and correct the error that it prints."
        )
    for raised, text in _OF_STORES.items():
        if f"{raised}: " in str(error):
            return text
    return (
        f"Spark could not finish the run ({condition}). Check memory and free disk space in the evidence "
        "area."
    )


def _java_class(error: Py4JJavaError) -> str:
    """Return the class name of the exception that ended a task, else of the one that Java raised."""
    matched = _CAUSE.match(str(error))
    if matched is None:
        return type(error).__name__
    return (matched.group("task") or matched.group("awaited") or matched.group("exception")).rpartition(".")[
        2
    ]


def _python_class(error: Exception) -> str:
    """Return the class name of the exception that a task raised in Python."""
    matched = _RAISED.search(str(error))
    return "PythonException" if matched is None else matched.group("raised").rpartition(".")[2]
