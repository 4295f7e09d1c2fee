"""The main job from command to release: reference files, and a million records against a bare sort."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from tests.benchmarks.table import Table
from tests.reference import ADULT, REFERENCE_FOLDER
from tests.system.command import ACCEPTED, COMMAND

CENSUS = (
    "afnlwgt", "agi", "emcontrb", "fedtax", "ptotval", "statetax", "taxinc", "pothval", "intval", "pearnval",
    "fica", "wsalval", "ernval",
)  # fmt: skip
TARRAGONA = (
    "fixed_assets", "current_assets", "treasury", "uncommitted_funds", "paid_up_capital", "short_term_debt",
    "sales", "labor_costs", "depreciation", "operating_profit", "financial_outcome", "gross_profit",
    "net_profit",
)  # fmt: skip
#: The whole job may take so many times a bare read, sort and write of the same file.
MOST_SORTS = 6.0

_SORT = """
import sys
from pipelines.engine.session import open_session
spark = open_session("local[2]")
frame = spark.read.parquet(sys.argv[1])
frame.sort(*frame.columns[:3]).write.mode("overwrite").parquet(sys.argv[2])
spark.stop()
"""


ABSENT = "The reference files are not here: they lie in the shared folder beside the repository."


@dataclass(frozen=True)
class Case:
    """A reference file and what its variables are to the release."""

    name: str
    file: str
    k: int
    quasi_identifiers: dict[str, str]
    others: dict[str, str]
    most_loss: float | None = None
    method: str = ""

    def specification(self) -> str:
        """The release specification as TOML."""
        lines = [f'{name} = {{ role = "quasi_identifier", kind = "{kind}" }}'
                 for name, kind in self.quasi_identifiers.items()]  # fmt: skip
        lines += [f'{name} = {{ role = "{role}" }}' for name, role in self.others.items()]
        path = (REFERENCE_FOLDER / self.file).as_posix()
        return "\n".join(
            [
                f'[release]\nname = "bench"\nk = {self.k}\nseed = 1',
                f'[input]\npath = "{path}"\nformat = "csv"\nmissing = "?"\nunmentioned = "drop"',
                "[variables]",
                *lines,
                f"[method]\n{self.method}",
                ACCEPTED,
                '[publish]\npath = "lake"\nevidence = "evidence"',
            ]
        )


def _cases() -> list[Case]:
    nominal = dict.fromkeys(ADULT, "nominal")
    mixed = nominal | {"age": "numeric", "hours_per_week": "numeric", "capital_gain": "numeric"}
    rest = {"capital_loss": "other", "income": "sensitive"}
    numbers = {"age": "other", "hours_per_week": "other", "capital_gain": "other"}
    firms = {"a21": "nominal", "size": "nominal", "turnover": "numeric", "production": "numeric"}
    return [
        Case("Adult, 8 nominal", "adult.csv", 3, nominal, numbers | rest),
        Case("Adult, 8 nominal", "adult.csv", 5, nominal, numbers | rest),
        Case("Adult, 11 mixed", "adult.csv", 3, mixed, rest),
        Case("Census, 13 numeric", "casc_census.csv", 3, dict.fromkeys(CENSUS, "numeric"), {}, 0.053),
        Case("Tarragona, 13 numeric", "tarragona.csv", 3, dict.fromkeys(TARRAGONA, "numeric"), {}, 0.152),
        Case("businesses by NUTS1, 4 mixed", "business_survey.csv", 3, firms,
             {"nuts1": "region", "weight": "weight", "type": "other"}),
    ]  # fmt: skip


def run(quick: bool = False) -> Iterator[Table]:
    """All tables; `quick` leaves the million records out for fifty thousand, and most exact blocks."""
    yield _reference_files()
    yield _by_blocks(quick)
    yield _at_scale(50_000 if quick else 1_000_000, quick)


def _reference_files() -> Table:
    rows: list[tuple[object, ...]] = []
    for case in _cases() if REFERENCE_FOLDER.is_dir() else []:
        found = _release_of(case)
        quality = found.quality
        risk = quality["risk"]["all"]["after"]
        assert risk["smallest"] >= case.k
        loss = quality["loss"].get("all", {}).get("information_loss")
        assert case.most_loss is None or loss <= case.most_loss, f"{case.name}: {loss}"
        chi2 = {dimension: found["chi2"] for dimension, found in quality["by_dimension"].items()}
        percent = None if loss is None else 100 * loss
        published = quality["counts"]["published"]
        tables = (chi2.get("1"), chi2.get("2"))
        rows.append((case.name, case.k, published, found.seconds, percent, *tables, risk["smallest"]))
    return Table(
        "Reference files, standard effort, command to release",
        ("file", "k", "records", "seconds", "loss, %", "chi2, dim 1", "chi2, dim 2", "smallest class"),
        rows,
        note="" if rows else ABSENT,
    )


def _by_blocks(quick: bool) -> Table:
    """What was proved of each block, and how long it took, where a solver works inside the tasks."""
    runs: list[tuple[str, str, Callable[[], Release]]] = [
        (case.name, case.method, partial(_release_of, case))
        for case in (_solver_cases() if REFERENCE_FOLDER.is_dir() else [])
    ]
    runs.append(("demo town of 100,000, 10 numeric", 'effort = "exact"', _release_of_demo))
    rows: list[tuple[object, ...]] = []
    for name, method, release in runs[:1] if quick else runs:
        whole = release()
        assert whole.quality["risk"]["all"]["after"]["smallest"] >= 3
        solved = whole.blocks[whole.blocks["algorithm"] != "none"]
        gaps = 100 * solved["gap"].dropna()
        loss = whole.quality["loss"].get("all")
        rows.append(
            (
                name,
                method.replace('"', ""),
                len(solved),
                _spread(solved["records"]),
                int(solved["optimal"].sum()),
                _spread(gaps) if len(gaps) else None,
                _spread(solved["seconds"]),
                100 * loss["information_loss"] if loss else None,
                whole.quality["by_dimension"].get("2", {}).get("chi2"),
                whole.seconds,
            )
        )
    return Table(
        "Solvers inside the tasks, block by block: median / 90 % / largest",
        (
            "file",
            "method",
            "blocks solved",
            "records",
            "proved optimal",
            "gap, %",
            "seconds a block",
            "loss, %",
            "chi2, dim 2",
            "seconds in all",
        ),
        rows,
        note="Two-step methods (own-..) prove no bound on chi-square, so they have no gap.",
    )


def _solver_cases() -> list[Case]:
    firms = {"a21": "nominal", "size": "nominal", "turnover": "numeric", "production": "numeric"}
    five = dict.fromkeys(("sex", "race", "relationship", "workclass", "occupation"), "nominal")
    exact = 'effort = "exact"'
    return [
        Case("Census, 13 numeric", "casc_census.csv", 3, dict.fromkeys(CENSUS, "numeric"), {}, method=exact),
        Case("businesses by NUTS1, 4 mixed", "business_survey.csv", 3, firms,
             {"nuts1": "region", "weight": "weight", "type": "other"}, method=exact),
        *[
            Case("Adult by marital status, 5 nominal", "adult.csv", 3, five, {"marital_status": "region"},
                 method=f'algorithm = "{name}"')
            for name in ("own-hhg", "own-hhe", "chi-exact")
        ],
    ]  # fmt: skip


@dataclass(frozen=True)
class Release:
    """A finished run: its wall time, its measures and its block reports."""

    seconds: float
    quality: dict[str, Any]
    blocks: pd.DataFrame


def _release(specification: str, *arguments: str) -> Release:
    seconds, answer = _microguard("protect", specification, *arguments)
    evidence = Path(answer["report"]).parent
    quality = json.loads((evidence / "quality.json").read_text())
    return Release(seconds, quality, pd.read_parquet(evidence / "blocks.parquet"))


def _release_of(case: Case) -> Release:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "release.toml"
        path.write_text(case.specification())
        return _release(str(path))


def _release_of_demo() -> Release:
    with tempfile.TemporaryDirectory() as folder:
        _microguard("demo", "--records", "100000", "--kind", "numeric", "--out", folder, "--only-data")
        return _release(f"{folder}/release.toml", "--set", "method.effort=exact")


def _spread(values: pd.Series) -> str:
    """Median, 90 percent quantile and maximum."""
    return " / ".join(f"{values.quantile(share):.3g}" for share in (0.5, 0.9, 1.0))


def _at_scale(records: int, quick: bool) -> Table:
    rows: list[tuple[object, ...]] = []
    for kind in ("numeric", "nominal"):
        with tempfile.TemporaryDirectory() as folder:
            base = ("demo", "--records", str(records), "--kind", kind, "--out", folder)
            _microguard(*base, "--only-data")
            sort = _timed([sys.executable, "-c", _SORT, f"{folder}/data", f"{folder}/sorted"])
            arguments = (f"{folder}/release.toml", "--set", "method.effort=fast", "--master", "local[2]")
            with _Memory() as memory:
                seconds, _ = _microguard("protect", *arguments)
        assert quick or seconds <= MOST_SORTS * sort, f"{kind}: {seconds / sort:.1f} times a bare sort"
        rows.append((kind, records, seconds, records / seconds, sort, seconds / sort, memory.peak / 2**30))
    return Table(
        "Fast effort, local[2], whole processes from start to end",
        (
            "quasi-identifiers",
            "records",
            "seconds",
            "records/s",
            "bare sort, s",
            "ratio",
            "peak memory of all processes, GiB",
        ),
        rows,
    )


class _Memory:
    """Peak resident memory of everything this process has started, sampled (Linux)."""

    def __enter__(self) -> _Memory:
        self.peak = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        page = os.sysconf("SC_PAGE_SIZE")
        while not self._over.wait(0.5):
            parents, pages = {}, {}
            for entry in Path("/proc").glob("[0-9]*/stat"):
                try:
                    fields = entry.read_text().rpartition(")")[2].split()
                except OSError:  # gone in between
                    continue
                parents[int(entry.parent.name)], pages[int(entry.parent.name)] = (
                    int(fields[1]),
                    int(fields[21]),
                )
            ours = {os.getpid()}
            while grown := {child for child, parent in parents.items() if parent in ours} - ours:
                ours |= grown
            self.peak = max(self.peak, page * sum(pages[child] for child in ours - {os.getpid()}))


def _microguard(*arguments: str) -> tuple[float, dict[str, Any]]:
    start = time.monotonic()
    done = subprocess.run([COMMAND, *arguments, "--json", "--quiet"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return time.monotonic() - start, json.loads(done.stdout.strip().splitlines()[-1])


def _timed(command: list[str]) -> float:
    start = time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    return time.monotonic() - start
