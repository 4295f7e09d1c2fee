"""Write the page of the manual that compares lanes, from the results in the folders of the lanes."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

from deploy.dependency_lanes.results import NOT_FINISHED, JobResult

#: File with the results of a lane, in the folder of the lane.
RESULTS = "results.json"
#: Packages whose versions the page names.
SHOWN = (
    "pyspark", "numpy", "pandas", "pyarrow", "scipy", "numba", "highspy", "duckdb", "great_expectations",
    "apache_airflow", "dbt_core", "polars",
)  # fmt: skip
TITLE = "# The same records in every environment"
_WHAT = (
    "A lane is an environment that has the wheel and nothing of the checkout. Each job publishes there, "
    "`microguard verify` audits its releases, and pandas counts them again. A cell shows the first digits of "
    "the SHA-256 of the published rows, sorted: equal digits in a line mean the same records. The files "
    "themselves (sizes, order of row groups) may differ."
)
HEAD = f"""
{_WHAT}

- api: every public name is imported, an array is microaggregated, and compiled code is kept
- mixed, nominal, numeric: the demo, 400 records, at effort fast
- connect: the mixed demo again, given as a DataFrame of Spark Connect
- table: a table of amounts
- rounding: rounded counts; which of several optimal solutions HiGHS returns depends on its version, and the
  release id has the version
- register: two updates of a register
- catalogue: published in a REST, an SQL and a Hive catalogue, read by DuckDB, polars, pyiceberg and, in lane
  spark-3.5, Spark; withdrawn

Not run: the job has no result. Not finished: a command of the job was ended after 20 minutes on a busy
machine.
"""


def digest(values: Sequence[str]) -> str:
    """Return the first digits of the checksum of published rows; they are sorted."""
    return hashlib.sha256("\n".join(values).encode()).hexdigest()[:12]


def remember(folder: Path, version: str, installed: str, jobs: Mapping[str, JobResult]) -> None:
    """Write the results of a lane into its folder; jobs that were not run keep their last result."""
    path = folder / RESULTS
    before: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    stamp = {"version": version, "date": date.today().isoformat()}
    installed = "".join(line for line in installed.splitlines(True) if not line.startswith("microguard"))
    same = before.get("installed") == installed
    done = {name: _row(result) | stamp for name, result in jobs.items()}
    content = {"installed": installed, "jobs": (before["jobs"] if same else {}) | done}
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")


def _row(result: JobResult) -> dict[str, Any]:
    row = asdict(result)
    return row | {"values": digest(result.values) if result.values else ""}


def page(folder: Path, order: Sequence[str]) -> str:
    """Return the page of all lanes that have results below a folder, with their jobs in the given order."""
    found = {path.parent.name: json.loads(path.read_text()) for path in sorted(folder.glob(f"*/{RESULTS}"))}
    lanes = sorted(found, key=lambda lane: (lane.startswith("spark"), lane))
    names = [name for name in order if any(name in each["jobs"] for each in found.values())]
    rows = [[name, *(_cell(found[lane]["jobs"].get(name)) for lane in lanes)] for name in names]
    stamps = {(job["version"], job["date"]) for each in found.values() for job in each["jobs"].values()}
    versions = ", ".join(sorted({version for version, _ in stamps}))
    dates = ", ".join(sorted({day for _, day in stamps}))
    packages = [[name, *(_version(found[lane]["installed"], name) for lane in lanes)] for name in SHOWN]
    where = f"*Command:* `deploy/lanes LANE ... --page`. *Machine:* {platform.machine()}, shared."
    where += f" *Version:* {versions}. *Date:* {dates}."
    return "\n".join(
        [
            TITLE, HEAD, "## Published records", where, "", *_table(["job", *lanes], rows), "",
            "## Versions of the packages", where, "", *_table(["package", *lanes], packages), "",
        ]
    )  # fmt: skip


def _cell(job: Mapping[str, Any] | None) -> str:
    if job is None:
        return "not run"
    if NOT_FINISHED in job["message"]:
        return NOT_FINISHED
    if job["exit_code"]:
        return f"failed ({job['exit_code']})"
    return "refused by name" if job["refusal"] else f"`{job['values']}`" if job["values"] else "passed"


def _version(installed: str, package: str) -> str:
    for line in installed.splitlines():
        name, _, version = line.partition("==")
        if name.replace("-", "_").lower() == package:
            return version
    return "not installed"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows)]
