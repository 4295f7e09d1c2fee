"""Random jobs on tables: whatever is published adds up again, and moves sensitive cells far enough."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from pipelines import run as the_run
from pipelines.adjust import adjust
from pipelines.engine.progress import Progress
from schemas.methods import EFFORTS
from schemas.specification.read import build_specification
from tests.benchmarks.jobs.columns import EFFORT_SHARES

#: Limits that refuse nothing: half of the magnitudes are judged by these, half by the defaults.
NO_LIMITS = {"min_interval": 0.0, "min_direction_error": 0.0, "max_determined": 10**6}
ALGORITHMS = ("exact", "alternate", "random", "hybrid", "scatter-search", "learning", "local-search")


class TableJob:
    """One job, drawn from its seed.

    Attributes
    ----------
    frame : DataFrame
        The records behind the table.
    content : dict
        The parsed specification.
    """

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.frame, names, hierarchies = _records(random)
        linked = len(names) == 3 and random.random() < 0.5
        table: dict[str, Any] = {
            "tables": [names[:2], names[1:]] if linked else [names],
            "hierarchies": hierarchies,
        }
        roles: dict[str, Any] = {name: {"role": "other"} for name in self.frame if name[0] in "dg"}
        roles["unit"] = {"role": "unit"}
        kind = str(random.choice(["magnitude", "magnitude", "frequency", "rounding", "cell_key"]))
        if kind == "magnitude":
            roles["value"] = {"role": "sensitive", "kind": "numeric"}
            table |= _magnitude(random)
        else:
            table["kind"] = "frequency"
        if kind in ("rounding", "cell_key"):
            table["method"] = kind
        if kind == "rounding":
            table |= {"base": int(random.choice([5, 10])), "relax": ["adjacent"]}
        if kind != "cell_key":
            table["effort"] = str(random.choice(EFFORTS, p=EFFORT_SHARES))
        if kind in ("magnitude", "frequency") and random.random() < 0.25:
            table["algorithm"] = str(random.choice(ALGORITHMS))
        self.content = {
            "release": {"name": "table", "k": int(random.choice([2, 3, 5])), "seed": seed},
            "input": {"path": "records.parquet", "unmentioned": "drop"},
            "variables": roles,
            "table": table,
            "publish": {"path": "lake", "evidence": "evidence"},
        }

    def publish(self, spark: SparkSession, folder: Path) -> dict[str, Any]:
        """The answer of the job; where it lies, it says."""

        @contextmanager
        def shared(*_: object, **__: object) -> Iterator[SparkSession]:
            yield spark

        folder.mkdir(parents=True)
        self.frame.to_parquet(folder / "records.parquet", index=False)
        with patch.object(the_run, "session", shared):
            return adjust(build_specification(self.content, folder), progress=Progress(quiet=True)).content

    def fault(self, answer: dict[str, Any]) -> str:
        """What a release breaks of its promise; nothing where it is kept."""
        table = self.content["table"]
        if table.get("method") != "cell_key":
            for path in sorted(Path(answer["release"]).rglob("*.parquet")):
                frame = pq.read_table(path).to_pandas()
                for dimension in (name for name in frame if name.startswith("d")):
                    levels = next((each for each in table["hierarchies"] if dimension in each), [dimension])
                    if not adds_up(frame, levels, frame.columns[-1]):
                        return f"the totals over {dimension} are not the sums of their parts"
        if "value" in table:
            cells = pq.read_table(Path(answer["report"]).parent / "cells.parquet").to_pandas()
            sensitive = cells[cells["sensitive"]].drop(columns=["sensitive"])
            names = ["original", "published", "lower_protection", "upper_protection"]
            numbers = sensitive[names].astype(np.float64)
            change = numbers["published"] - numbers["original"]
            slack = 1e-9 * numbers["original"].abs()
            far = (change + slack >= numbers["upper_protection"]) | (
                -change + slack >= numbers["lower_protection"]
            )
            if not far.all():
                return f"{(~far).sum()} sensitive cells are nearer than their level"
        return ""


def adds_up(frame: pd.DataFrame, levels: list[str], value: str, total: str = "Total") -> bool:
    """Whether every total of a dimension is the sum of its parts, to the last digit."""
    exact = frame.assign(**{value: [Decimal(str(each)) for each in frame[value]]})
    others = [name for name in frame.columns if name not in (*levels, value)]
    for depth, level in enumerate(levels):
        summed = (exact[levels[depth + 1 :]] == total).all(axis=1)
        keys = [*others, *levels[:depth]]
        of_parts = exact[(exact[level] != total) & summed].assign(all="")
        of_totals = exact[(exact[level] == total) & summed].assign(all="").set_index(["all", *keys])[value]
        sums = of_parts.groupby(["all", *keys])[value].agg(lambda each: sum(each, Decimal(0)))
        if not of_totals.reindex(sums.index).equals(sums):
            return False
    return True


def _records(random: np.random.Generator) -> tuple[pd.DataFrame, list[str], list[list[str]]]:
    """Records, the dimensions d0, d1, ... and their hierarchies."""
    n = int(random.choice([5, 20, 80, 300, 1_500]))
    columns: dict[str, Any] = {}
    names, hierarchies = [f"d{i}" for i in range(int(random.choice([1, 2, 2, 3])))], []
    for name in names:
        codes = int(random.choice([1, 2, 4, 8, 15]))
        shares = random.dirichlet(np.full(codes, random.choice([0.3, 1.0, 5.0])))
        drawn = random.choice(codes, n, p=shares)
        columns[name] = [f"c{code:02d}" for code in drawn]
        if random.random() < 0.4:
            above = random.integers(0, max(1, codes // 2), codes)
            columns[f"g{name}"] = [f"G{above[code]}" for code in drawn]
            hierarchies.append([f"g{name}", name])
    values = {
        "skewed": random.lognormal(4, 1.5, n).round(3),
        "wide": random.lognormal(6, 4, n).round(2),
        "whole": random.integers(0, 100, n).astype(float),
        "zeros": np.where(random.random(n) < 0.5, 0.0, random.lognormal(3, 1, n).round(2)),
        "signed": random.normal(0, 100, n).round(2),
        "constant": np.full(n, 10.0),
    }
    columns["value"] = values[str(random.choice(list(values)))]
    return pd.DataFrame(columns).assign(unit=np.arange(n)), names, hierarchies


def _magnitude(random: np.random.Generator) -> dict[str, Any]:
    """Rules and options of a table of magnitudes."""
    table: dict[str, Any] = {"value": "value", "decimals": int(random.choice([0, 1, 2, 4]))}
    rule = str(random.choice(["dominance", "p_percent", "none"]))
    if rule == "dominance":
        table["dominance"] = {"n": int(random.choice([1, 2])), "k": float(random.choice([70, 85]))}
    elif rule == "p_percent":
        table["p_percent"] = float(random.choice([5, 15]))
    options = {
        "mode": "exact",
        "costs": "inverse",
        "fixed_margins": True,
        "relax": ["capacities", "fixed"],
        "preserve": {"mean": float(random.choice([0.0, 0.05]))},
    }
    table |= {name: value for name, value in options.items() if random.random() < 0.2}
    return table | ({"quality": NO_LIMITS} if random.random() < 0.5 else {})
