"""Misses are collected, and fail a benchmark once all is measured."""

from __future__ import annotations

import pytest

from tests.benchmarks.misses import Misses
from tests.benchmarks.table import line


def test_a_miss_is_said_at_once_and_fails_at_the_end(capsys):
    misses = Misses()
    misses.unless(True, "first")
    misses.unless(False, "second")
    misses.unless(False, "third")
    assert capsys.readouterr().err == "missed: second\nmissed: third\n"
    with pytest.raises(AssertionError, match="2 missed: second; third"):
        misses.fail()


def test_without_a_miss_nothing_fails():
    Misses().fail()


def test_a_row_is_a_line_of_its_table():
    assert line(("a", 0.12345, None, 3)) == "| a | 0.1235 | - | 3 |"
