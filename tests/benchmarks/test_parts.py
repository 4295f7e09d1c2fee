"""Tests that a long benchmark continues from its finished parts after a kill."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks import parts
from tests.benchmarks.registers import updates
from tests.benchmarks.registers.agency import UpdateResult
from tests.benchmarks.table import Table
from tests.benchmarks.tabular import suppression_page

TABLE = Table("Nights", ("night", "loss"), [(1, 0.5), (2, None)], "a note")


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Return a function that runs the benchmark, and the names of the computed parts over several calls."""
    monkeypatch.setattr(parts, "RESULTS", tmp_path)
    names = []

    def call(*wanted, code="a"):
        monkeypatch.setattr(parts, "_digest", lambda folders: code)
        benchmark = parts.Parts("series")
        return [benchmark.table(name, lambda name=name: names.append(name) or TABLE) for name in wanted]

    call.names = names
    return call


def test_parts_skips_finished_parts(made):
    assert made("one", "two") == made("one", "two", "three")[:2] == [TABLE, TABLE]
    assert made.names == ["one", "two", "three"]


def test_parts_are_invalidated_by_code_change(made):
    made("one")
    made("one", code="b")
    assert made.names == ["one", "one"]


def test_parts_are_removed_at_the_end_of_a_benchmark(made, tmp_path, monkeypatch):
    made("one")
    parts.Parts("series").forget()
    made("one")
    assert made.names == ["one", "one"]


def test_code_hash_covers_all_files_that_determine_results():
    assert parts._digest(("sdc",)) == parts._digest(("sdc",)) != parts._digest(("sdc", "jobs"))


def test_parts_stores_a_result_with_its_seconds(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "RESULTS", tmp_path)
    solved = []

    def solve():
        solved.append(1)
        return np.arange(3), TABLE

    first = parts.Parts("nominal").answer("sample 1", solve)
    again = parts.Parts("nominal").answer("sample 1", solve)
    assert len(solved) == 1
    assert again[1] == first[1]
    assert again[0][0].tolist() == [0, 1, 2]
    assert again[0][1] == TABLE


class Dying:
    """Agency whose third run in the process of the benchmark is killed."""

    runs = 0

    def __init__(self, *given, **options):
        pass

    def publish(self, frame):
        Dying.runs += 1
        if Dying.runs == 3:
            raise KeyboardInterrupt
        return UpdateResult(Path(f"release{Dying.runs}"), 1.0, {"night": 0.5}, {"units": len(frame)})


def test_register_benchmark_continues_after_finished_updates(tmp_path, monkeypatch):
    monkeypatch.setattr(updates, "Agency", Dying)
    with pytest.raises(KeyboardInterrupt):
        updates.watched(None, tmp_path, "numeric", 3, 400, 4)
    series = updates.watched(None, tmp_path, "numeric", 3, 400, 4)
    assert [done.release.name for done in series.done] == ["release1", "release2", "release4", "release5"]
    assert [done.counts["units"] for done in series.done] == [len(each.frame) for each in series.nights]


def test_page_of_suppression_keeps_the_tables_that_were_not_measured_again():
    before = suppression_page.PAGE.read_text(encoding="utf-8")
    assert suppression_page.page([], before) == before  # the command writes this text
    longer = suppression_page.page([TABLE], before)
    assert longer.startswith(before.rstrip("\n"))
    again = suppression_page.page([Table("Nights", ("night", "loss"), [(3, 0.25)])], longer)
    assert "| 3 | 0.25 |" in again
    assert "| 1 | 0.5 |" not in again
