"""Run the main job on reference files, and return the certificates of its blocks."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from tests.benchmarks.processes import microguard
from tests.benchmarks.table import Table
from tests.reference import ADULT, REFERENCE_FOLDER
from tests.system.command import ACCEPTED, HELD_BY_DEFAULT

CENSUS = (
    "afnlwgt", "agi", "emcontrb", "fedtax", "ptotval", "statetax", "taxinc", "pothval", "intval", "pearnval",
    "fica", "wsalval", "ernval",
)  # fmt: skip
TARRAGONA = (
    "fixed_assets", "current_assets", "treasury", "uncommitted_funds", "paid_up_capital", "short_term_debt",
    "sales", "labor_costs", "depreciation", "operating_profit", "financial_outcome", "gross_profit",
    "net_profit",
)  # fmt: skip

ABSENT = "The reference files are not here: they lie in the shared folder beside the repository."


@dataclass(frozen=True)
class Case:
    """A reference file with the roles of its variables."""

    name: str
    file: str
    k: int
    quasi_identifiers: dict[str, str]
    others: dict[str, str]
    most_loss: float | None = None
    method: str = ""

    def specification(self) -> str:
        """Return the release specification as TOML."""
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
    """Return both tables; quick: without most exact blocks."""
    yield _reference_files()
    yield _by_blocks(quick)


def _reference_files() -> Table:
    rows: list[tuple[object, ...]] = []
    for case in _cases() if REFERENCE_FOLDER.is_dir() else []:
        found = _release_of(case)
        quality = found.quality
        risk = quality["risk"]["all"]["after"]
        assert risk["smallest"] >= case.k
        loss = quality.get("loss", {}).get("all", {}).get("information_loss")
        assert case.most_loss is None or loss <= case.most_loss, f"{case.name}: {loss}"
        chi2 = {dimension: found["chi2"] for dimension, found in quality.get("by_dimension", {}).items()}
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
    """Return gap and time of each block for methods that run a solver in the tasks."""
    runs: list[tuple[str, str, Callable[[], Release]]] = [
        (case.name, case.method, partial(_release_of, case))
        for case in (_solver_cases() if REFERENCE_FOLDER.is_dir() else [])
    ]
    runs.append(
        ("demo town of 100,000, 10 numeric, one diagnosis is enough", 'effort = "exact"', _release_of_demo)
    )
    rows: list[tuple[object, ...]] = []
    for name, method, release in runs[:1] if quick else runs:
        whole = release()
        assert whole.quality["risk"]["all"]["after"]["smallest"] >= 3
        single = whole.blocks[whole.blocks["block"].notna()]  # the row of the whole file is excluded
        solved = single[single["algorithm"] != "none"]
        gaps = 100 * solved["gap"].dropna()
        loss = whole.quality.get("loss", {}).get("all")
        rows.append(
            (
                name,
                method.replace('"', "").replace("\n", ", "),
                len(solved),
                _spread(solved["records"]),
                int(solved["optimal"].sum()),
                _spread(gaps) if len(gaps) else None,
                _spread(solved["seconds"]),
                100 * loss["information_loss"] if loss else None,
                whole.quality.get("by_dimension", {}).get("2", {}).get("chi2"),
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
        note="Two-step methods (own-..) prove nothing: their gap is to a bound by the cells below k.",
    )


def _solver_cases() -> list[Case]:
    firms = {"a21": "nominal", "size": "nominal", "turnover": "numeric", "production": "numeric"}
    five = dict.fromkeys(("sex", "race", "relationship", "workclass", "occupation"), "nominal")
    exact = 'effort = "exact"'
    return [
        Case("Census, 13 numeric", "casc_census.csv", 3, dict.fromkeys(CENSUS, "numeric"), {}, method=exact),
        Case("businesses by NUTS1, 4 mixed", "business_survey.csv", 3, firms,
             {"nuts1": "region", "weight": "weight", "type": "other"}, method=f"{exact}\nweighted = false"),
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
    ran = microguard("protect", specification, *arguments)
    evidence = Path(ran.answer["report"]).parent
    quality = json.loads((evidence / "quality.json").read_text())
    return Release(ran.seconds, quality, pd.read_parquet(evidence / "blocks.parquet"))


def _release_of(case: Case) -> Release:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "release.toml"
        path.write_text(case.specification())
        return _release(str(path))


def _release_of_demo() -> Release:
    with tempfile.TemporaryDirectory() as folder:
        microguard("demo", "--records", "100000", "--kind", "numeric", "--out", folder, "--only-data")
        accepted = [f'--set=quality.accept.{name}="a test"' for name in HELD_BY_DEFAULT]
        settings = ("--set=method.effort=exact", "--set=method.min_diversity=1", *accepted)
        return _release(f"{folder}/release.toml", *settings)


def _spread(values: pd.Series) -> str:
    """Format median, 90 percent quantile and maximum."""
    return " / ".join(f"{values.quantile(share):.3g}" for share in (0.5, 0.9, 1.0))
