"""Tests of scheduler examples: killed runs are retried and refused runs are not, also without exit codes."""

from __future__ import annotations

import ast
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.recipes import DEPLOY, REFUSED, verb_of

FOLDER = DEPLOY / "schedulers"


@pytest.fixture(autouse=True)
def _import_from_schedulers(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))


def command(folder: Path, code: int, outcome: dict[str, object] | None) -> list[str]:
    """Return a command that exits with this code and writes this outcome file."""
    script = folder / "microguard.py"
    script.write_text(
        "import sys\n"
        "assert sys.argv[1] == 'protect'\n"
        f"text = {json.dumps(outcome)!r}\n"
        "if text != 'null':\n"
        "    open(sys.argv[sys.argv.index('--outcome') + 1], 'w').write(text)\n"
        f"sys.exit({code})\n"
    )
    return [sys.executable, str(script)]


def test_nightly_refused_lists_the_exit_codes_of_refusals():
    from nightly import REFUSED as refused

    assert list(refused) == REFUSED


@pytest.mark.parametrize("code", [0, 1, *REFUSED, 130])
def test_nightly_protect_reads_the_exit_code_from_the_outcome_file(tmp_path, code):
    from nightly import protect

    result = protect("release.toml", command(tmp_path, 0, {"exit_code": code, "reason": "It is so."}))
    assert result.exit_code == code
    assert result.refused == (code in REFUSED)
    assert result.reason == "It is so."


def test_nightly_protect_allows_a_retry_of_a_killed_run(tmp_path):
    from nightly import protect

    result = protect("release.toml", command(tmp_path, 137, None))
    assert result.exit_code == 137
    assert not result.refused


@pytest.mark.parametrize("name", ["airflow_dag.py", "dagster_assets.py"])
def test_scheduler_examples_import_only_their_scheduler_and_nightly(name):
    tree = ast.parse((FOLDER / name).read_text())
    imported = {
        (node.module or "").partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
    }
    assert imported - set(sys.stdlib_module_names) == {name.partition("_")[0], "nightly"}
    called = {
        node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and hasattr(node.func, "id")
    }
    assert "protect" in called


def test_airflow_loads_the_dag_without_import_errors(monkeypatch, tmp_path):
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    pytest.importorskip("airflow.sdk", reason="needs a separate environment; tested manually")
    from airflow_dag import microguard_persons

    dag = microguard_persons()
    assert [task.task_id for task in dag.topological_sort()] == ["release", "verify"]
    assert dag.max_active_runs == 1


@pytest.mark.parametrize(("code", "attempts"), [(0, 1), (4, 1), (1, 4)])
def test_dagster_retries_killed_runs_and_no_refused_runs(monkeypatch, tmp_path, code, attempts):
    dagster = pytest.importorskip("dagster", reason="needs a separate environment; tested manually")
    import dagster_assets
    import nightly

    monkeypatch.setattr(dagster_assets.persons.op, "_retry_policy", dagster.RetryPolicy(max_retries=3))
    nights = []

    def protect(specification: str) -> nightly.RunResult:
        nights.append(specification)
        return nightly.RunResult(code, {"release_id": "1" * 32, "reason": "It is so."})

    monkeypatch.setattr(dagster_assets, "protect", protect)
    done = dagster.materialize([dagster_assets.persons], raise_on_error=False)
    assert done.success == (code == 0)
    assert len(nights) == attempts


def unit(suffix: str) -> str:
    return (FOLDER / f"microguard@.{suffix}").read_text()


def test_systemd_unit_restarts_killed_runs_and_no_refused_runs():
    service = unit("service")
    [line] = re.findall(r"^ExecStart=(.*)$", service, re.MULTILINE)
    words = shlex.split(line)
    assert verb_of(["microguard", *words[1:]]) == "protect"
    [codes] = re.findall(r"^RestartPreventExitStatus=(.*)$", service, re.MULTILINE)
    assert [int(code) for code in codes.split()] == REFUSED


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd on this machine")
def test_systemd_units_pass_systemd_analyze_verify(tmp_path):
    service = tmp_path / "microguard@persons.service"
    service.write_text(unit("service").replace("/opt/microguard/bin/microguard", "/bin/true"))
    timer = tmp_path / "microguard@persons.timer"
    timer.write_text(unit("timer"))
    done = subprocess.run(["systemd-analyze", "verify", service, timer], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
