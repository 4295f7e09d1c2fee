"""Tests that a signal to the process group, as a terminal sends it, ends a run at every stage."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.system.command import TIMEOUT
from tests.system.surroundings.runs import Surroundings, specification

pytestmark = pytest.mark.spark

#: Stage, its progress, and the signal, for the quick and the long tests.
QUICK = [
    ("spark", "started", signal.SIGINT),
    ("screen", "started", signal.SIGTERM),
]
LONG = [
    ("spark", "started", signal.SIGHUP),
    ("read", "started", signal.SIGINT),
    ("protect all", "started", signal.SIGTERM),
    ("protect all", "started", signal.SIGINT),
    ("reconcile", "started", signal.SIGHUP),
    ("measure", "started", signal.SIGINT),
    ("verify", "started", signal.SIGINT),
    ("evidence", "started", signal.SIGTERM),
    ("publish", "started", signal.SIGINT),
    ("publish", "done", signal.SIGINT),
    ("publish", "done", signal.SIGHUP),
]
#: Seconds between the observed stage and the signal.
DELAY = 0.3


def wait_for(stage: str, status: str, lines: list[str], run, evidence: Path) -> None:
    """Wait until a run reports a stage, or until its folder for Spark exists for the first stage."""
    if stage == "spark":
        until = time.monotonic() + TIMEOUT
        while not list(evidence.glob(".work/*/spark")) and time.monotonic() < until:
            time.sleep(0.02)
        time.sleep(DELAY)
        return
    for line in run.stderr:
        lines.append(line)
        event = json.loads(line)
        if (event.get("stage"), event.get("status")) == (stage, status):
            break
    if status == "started":
        time.sleep(DELAY)


def alive(session: int) -> list[str]:
    """Return the command lines of the processes of a session."""
    command_lines = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (
                os.getsid(int(process.name)) == session
                and "Z" not in (process / "stat").read_text().split()[2]
            ):
                command_lines.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:100])
        except OSError:
            continue
    return command_lines


def interrupted(folder: Path, stage: str, status: str, number: signal.Signals) -> None:
    """Interrupt a run at a stage, and check its messages and its remaining files."""
    path = specification(folder)
    run = Surroundings().start("protect", path, "--log", "json", "--json")
    assert run.stderr is not None
    lines: list[str] = []
    wait_for(stage, status, lines, run, folder / "evidence")
    os.killpg(run.pid, number)
    began = time.monotonic()
    out, rest = run.communicate(timeout=TIMEOUT)
    seconds = time.monotonic() - began
    lines += rest.splitlines()
    events = [json.loads(line) for line in lines]
    answer = json.loads(out.splitlines()[-1])
    current = folder / "lake" / "current.json"
    if current.exists():
        release = json.loads(current.read_text())["release_id"]
        assert release in (answer.get("release_id"), *answer.get("published", [])), answer
    else:
        assert "Nothing was published." in answer["reason"]
    if run.returncode:  # code 0: the run ended before the signal was handled
        assert run.returncode == 130, lines[-3:]
        assert f"Interrupted by {number.name}." in events[-2]["reason"]
        assert "call this again with the same arguments" in events[-2]["reason"]
    assert run.returncode or stage == "publish"
    assert events[-1]["exit_code"] == run.returncode
    assert not list((folder / "evidence" / ".work").glob("*/spark"))
    assert seconds < 180
    until = time.monotonic() + 30
    while alive(run.pid) and time.monotonic() < until:
        time.sleep(0.1)
    assert not alive(run.pid)


@pytest.mark.parametrize(("stage", "status", "number"), QUICK)
def test_signal_to_the_process_group_ends_a_run_with_one_correct_line(
    stage: str, status: str, number: signal.Signals, tmp_path: Path
) -> None:
    interrupted(tmp_path, stage, status, number)


@pytest.mark.long
@pytest.mark.parametrize(("stage", "status", "number"), LONG)
def test_signal_to_the_process_group_ends_a_run_at_every_stage(
    stage: str, status: str, number: signal.Signals, tmp_path: Path
) -> None:
    interrupted(tmp_path, stage, status, number)
    again = Surroundings().run("protect", tmp_path / "release.toml", "--quiet")
    assert again.returncode == 0, again.stderr
