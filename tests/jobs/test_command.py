"""Tests of the command line: exit codes, the reason as one paragraph, and the JSON object of --json."""

from __future__ import annotations

import errno
import inspect
import json
import os
import runpy
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from microguard.jobs.command import run_command
from microguard.jobs.parser import completion_script, parse
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

from tests.jobs.endings import CANARY, ROOT, replace_verbs
from tests.schemas.sound import SOUND

ENGINES = ("pyspark", "great_expectations", "pandas", "numba", "pyarrow", "duckdb")


def microguard(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command in another process."""
    return subprocess.run(
        [sys.executable, "-m", "microguard", *arguments], capture_output=True, text=True, cwd=cwd or ROOT
    )


def ends_within(limit: float, *arguments: str) -> bool:
    """Return whether one of three runs takes at most a number of seconds of processor time."""

    def seconds() -> float:
        before = os.times()
        microguard(*arguments)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    return any(seconds() <= limit for _ in range(3))


def test_help_needs_at_most_half_a_second_of_processor_time() -> None:
    assert ends_within(0.5, "--help")


def test_faulty_specification_is_reported_within_a_second_and_a_half_of_processor_time(
    tmp_path: Path,
) -> None:
    path = tmp_path / "release.toml"
    path.write_text(SOUND.replace("k = 3", "k = 1"))
    assert ends_within(1.5, "protect", str(path))


def test_run_command_refuses_a_faulty_specification_without_loading_engines(tmp_path: Path) -> None:
    path = tmp_path / "release.toml"
    path.write_text(SOUND.replace("k = 3", "k = 1"))
    code = (
        "import sys; from microguard.jobs.command import run_command; "
        f"run_command(['protect', {str(path)!r}]); print(sorted(set({ENGINES!r}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_help_names_every_verb_and_exit_code() -> None:
    done = microguard("--help")
    assert done.returncode == 0
    for word in [*VERBS, "quality gate refused", "protection failed"]:
        assert word in done.stdout


def test_refusal_of_a_misspelt_verb_names_the_nearest_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["protct", "release.toml"]) == 2
    assert "there is no verb 'protct'; did you mean 'protect'?" in capsys.readouterr().err
    assert run_command(["banana"]) == 2
    assert "did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize("verb", VERBS.values(), ids=lambda verb: verb.name)
def test_help_of_a_verb_shows_examples_that_can_be_parsed(
    verb: Verb, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run_command([verb.name, "--help"])
    shown = capsys.readouterr().out
    for example in verb.examples:
        assert f"  microguard {example}\n" in shown
        assert parse(shlex.split(example.partition(" > ")[0])).verb == verb.name


def test_completion_script_completes_verbs_and_options() -> None:
    words = '; COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _microguard; echo "${COMPREPLY[@]}"'
    for line, expected in (("microguard pro", "protect"), ("microguard check --s", "--set")):
        code = f"{completion_script()}\nCOMP_WORDS=({line}){words}"
        done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.split() == [expected]


def test_every_verb_has_one_spark_submit_script() -> None:
    scripts = {path.stem for path in (ROOT / "jobs").glob("*.py")} - {
        "__init__",
        "verbs",
        "command",
        "parser",
        "output",
        "interruption",
        "process",
    }
    assert scripts == set(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_spark_submit_script_accepts_the_arguments_of_its_verb(
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


def test_spark_submit_script_runs_in_another_process(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "jobs" / "protect.py", "absent.toml"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert "absent.toml" in done.stderr


@pytest.mark.parametrize("verb", VERBS.values(), ids=lambda verb: verb.name)
def test_every_pipeline_accepts_the_arguments_of_its_verb(verb: Verb) -> None:
    options = {argument.name for argument in verb.arguments if not argument.positional}
    if SPECIFICATION in verb.arguments:
        options -= {"overrides"}
    positions = [argument for argument in verb.arguments if argument.positional]
    signature = inspect.signature(verb.function())
    on_request = {"master", "progress", "show"} & set(signature.parameters)
    bound = signature.bind(*positions, **dict.fromkeys(options | on_request)).arguments
    assert set(bound) >= options | on_request


def test_every_verb_that_starts_spark_takes_a_specification() -> None:
    starting = [verb for verb in VERBS.values() if verb.starts_spark]
    assert {verb.name for verb in starting} == {"check", "protect", "adjust", "compare"}
    assert all(SPECIFICATION in verb.arguments for verb in starting)


def test_compare_applies_each_choice_after_the_overrides_of_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: dict[str, Any] = {}

    def compare(specification: Specification, *, k: str, choices: dict[str, Specification]) -> CommandResult:
        compared.update(choices, **{"": specification})
        return CommandResult("Compared.", {})

    monkeypatch.setattr("microguard.pipelines.compare.compare", compare)
    monkeypatch.setattr("microguard.pipelines.intake.input_file.require_input", lambda *_: None)
    monkeypatch.setattr("microguard.pipelines.engine.session.prestart_java", lambda *_: None)
    path = tmp_path / "sound.toml"
    path.write_text(SOUND)
    arguments = ["compare", str(path), "--set", "release.seed=7"]
    choices = ["--choice", "release.k=9", "method.effort=fast", "--choice", "release.seed=8"]
    assert run_command([*arguments, *choices]) == 0
    assert {name: (each.release.k, each.release.seed) for name, each in compared.items()} == {
        "": (compared[""].release.k, 7),
        "release.k=9 method.effort=fast": (9, 7),
        "release.seed=8": (compared[""].release.k, 8),
    }
    assert compared["release.k=9 method.effort=fast"].method.effort == "fast"
    assert run_command([*arguments, "--choice", "release.k"]) == 2


def test_log_json_emits_only_allowed_event_fields(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["draft", "no-such-file.csv", "--log", "json"]) != 0
    *_, last = capsys.readouterr().err.strip().splitlines()
    event = json.loads(last)
    assert set(event) <= set(ALLOWED)
    assert (event["event"], event["verb"]) == ("end", "draft")
    with pytest.raises(ValueError, match="income"):
        emit(event="stage", income=7)


def test_progress_emits_an_event_for_the_start_and_end_of_a_stage(capsys: pytest.CaptureFixture[str]) -> None:
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
def test_run_command_refuses_faulty_arguments_with_exit_code_2_and_one_paragraph(
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
def test_run_command_prints_a_microguard_error_and_returns_its_exit_code(
    error: MicroguardError,
    code: int,
    quiet: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    replace_verbs(monkeypatch, error)
    assert run_command(["protect", "release.toml", "--json", *quiet]) == code
    out, err = capsys.readouterr()
    assert err.strip() == "found this, allowed that"
    assert json.loads(out.splitlines()[-1])["exit_code"] == code
    assert json.loads(out.splitlines()[-1])["reason"] == "found this, allowed that"


def test_run_command_hides_the_text_of_an_unexpected_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replace_verbs(monkeypatch, ValueError(f"could not convert {CANARY}"))
    assert run_command(["protect", "release.toml", "--json"]) == 1
    out, err = capsys.readouterr()
    assert CANARY not in out + err
    assert "ValueError" in err
    assert "Traceback" not in err


def test_run_command_shows_the_system_text_of_an_os_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replace_verbs(monkeypatch, OSError(errno.ENOSPC, CANARY, f"/data/region={CANARY}"))
    assert run_command(["protect", "release.toml"]) == 1
    err = capsys.readouterr().err
    assert os.strerror(errno.ENOSPC) in err
    assert CANARY not in err


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "Free space in"),
        (errno.EROFS, "Choose an evidence area"),
        (errno.EACCES, "Give this user"),
    ],
)
def test_run_command_states_what_to_do_about_an_error_of_the_system(
    number: int, remedy: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replace_verbs(monkeypatch, OSError(number, CANARY, CANARY))
    assert run_command(["protect", "release.toml"]) == 1
    err = " ".join(capsys.readouterr().err.split())
    assert f"Nothing was published. {remedy}" in err
    assert "then call this again" in err
    assert CANARY not in err


def test_debug_option_prints_the_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replace_verbs(monkeypatch, ValueError(CANARY))
    assert run_command(["protect", "release.toml", "--debug"]) == 1
    assert f"ValueError: {CANARY}" in capsys.readouterr().err


def test_run_command_prints_a_summary_and_then_the_json_object(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replace_verbs(monkeypatch, None)
    assert run_command(["protect", "release.toml", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Published."
    assert json.loads(lines[-1]) == {"verb": "protect", "exit_code": 0, "status": "done", "release_id": "abc"}


def test_quiet_option_suppresses_the_summary_unless_it_is_the_result(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replace_verbs(monkeypatch, None)
    run_command(["protect", "release.toml", "--quiet"])
    assert capsys.readouterr().out == ""
    run_command(["draft", "file.csv", "--quiet"])
    assert capsys.readouterr().out == "Published.\n"


def test_closed_pipe_on_standard_output_causes_no_traceback(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("sex,age\n" + "f,31\nm,47\n" * 30)
    code = f"{sys.executable} -m microguard draft {path} | true"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_messages_contain_no_terminal_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["protect", "a\x1b[31m\u202eb.toml"]) == 2
    err = capsys.readouterr().err
    assert "\x1b" not in err
    assert "\u202e" not in err
    assert "b.toml" in err
