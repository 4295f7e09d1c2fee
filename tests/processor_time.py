"""Print the tests that take most processor time: ``pytest -p tests.processor_time``.

The time is that of the process and of all its descendants: Java, its Python workers, and other commands. The
first test of a session pays for its start and for what Java compiles.
"""

from __future__ import annotations

import ctypes
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

#: Number of printed tests.
MOST = 30
#: prctl(2): descendants whose parent ends become children of this process, so that their time is not lost.
_SET_CHILD_SUBREAPER = 36
_TICKS = os.sysconf("SC_CLK_TCK")
_seconds: Counter[str] = Counter()


def processor_seconds() -> float:
    """Return the processor time of this process and of its living and ended descendants, in seconds."""
    children: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        process = int(path.parent.name)
        children.setdefault(int(fields[1]), []).append(process)
        ticks[process] = sum(map(int, fields[11:15]))  # its own time, and that of children it has waited for
    left, total = [os.getpid()], 0
    while left:
        process = left.pop()
        total += ticks.get(process, 0)
        left += children.get(process, [])
    return total / _TICKS


def pytest_configure() -> None:
    """Adopt the descendants of processes that end."""
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Measure a test with its fixtures."""
    before = processor_seconds()
    result = yield
    _seconds[item.nodeid] += processor_seconds() - before
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table of tests."""
    terminalreporter.section(f"{sum(_seconds.values()):.0f} s of processor time in {len(_seconds)} tests")
    for name, seconds in _seconds.most_common(MOST):
        terminalreporter.write_line(f"{seconds:6.1f} s {name}")
