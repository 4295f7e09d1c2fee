"""The process of a command: standard output has the answer alone, and closed streams do no harm."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

from tests.jobs.endings import ROOT

#: A library that prints as it is imported, as highspy 1.16 does, and once more from C as the process ends.
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


def printing(folder: Path, *arguments: str, redirected: str = "") -> subprocess.CompletedProcess[str]:
    """Run a verb that imports the printing library, by a shell with these redirections."""
    (folder / "banner.py").write_text(BANNER)
    (folder / "verb.py").write_text(VERB.format(arguments=list(arguments)))
    return subprocess.run(
        ["bash", "-c", f'"$0" "$1" {redirected}', sys.executable, str(folder / "verb.py")],
        env={"PYTHONPATH": f"{ROOT}:{folder}"},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_standard_output_has_the_answer_alone_whatever_a_library_prints(tmp_path: Path) -> None:
    done = printing(tmp_path, "--json")
    assert done.returncode == 0
    assert done.stdout.splitlines()[:-1] == ["| a table |", "", "Published."]
    assert json.loads(done.stdout.splitlines()[-1])["name"] == "é"
    assert done.stderr == ""
    quiet = printing(tmp_path, "--quiet")
    assert (quiet.returncode, quiet.stdout.strip(), quiet.stderr) == (0, "| a table |", "")


def test_with_debug_a_library_prints_to_standard_error(tmp_path: Path) -> None:
    done = printing(tmp_path, "--debug")
    assert done.stdout.splitlines()[-1] == "Published."
    assert "a banner" not in done.stdout
    assert done.stderr.count("a banner") == 4


def test_closed_and_full_streams_do_not_change_how_a_command_ends(tmp_path: Path) -> None:
    for redirected in ("<&- >&- 2>&-", ">/dev/full 2>/dev/full", ">&-", "2>&-"):
        outcome = tmp_path / "outcome.json"
        done = printing(tmp_path, "--json", "--outcome", str(outcome), redirected=redirected)
        assert done.returncode == 0, redirected
        assert "Traceback" not in done.stderr, redirected
        assert json.loads(outcome.read_text())["exit_code"] == 0
        outcome.unlink()


def test_a_command_may_open_as_many_files_as_the_system_allows(tmp_path: Path) -> None:
    code = (
        "import resource; from microguard.jobs.process import prepare; prepare([]); "
        "import sys; print(*resource.getrlimit(resource.RLIMIT_NOFILE), file=sys.stderr)"
    )
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    done = subprocess.run(
        ["bash", "-c", f'ulimit -S -n 100; exec "{sys.executable}" -c "$0"', code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    soft = min(65_536, hard if hard != resource.RLIM_INFINITY else 65_536)
    assert done.stderr.split()[0] == str(soft), done.stderr


def test_a_working_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    done = subprocess.run(
        ["bash", "-c", f'cd gone; rmdir ../gone; exec "{sys.executable}" -m microguard draft x.csv'],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("The working folder: expected a folder that exists")
