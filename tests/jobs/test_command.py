"""The command: six endings, each with its exit code, one paragraph and, where asked for, one JSON object."""

from __future__ import annotations

import errno
import inspect
import json
import os
import runpy
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from microguard.jobs.command import run_command
from microguard.jobs.verbs import SPECIFICATION, VERBS, Verb
from microguard.pipelines.engine.command_result import CommandResult
from microguard.pipelines.engine.events import ALLOWED, emit
from microguard.pipelines.engine.progress import Progress
from microguard.schemas.errors import (
    GateRefused,
    InputRejected,
    MicroguardError,
    ProtectionFailed,
    SpecificationError,
)
from microguard.schemas.specification.model import Specification

from tests.jobs.endings import CANARY, ROOT, ending
from tests.schemas.malformed import SOUND

TOO_EARLY = ("pyspark", "great_expectations", "pandas", "numba", "pyarrow", "duckdb")


def microguard(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "microguard", *arguments], capture_output=True, text=True, cwd=cwd or ROOT
    )


def best_seconds(*arguments: str) -> float:
    """Processor seconds of a run; the least of three, as the machine may be busy."""
    found = []
    for _ in range(3):
        before = os.times()
        microguard(*arguments)
        after = os.times()
        found.append(
            after.children_user + after.children_system - before.children_user - before.children_system
        )
    return min(found)


def test_help_comes_within_half_a_second() -> None:
    assert best_seconds("--help") <= 0.5


def test_a_faulty_specification_is_reported_within_a_second_and_a_half(tmp_path: Path) -> None:
    path = tmp_path / "release.toml"
    path.write_text(SOUND.replace("k = 3", "k = 1"))
    assert best_seconds("protect", str(path)) <= 1.5


def test_no_engine_is_loaded_before_it_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "release.toml"
    path.write_text(SOUND.replace("k = 3", "k = 1"))
    code = (
        "import sys; from microguard.jobs.command import run_command; "
        f"run_command(['protect', {str(path)!r}]); print(sorted(set({TOO_EARLY!r}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_help_names_every_verb_and_exit_code() -> None:
    done = microguard("--help")
    assert done.returncode == 0
    for word in [*VERBS, "quality gate refused", "protection failed"]:
        assert word in done.stdout


def test_every_verb_has_a_script_for_spark_submit_and_no_script_is_without_a_verb() -> None:
    scripts = {path.stem for path in (ROOT / "jobs").glob("*.py")} - {
        "__init__",
        "verbs",
        "command",
        "answer",
        "interruption",
        "process",
    }
    assert scripts == set(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_a_script_takes_the_same_arguments_as_its_verb(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as as_verb:
        run_command([verb, "--help"])
    expected = capsys.readouterr().out
    script = ROOT / "jobs" / f"{verb}.py"
    monkeypatch.setattr(sys, "argv", [str(script), "--help"])
    with pytest.raises(SystemExit) as as_script:
        runpy.run_path(str(script), run_name="__main__")
    assert (as_verb.value.code, as_script.value.code) == (0, 0)
    assert capsys.readouterr().out == expected


def test_a_script_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "jobs" / "protect.py", "absent.toml"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert "absent.toml" in done.stderr


@pytest.mark.parametrize("verb", VERBS.values(), ids=lambda verb: verb.name)
def test_a_pipeline_takes_what_its_row_gives(verb: Verb) -> None:
    given = {argument.name for argument in verb.arguments if not argument.positional}
    if SPECIFICATION in verb.arguments:
        given -= {"overrides"}
    positions = [argument for argument in verb.arguments if argument.positional]
    signature = inspect.signature(verb.function())
    on_request = {"master", "progress", "show"} & set(signature.parameters)
    taken = signature.bind(*positions, **dict.fromkeys(given | on_request)).arguments
    assert set(taken) >= given | on_request


def test_a_verb_that_starts_spark_has_a_specification_that_says_for_which_input() -> None:
    starting = [verb for verb in VERBS.values() if verb.starts_spark]
    assert {verb.name for verb in starting} == {"check", "protect", "adjust", "compare"}
    assert all(SPECIFICATION in verb.arguments for verb in starting)


def test_each_choice_is_laid_over_what_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def compare(specification: Specification, *, k: str, choices: dict[str, Specification]) -> CommandResult:
        asked.update(choices, **{"": specification})
        return CommandResult("Compared.", {})

    monkeypatch.setattr("microguard.pipelines.compare.compare", compare)
    monkeypatch.setattr("microguard.pipelines.engine.session.prestart_java", lambda *_: None)
    path = tmp_path / "sound.toml"
    path.write_text(SOUND)
    arguments = ["compare", str(path), "--set", "release.seed=7"]
    choices = ["--choice", "release.k=9", "method.effort=fast", "--choice", "release.seed=8"]
    assert run_command([*arguments, *choices]) == 0
    assert {name: (each.release.k, each.release.seed) for name, each in asked.items()} == {
        "": (asked[""].release.k, 7),
        "release.k=9 method.effort=fast": (9, 7),
        "release.seed=8": (asked[""].release.k, 8),
    }
    assert asked["release.k=9 method.effort=fast"].method.effort == "fast"
    assert run_command([*arguments, "--choice", "release.k"]) == 2


def test_a_log_of_events_says_only_what_is_allowed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["draft", "no-such-file.csv", "--log", "json"]) != 0
    *_, last = capsys.readouterr().err.strip().splitlines()
    event = json.loads(last)
    assert set(event) <= set(ALLOWED)
    assert (event["event"], event["verb"]) == ("end", "draft")
    with pytest.raises(ValueError, match="income"):
        emit(event="stage", income=7)


def test_stages_become_events_with_their_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(events=True)
    with progress.stage("protect", 3):
        pass
    with suppress(KeyError), progress.stage("write"):
        raise KeyError("a value of a record")
    events = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(each["stage"], each["status"]) for each in events] == [
        ("protect", "started"), ("protect", "done"), ("write", "started"), ("write", "failed"),
    ]  # fmt: skip
    assert events[0]["blocks"] == 3
    assert all(set(each) <= set(ALLOWED) for each in events)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["protekt"],
        ["protect"],
        ["protect", "a.toml", "b.toml"],
        ["protect", "absent.toml"],
        ["demo", "--records", "none"],
        ["demo", "--records", "0"],
        ["demo", "--kind", "odd"],
        ["verify", "absent", "--set", "release.k=3"],
        ["benchmark", "no-such-benchmark"],
        ["check", "absent.toml", "--set", "release.k"],
        ["approve", "absent", "--by", " "],
        ["clean", "absent"],
    ],
    ids=" ".join,
)
def test_faulty_arguments_end_with_two_and_one_paragraph(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.strip()
    assert "\n\n" not in err.strip()
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SpecificationError("found this, allowed that"), 2),
        (InputRejected("found this, allowed that"), 3),
        (GateRefused("found this, allowed that"), 4),
        (ProtectionFailed("found this, allowed that"), 5),
        (MicroguardError("found this, allowed that"), 1),
    ],
)
@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_an_error_raised_on_purpose_is_told_with_its_exit_code(
    error: MicroguardError,
    code: int,
    quiet: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ending(monkeypatch, error)
    assert run_command(["protect", "release.toml", "--json", *quiet]) == code
    out, err = capsys.readouterr()
    assert err.strip() == "found this, allowed that"
    assert json.loads(out.splitlines()[-1])["exit_code"] == code
    assert json.loads(out.splitlines()[-1])["reason"] == "found this, allowed that"


def test_an_unexpected_error_never_shows_its_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ending(monkeypatch, ValueError(f"could not convert {CANARY}"))
    assert run_command(["protect", "release.toml", "--json"]) == 1
    out, err = capsys.readouterr()
    assert CANARY not in out + err
    assert "ValueError" in err
    assert "Traceback" not in err


def test_an_unexpected_error_of_the_system_is_told_in_the_words_of_the_system(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ending(monkeypatch, OSError(errno.ENOSPC, CANARY, f"/data/region={CANARY}"))
    assert run_command(["protect", "release.toml"]) == 1
    err = capsys.readouterr().err
    assert os.strerror(errno.ENOSPC) in err
    assert CANARY not in err


def test_debug_adds_the_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ending(monkeypatch, ValueError(CANARY))
    assert run_command(["protect", "release.toml", "--debug"]) == 1
    assert f"ValueError: {CANARY}" in capsys.readouterr().err


def test_success_prints_a_summary_and_with_json_one_object_last(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ending(monkeypatch, None)
    assert run_command(["protect", "release.toml", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Published."
    assert json.loads(lines[-1]) == {"verb": "protect", "exit_code": 0, "status": "done", "release_id": "abc"}


def test_quiet_leaves_out_the_summary_where_it_is_an_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ending(monkeypatch, None)
    run_command(["protect", "release.toml", "--quiet"])
    assert capsys.readouterr().out == ""
    run_command(["draft", "file.csv", "--quiet"])
    assert capsys.readouterr().out == "Published.\n"


def test_a_reader_that_hangs_up_causes_no_traceback(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("sex,age\n" + "f,31\nm,47\n" * 30)
    code = f"{sys.executable} -m microguard draft {path} | true"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_no_character_that_a_terminal_obeys_reaches_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["protect", "a\x1b[31m\u202eb.toml"]) == 2
    err = capsys.readouterr().err
    assert "\x1b" not in err
    assert "\u202e" not in err
    assert "b.toml" in err
