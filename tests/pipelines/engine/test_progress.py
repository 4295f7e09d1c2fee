"""Tests of the progress line of a run: it advances, never decreases, and shows the remaining time."""

from __future__ import annotations

import re
import time

import pytest
from microguard.pipelines.engine import progress
from microguard.pipelines.engine.progress import STAGE_SECONDS, Progress

EXPECTED = {"read": 10.0, "protect": 80.0, "write": 10.0}


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Progress:
    monkeypatch.setattr(progress, "STAGE_SECONDS", {"protect": EXPECTED})
    return Progress(quiet=True, verb="protect")


def percent(line: str) -> int:
    return int(line.split("%")[0])


def test_progress_of_a_stage_with_a_count_is_shown_by_its_count(measured: Progress) -> None:
    measured.seconds["read"] = 10.0
    assert percent(measured.line("protect all", 1.0, total=4, count=2)) == 50
    assert "protect all 2 of 4 blocks" in measured.line("protect all", 1.0, total=4, count=2)


@pytest.mark.parametrize("total", [None, 1])
def test_progress_of_a_stage_without_a_finished_block_follows_its_expected_time(
    measured: Progress, total: int | None
) -> None:
    measured.seconds["read"] = 5.0  # The run is twice as fast as measured: 80 expected seconds take 40.
    shown = [percent(measured.line("protect all", seconds, total)) for seconds in (0.0, 10.0, 20.0, 400.0)]
    assert shown == [10, 30, 50, 86]
    assert "of 1 blocks" not in measured.line("protect all", 1.0, total)


def test_progress_share_of_the_run_never_decreases(measured: Progress) -> None:
    shown = [percent(measured.line("protect a", 100.0))]
    measured.seconds["protect a"] = 100.0
    shown.append(percent(measured.line("protect b", 0.0, total=9)))
    measured.seconds["protect b"] = 100.0
    shown.append(percent(measured.line("write", 0.0)))
    assert shown == sorted(shown)


def test_remaining_time_follows_from_the_progress_share(
    measured: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    monkeypatch.setattr(progress.time, "monotonic", lambda: now + 60)
    measured._start = now
    measured.seconds["read"] = 10.0
    line = measured.line("protect all", 50.0, total=4, count=1)
    assert re.fullmatch(r" 30 % protect all 1 of 4 blocks, 1:00 elapsed, about 2:20 left", line)


def test_progress_of_a_verb_without_measured_stages_shows_stage_and_elapsed_time() -> None:
    assert Progress(verb="compare").line("measure", 3.0) == "measure, 0:00 elapsed"


def test_progress_draws_no_line_for_a_short_stage(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(verb="protect").stage("read"):
        pass
    assert capsys.readouterr().err == ""


def test_measured_stages_occur_in_a_run() -> None:
    from pathlib import Path

    source = "".join(path.read_text() for path in Path(progress.__file__).parents[1].rglob("*.py"))
    named = set(re.findall(r"progress\.stage\(\s*f?\"([a-z ]+)", source))
    for stages in STAGE_SECONDS.values():
        assert {stage.strip() for stage in stages} <= {stage.strip() for stage in named}
