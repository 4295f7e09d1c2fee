"""Tests of missed figures: they are collected, and fail a benchmark at its end."""

from __future__ import annotations

import pytest

from tests.benchmarks.misses import Misses
from tests.benchmarks.paper_pages import Section
from tests.benchmarks.table import line


def test_misses_prints_a_miss_immediately_and_raises_at_the_end(capsys):
    misses = Misses()
    misses.unless(True, "first")
    misses.unless(False, "second")
    misses.unless(False, "third")
    assert capsys.readouterr().err == "missed: second\nmissed: third\n"
    with pytest.raises(AssertionError, match="2 missed: second; third"):
        misses.fail()


def test_misses_does_not_raise_if_no_miss_was_added():
    Misses().fail()


def test_table_formats_a_row_as_a_line():
    assert line(("a", 0.12345, None, 3)) == "| a | 0.1235 | - | 3 |"


@pytest.mark.parametrize("error", [ValueError, pytest.skip.Exception])
def test_section_that_cannot_be_measured_is_a_row_and_a_miss(error):
    def measure():
        raise error("no file")

    misses = Misses()
    measured = Section("Figure 1", measure).run(misses)
    assert measured.table.rows == [(f"{error.__name__}: no file",)]
    assert len(misses.found) == 1
