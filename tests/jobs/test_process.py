"""Tests of the process of a command: standard output contains only the result; closed streams are opened."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.jobs.endings import ROOT

#: A library that prints during its import, like highspy 1.16, and again from C when the process ends.
BANNER = """
import ctypes, os, sys
print("a banner")
print("a banner", file=sys.__stdout__, flush=True)
os.write(1, b"a banner\\n")
ctypes.CDLL(None).printf(b"a banner\\n")
"""
VERB = """
import sys
from microguard.jobs import command
import microguard
from microguard.pipelines.engine.command_result import CommandResult
def call(parsed, progress, show):
    import banner
    show("| a table |")
    return CommandResult("Published.", {{"name": "é"}})
command.call = call
sys.exit(microguard.main(["protect", "x.toml", *{arguments!r}]))
"""


def run_printing_verb(
    folder: Path, *arguments: str, redirected: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a verb that imports the run_printing_verb library, in a shell with these redirections."""
    (folder / "banner.py").write_text(BANNER)
    (folder / "verb.py").write_text(VERB.format(arguments=list(arguments)))
    return subprocess.run(
        ["bash", "-c", f'"$0" "$1" {redirected}', sys.executable, str(folder / "verb.py")],
        env={"PYTHONPATH": f"{ROOT}:{folder}"},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_standard_output_contains_only_the_result_if_a_library_prints(tmp_path: Path) -> None:
    done = run_printing_verb(tmp_path, "--json")
    assert done.returncode == 0
    assert done.stdout.splitlines()[:-1] == ["| a table |", "", "Published."]
    assert json.loads(done.stdout.splitlines()[-1])["name"] == "é"
    assert done.stderr == ""
    quiet = run_printing_verb(tmp_path, "--quiet")
    assert (quiet.returncode, quiet.stdout.strip(), quiet.stderr) == (0, "| a table |", "")


def test_debug_redirects_prints_of_libraries_to_standard_error(tmp_path: Path) -> None:
    done = run_printing_verb(tmp_path, "--debug")
    assert done.stdout.splitlines()[-1] == "Published."
    assert "a banner" not in done.stdout
    assert done.stderr.count("a banner") == 4


def test_closed_and_full_streams_do_not_change_the_exit_code(tmp_path: Path) -> None:
    for redirected in ("<&- >&- 2>&-", ">/dev/full 2>/dev/full", ">&-", "2>&-"):
        outcome = tmp_path / "outcome.json"
        done = run_printing_verb(tmp_path, "--json", "--outcome", str(outcome), redirected=redirected)
        assert done.returncode == 0, redirected
        assert "Traceback" not in done.stderr, redirected
        assert json.loads(outcome.read_text())["exit_code"] == 0
        outcome.unlink()


def test_prepare_process_raises_the_limit_of_open_files(tmp_path: Path) -> None:
    code = (
        "import resource; from microguard.jobs.process import prepare_process; prepare_process([]); "
        "import sys; print(*resource.getrlimit(resource.RLIMIT_NOFILE), file=sys.stderr)"
    )
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    done = subprocess.run(
        ["bash", "-c", f'ulimit -S -n 100; exec "{sys.executable}" -c "$0"', code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    soft = min(65_536, hard if hard != resource.RLIM_INFINITY else 65_536)
    assert done.stderr.split()[0] == str(soft), done.stderr


def test_removed_working_folder_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    done = subprocess.run(
        ["bash", "-c", f'cd gone; rmdir ../gone; exec "{sys.executable}" -m microguard draft x.csv'],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("The working folder: expected a folder that exists")


@pytest.mark.parametrize(("before", "after"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "3"}, "3")])
def test_prepare_process_limits_the_threads_of_libraries_that_are_not_loaded_yet(
    before: dict[str, str], after: str
) -> None:
    program = (
        "import os, sys; from microguard.jobs.process import prepare_process; prepare_process([]); "
        "print(os.environ['OPENBLAS_NUM_THREADS'], 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], env=before, capture_output=True, text=True)
    assert done.stdout.split() == [after, "False"], done.stderr
