"""Tests of child processes of the workbench: the code they run, their end, and the result shown."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from microguard.pipelines.workbench.commands import Command, Finished
from microguard.pipelines.workbench.files import Files

pytest.importorskip("tomlkit", reason="the extra [workbench] is not installed")

PLANTED = "from pathlib import Path\nPath(__file__).with_name('executed').touch()\n"
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """Return a folder with data and malicious modules."""
    for name in ("microguard", "numpy", "argparse"):
        (tmp_path / f"{name}.py").write_text(PLANTED)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), ""]))
    return tmp_path


def test_command_runs_no_code_from_the_folder_of_the_data(planted):
    control = [sys.executable, "-m", "microguard", "draft", "missing.csv"]
    subprocess.run(control, cwd=planted, capture_output=True)
    assert (planted / "executed").exists()  # control: the attack succeeds without the protection
    (planted / "executed").unlink()
    result = asyncio.run(Command(["draft", "missing.csv"], planted).run(lambda _: None))
    assert "missing.csv" in result.text
    assert result.exit_code != 0
    assert not (planted / "executed").exists()


SERVED = """
import asyncio, sys
from pathlib import Path
from microguard.pipelines.workbench.app import Server, build_app, listen
from microguard.pipelines.workbench.commands import Command
from microguard.pipelines.workbench.files import Files
from microguard.pipelines.workbench.specification_text import SpecificationText
from microguard.pipelines.workbench.workbench import Workbench
from nicegui import background_tasks

Command.program = (sys.executable, "-c", '''
import signal, sys, time
from pathlib import Path

def end(*_):
    time.sleep(1)
    Path("ended").touch()
    sys.exit(1)

signal.signal(signal.SIGTERM, end)
Path("runs").touch()
time.sleep(60)
''')
workbench = Workbench(SpecificationText("", Path("x.toml")), Files("x.csv"), lambda *_: None)

async def run_and_print():
    task = background_tasks.create(workbench.run("protect"))
    while not Path("runs").exists():
        await asyncio.sleep(0.05)
    print("runs", flush=True)

server = Server(build_app(workbench), listen(0))
server.run(lambda: background_tasks.create(run_and_print()), workbench.close)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_workbench_waits_for_the_command_that_it_stops(tmp_path, number):
    pytest.importorskip("nicegui", reason="the extra [workbench] is not installed")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", SERVED], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "runs"
        process.send_signal(number)
        process.wait(timeout=300)
        assert (tmp_path / "ended").exists()


def opened(folder):
    """Return a workbench whose input does not exist."""
    from microguard.pipelines.workbench.specification_text import SpecificationText
    from microguard.pipelines.workbench.workbench import Workbench

    text = SpecificationText("a = 1", folder / "x.toml")
    return Workbench(text, Files(str(folder / "x.csv")), lambda *_: None)


@pytest.mark.parametrize("change", [True, False])
def test_run_result_is_marked_outdated_if_the_specification_changed_meanwhile(tmp_path, monkeypatch, change):
    workbench = opened(tmp_path)

    async def run(self, progress):
        if change:
            workbench.text.replace("a = 2", "a: 2")
        return Finished(0, "done")

    monkeypatch.setattr(Command, "run", run)
    asyncio.run(workbench.run("protect"))
    assert workbench.finished["protect"].outdated == change


@pytest.mark.parametrize(
    ("verb", "kept"), [("protect", []), ("adjust", []), ("approve", []), ("reject", []), ("withdraw", []),
                       ("check", ["pending", "history"]), ("pending", ["pending", "history"])],
)  # fmt: skip
def test_workbench_reads_the_ledger_again_after_a_verb_that_changes_it(tmp_path, monkeypatch, verb, kept):
    """'No release is pending approval' would remain after a run whose release is pending."""

    async def run(self, progress):
        return Finished(0, "done")

    monkeypatch.setattr(Command, "run", run)
    workbench = opened(tmp_path)
    workbench.finished = {each: Finished(0, "") for each in ("pending", "history")}
    asyncio.run(workbench.run(verb))
    assert [each for each in workbench.finished if each in ("pending", "history")] == kept


def test_verb_that_only_reads_does_not_save_the_specification(tmp_path):
    workbench = opened(tmp_path)
    assert asyncio.run(workbench.run_saved("pending")) is None
    assert not workbench.text.path.exists()
    assert "Save x.toml first" in workbench.last_message
