"""Run a small register in a given environment, and return the published bytes."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from string import Template

import numpy as np
import pandas as pd

from tests.system.command import ACCEPTED, TIMEOUT

ROOT = Path(__file__).parents[3]
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
COMMAND = (sys.executable, "-m", "microguard")
#: Times near changes of daylight saving time, before 1900, and in the year in which time zones were
#: introduced.
MOMENTS = [
    datetime(1883, 11, 18, 12, 3, 58),
    datetime(1969, 12, 31, 23, 59, 59),
    datetime(2024, 3, 31, 2, 30),
    datetime(2024, 10, 27, 2, 30),
]
CONTENT = """[release]
name = "persons"
k = 3
seed = 7
[input]
path = "$source"
[variables]
region = { role = "region" }
age = { role = "quasi_identifier", kind = "numeric" }
income = { role = "quasi_identifier", kind = "numeric" }
sex = { role = "quasi_identifier", kind = "nominal" }
title = { role = "sensitive" }
seen = { role = "sensitive" }
born = { role = "sensitive" }
[method]
effort = "fast"
[publish]
path = "$lake"
evidence = "$evidence"
$accepted
"""


def register(records: int = 60) -> pd.DataFrame:
    """Return persons with decimals, dates, times and letters whose upper case depends on the language."""
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        {
            "region": rng.choice(["İzmir", "ısparta"], records),
            "age": rng.integers(0, 100, records),
            "income": rng.lognormal(10, 1, records).round(2),
            "sex": rng.choice(["IŞIK", "işik"], records),
            "title": rng.choice(["Fräulein", "I i İ ı", "ß"], records),
            "seen": [MOMENTS[number % 4] + timedelta(minutes=number % 3) for number in range(records)],
            "born": [(MOMENTS[number % 4]).date() for number in range(records)],
        }
    )


def specification(
    folder: Path, source: str = "records.parquet", lake: str = "lake", evidence: str = "evidence"
) -> Path:
    """Write records and their specification to a folder, and return the path of the specification."""
    folder.mkdir(parents=True, exist_ok=True)
    if not source.startswith(("/", "~")):
        register().to_parquet(folder / source, index=False)
    path = folder / "release.toml"
    places = {"source": source, "lake": lake, "evidence": evidence, "accepted": ACCEPTED}
    path.write_text(Template(CONTENT).substitute(places), encoding="utf-8")
    return path


@dataclass(frozen=True)
class Surroundings:
    """The environment of a run: properties that differ between machines.

    Attributes
    ----------
    environment : mapping
        Environment variables; None removes a variable.
    shell : str
        Shell commands before the run: `umask`, `ulimit`, `cd`.
    redirected : str
        Redirections of the standard streams.
    """

    environment: Mapping[str, str | None] = field(default_factory=dict)
    shell: str = ""
    redirected: str = ""

    def start(self, *arguments: str | Path, cwd: Path | None = None) -> subprocess.Popen[str]:
        """Start the command in a new session, as the shell of a terminal does."""
        environment = dict(os.environ)
        for name, value in self.environment.items():
            environment.pop(name, None)
            if value is not None:
                environment[name] = value
        return subprocess.Popen(
            [
                "bash",
                "-c",
                f'{self.shell}\nexec "$@" {self.redirected}',
                "bash",
                *COMMAND,
                *map(str, arguments),
            ],
            env=environment,
            cwd=cwd,
            start_new_session=True,
            preexec_fn=_signals_of_a_terminal,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def run(self, *arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run the command and wait for its end."""
        run = self.start(*arguments, cwd=cwd)
        out, err = run.communicate(timeout=TIMEOUT)
        return subprocess.CompletedProcess(run.args, run.returncode, out, err)


def _signals_of_a_terminal() -> None:
    """Restore default handlers of signals that the parent ignores, as a shell does for background jobs."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_DFL)


def published(lake: Path) -> dict[str, str]:
    """Return checksums by relative path in the current release, without files that contain its id."""
    current = json.loads((lake / "current.json").read_text())
    release = lake / str(current["release_id"])
    return {
        str(path.relative_to(release)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(release.rglob("*.parquet"))
    }
