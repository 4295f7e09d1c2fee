"""The jobs of a lane: inputs, specifications, and the commands a user of the wheel calls.

Inputs are made by the standard library alone, so that all lanes read the same bytes.
"""

from __future__ import annotations

import csv
import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from deploy.dependency_lanes.connect_client import REFUSED
from deploy.dependency_lanes.lane import Lane
from deploy.dependency_lanes.results import NOT_FINISHED, JobResult

COUNT = Path(__file__).with_name("independent_count.py")
CONNECT = Path(__file__).with_name("connect_client.py")
CATALOGS = Path(__file__).with_name("catalog_readers.py")
ROOT = Path(__file__).resolve().parents[2]
#: File that the independent count writes.
VALUES = "values.txt"
#: Time limit of a command in seconds, in case a worker never answers.
TIMEOUT = 1200
DEMO_RECORDS, FIRMS, COUNTED, PERSONS = 400, 1500, 810, 300
_ANSWER = ("--json", "--quiet")
_EFFORT = "method.effort=fast"
_API = """
import microguard, numpy
for name in microguard.PUBLIC:
    getattr(microguard, name)
clusters = microguard.microaggregate(numpy.random.default_rng(0).normal(size=(60, 2)), 3, effort="fast")
assert min(numpy.bincount(clusters.labels)) >= 3
import microguard.sdc.kernels.compile, numba, pathlib
folder = pathlib.Path(numba.config.CACHE_DIR)
assert any(folder.rglob("*.nbc")), f"compiled code was not kept in {folder}"
"""
_TABLE = """[release]
name = "turnover"
k = 3
[input]
path = "firms.csv"
format = "csv"
[variables]
firm = { role = "unit" }
section = { role = "other" }
branch = { role = "other" }
region = { role = "region" }
turnover = { role = "sensitive", kind = "numeric" }
[table]
value = "turnover"
tables = [["branch", "region"]]
hierarchies = [["section", "branch"]]
dominance = { n = 1, k = 85 }
[publish]
path = "lake"
evidence = "evidence"
"""
#: Rounded counts of four variables: an integer program completes them, and its optimum is not unique.
_ROUNDING = """[release]
name = "counts"
k = 3
[input]
path = "persons.csv"
format = "csv"
[variables]
region = { role = "region" }
age = { role = "other" }
work = { role = "other" }
house = { role = "other" }
[table]
kind = "frequency"
tables = [["region", "age", "work", "house"]]
method = "rounding"
base = 5
relax = ["adjacent"]
effort = "fast"
[publish]
path = "lake"
evidence = "evidence"
"""
_REGISTER = """[release]
name = "persons"
k = 3
[input]
path = "first.csv"
format = "csv"
[variables]
person = { role = "unit" }
region = { role = "region" }
sex = { role = "quasi_identifier", kind = "nominal" }
income = { role = "quasi_identifier", kind = "numeric" }
diagnosis = { role = "sensitive", kind = "nominal" }
[method]
effort = "fast"
min_diversity = 2
[series]
max_waiting = 1.0
max_ghosts = 1.0
max_stale = 1.0
[publish]
series = "register"
path = "lake"
evidence = "evidence"
"""


@dataclass(frozen=True)
class Job:
    """One job: the files that it writes into an empty folder, and the commands that it runs there.

    Attributes
    ----------
    name : str
    commands : tuple of tuple of str
        Arguments of ``microguard``; a Python program if the first word is ``-c``.
    prepare : callable
        Writes input and specification into a folder.
    lake : str
        Public area of its releases, relative to the folder; empty if it makes none.
    only_on : tuple of str
        Choices of the lanes that run it; empty: all.
    refused_on : tuple of str
        Choices of lanes that must refuse the last command by name, with exit code `REFUSED`.
    """

    name: str
    commands: tuple[tuple[str, ...], ...]
    prepare: Callable[[Path], None] = lambda folder: None
    lake: str = "lake"
    only_on: tuple[str, ...] = ()
    refused_on: tuple[str, ...] = ()

    def run(self, lane: Lane, key: Path) -> JobResult:
        """Run the commands, verify the release and count it; the first failure ends the job."""
        folder = lane.folder / "jobs" / self.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.prepare(folder)
        began, ids = time.monotonic(), []
        audits = [("verify", self.lake), (str(COUNT), self.lake, self.name)] if self.lake else []
        for number, command in enumerate([*self.commands, *audits]):
            exit_code, last_line, message = _call(lane, command, folder, key, number)
            if exit_code == REFUSED and lane.choice in self.refused_on:
                return JobResult(0, time.monotonic() - began, refusal=message)
            if exit_code:
                return JobResult(exit_code, time.monotonic() - began, f"{command[0]}: {message}", tuple(ids))
            ids += [release_id] if (release_id := _release_id(last_line)) else []
        values = (folder / VALUES).read_text(encoding="utf-8").splitlines() if self.lake else []
        return JobResult(0, time.monotonic() - began, "", tuple(ids), tuple(values))


def _call(lane: Lane, command: Sequence[str], folder: Path, key: Path, number: int) -> tuple[int, str, str]:
    """Return exit code, last line of standard output and last lines of standard error of one command."""
    if command[0] == "-c" or command[0].endswith(".py"):
        words = [str(lane.interpreter), "-P", *command]
    else:
        words = [str(lane.interpreter.with_name("microguard")), *command]
    out, error = folder / f"{number}.out", folder / f"{number}.err"
    with out.open("w") as to_out, error.open("w") as to_error:
        process = subprocess.Popen(
            words, cwd=folder, env=lane.environment(key), stdin=subprocess.DEVNULL, stdout=to_out,
            stderr=to_error, start_new_session=True,
        )  # fmt: skip
        try:
            exit_code = process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            exit_code = -1
            to_error.write(f"\n{NOT_FINISHED} after {TIMEOUT} seconds\n")
        finally:
            with suppress(ProcessLookupError):  # end Java and worker processes that are still running
                os.killpg(process.pid, signal.SIGKILL)
    lines = out.read_text(errors="replace").splitlines()
    message = " ".join(error.read_text(errors="replace").split())[-400:]
    return exit_code, lines[-1] if lines else "", message


def _release_id(line: str) -> str | None:
    try:
        return json.loads(line).get("release_id")
    except (ValueError, AttributeError):
        return None


def _firms(folder: Path) -> None:
    draw = random.Random(1).random
    rows = []
    for number in range(FIRMS):
        branch = int(14 * draw() ** 1.6)
        turnover = round(10 * 2 ** (10 * draw() ** 2), 1)
        rows.append((f"f{number}", "ABCDE"[branch // 3], f"b{branch:02}", f"r{int(15 * draw())}", turnover))
    _write_csv(folder / "firms.csv", ("firm", "section", "branch", "region", "turnover"), rows)
    (folder / "table.toml").write_text(_TABLE)


def _counted(folder: Path) -> None:
    draw = random.Random(3).random
    codes = ("abc", "klm", "pqrst", "xyz")
    rows = [tuple(code[int(len(code) * draw())] for code in codes) for _ in range(COUNTED)]
    _write_csv(folder / "persons.csv", ("region", "age", "work", "house"), rows)
    (folder / "table.toml").write_text(_ROUNDING)


def _persons(folder: Path) -> None:
    """Return a register of two updates: of each ten persons, one leaves and one enters."""
    draw = random.Random(2).random
    rows = [
        (
            f"p{number}",
            ("north", "south")[number % 2],
            "fm"[int(2 * draw())],
            round(500 * 2 ** (5 * draw()), 2),
            "abcd"[int(4 * draw())],
        )
        for number in range(PERSONS * 11 // 10)
    ]
    header = ("person", "region", "sex", "income", "diagnosis")
    _write_csv(folder / "first.csv", header, rows[:PERSONS])
    _write_csv(folder / "second.csv", header, rows[len(rows) - PERSONS :])
    (folder / "release.toml").write_text(_REGISTER)


def _write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def _demo(kind: str, *options: str) -> tuple[str, ...]:
    place = ("--out", ".", "--records", str(DEMO_RECORDS), "--kind", kind)
    return ("demo", *place, "--set", _EFFORT, *_ANSWER, *options)


def _protect(update: str) -> tuple[str, ...]:
    return ("protect", "release.toml", "--set", f"input.path={update}.csv", *_ANSWER)


JOBS = (
    Job("api", (("-c", _API),), lake=""),
    *(Job(kind, (_demo(kind),)) for kind in ("mixed", "nominal", "numeric")),
    Job(
        "connect",
        (_demo("mixed", "--only-data"), (str(CONNECT), "release.toml", "data", _EFFORT)),
        refused_on=("spark-3.5", "lowest"),
    ),
    Job("table", (("adjust", "table.toml", *_ANSWER),), _firms),
    Job("rounding", (("adjust", "table.toml", *_ANSWER),), _counted),
    Job(
        "catalogue",
        (_demo("mixed", "--only-data"), (str(CATALOGS), str(ROOT), "release.toml", _EFFORT)),
        lake="",
        only_on=("pinned", "spark-3.5"),
    ),
    Job("register", (_protect("first"), _protect("second")), _persons),
)
