"""Tests of the result of a command in the file of --outcome and on standard output, also if writing fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from microguard.jobs import command
from microguard.jobs.command import run_command
from microguard.pipelines.engine.command_result import CommandResult
from microguard.schemas.errors import GateRefused

from tests.jobs.endings import CANARY, ROOT, replace_verbs


def test_outcome_writes_the_result_after_success_and_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "outcome.json"
    endings: list[tuple[BaseException | None, int]] = [
        (None, 0),
        (GateRefused("no"), 4),
        (ValueError(CANARY), 1),
        (KeyboardInterrupt(), 130),
    ]
    for raised, code in endings:
        replace_verbs(monkeypatch, raised)
        assert run_command(["protect", "release.toml", "--json", f"--outcome={path}"]) == code
        content = json.loads(path.read_text())
        assert content == json.loads(capsys.readouterr().out.splitlines()[-1])
        assert (content["exit_code"], content["verb"]) == (code, "protect")
        assert CANARY not in path.read_text()
    assert list(tmp_path.iterdir()) == [path]


def test_outcome_writes_the_result_of_faulty_arguments(tmp_path: Path) -> None:
    path = tmp_path / "outcome.json"
    assert run_command(["protect", "--outcome", str(path), "--speed"]) == 2
    assert json.loads(path.read_text())["status"] == "specification refused"


@pytest.mark.parametrize("file", [".", "absent/outcome.json"])
def test_run_command_refuses_an_outcome_file_that_cannot_be_written(
    file: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replace_verbs(monkeypatch, AssertionError("it must not run"))
    monkeypatch.chdir(tmp_path)
    assert run_command(["protect", "release.toml", "--outcome", file]) == 2
    assert "--outcome" in capsys.readouterr().err


def test_failing_output_does_not_change_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()

    def call(*_: object) -> CommandResult:
        folder.rmdir()
        return CommandResult("Published.", {})

    monkeypatch.setattr(command, "call", call)
    assert run_command(["protect", "release.toml", "--outcome", str(folder / "outcome.json")]) == 0
    assert "could not be written" in capsys.readouterr().err
    code = (
        "import sys; from microguard.jobs import command; "
        "from microguard.pipelines.engine.command_result import CommandResult; "
        "command.call = lambda *_: CommandResult('Published \\u00e9.', {'name': '\\u00e9'}); "
        "sys.exit(command.run_command(['protect', 'x', '--json']))"
    )
    full = subprocess.run(["bash", "-c", f'{sys.executable} -c "{code}" >/dev/full'], cwd=ROOT, check=False)
    assert full.returncode == 0
    ascii_only = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    )
    assert ascii_only.returncode == 0
    assert json.loads(ascii_only.stdout.splitlines()[-1])["name"] == "é"
