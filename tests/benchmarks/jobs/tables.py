"""Random jobs on tables: each release is additive, and protects its sensitive cells."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from microguard.schemas.methods import EFFORTS
from pyspark.sql import SparkSession

from tests.benchmarks.jobs.adjusting import adds_up, adjusted, published_tables, too_near
from tests.benchmarks.jobs.columns import EFFORT_SHARES

#: Limits that refuse nothing; half of the magnitude tables use them, half use the defaults.
NO_LIMITS = {"min_interval": 0.0, "min_direction_error": 0.0, "max_determined": 10**6}
ALGORITHMS = ("exact", "alternate", "random", "hybrid", "scatter-search", "learning", "local-search")


@dataclass(frozen=True)
class TableRecords:
    """Draw records with the dimensions d0, d1, ... and their hierarchies (gd0 above d0)."""

    frame: pd.DataFrame
    dimensions: list[str]
    hierarchies: list[list[str]]


class TableJob:
    """One random job on a table.

    Attributes
    ----------
    records : TableRecords
        Records of the table; drawn if they are not given.
    content : dict
        The parsed specification.
    """

    def __init__(self, seed: int, records: TableRecords | None = None) -> None:
        random = np.random.default_rng(seed)
        self.records = records or _records(random)
        names, hierarchies = self.records.dimensions, self.records.hierarchies
        linked = len(names) == 3 and random.random() < 0.5
        table: dict[str, Any] = {
            "tables": [names[:2], names[1:]] if linked else [names],
            "hierarchies": hierarchies,
        }
        roles: dict[str, Any] = {name: {"role": "other"} for name in self.records.frame if name[0] in "dg"}
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
        """Run the job, and return its result with the path of the release."""
        folder.mkdir(parents=True, exist_ok=True)
        self.records.frame.to_parquet(folder / "records.parquet", index=False)
        return adjusted(spark, self.content, folder)

    def fault(self, answer: dict[str, Any]) -> str:
        """Return the violated guarantees of a release; empty if there are none."""
        table = self.content["table"]
        if table.get("method") != "cell_key":
            for frame in published_tables(answer):
                for dimension in (name for name in frame if name.startswith("d")):
                    levels = next((each for each in table["hierarchies"] if dimension in each), [dimension])
                    if not adds_up(frame, levels, frame.columns[-1]):
                        return f"the totals over {dimension} are not the sums of their parts"
        near = too_near(answer) if "value" in table else 0
        return f"{near} sensitive cells are nearer than their level" if near else ""


def _records(random: np.random.Generator) -> TableRecords:
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
    return TableRecords(pd.DataFrame(columns).assign(unit=np.arange(n)), names, hierarchies)


def _magnitude(random: np.random.Generator) -> dict[str, Any]:
    """Draw rules and options of a magnitude table."""
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
