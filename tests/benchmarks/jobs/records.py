"""Random jobs on records: each release is counted independently, and reproduced from shuffled rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from microguard.pipelines.audit.release import audit
from microguard.schemas.methods import EFFORTS, FREQUENCY, SAFE, algorithms
from pyspark.sql import SparkSession

from tests.benchmarks.jobs.columns import EFFORT_SHARES, categories, numbers
from tests.pipelines.microdata import published, run, specification
from tests.system.pairwise.promise import broken_classes

#: Number of files of the shuffled input.
FILES = 3
#: Further methods by the kind of all quasi-identifiers, and those that make no classes.
METHODS = {
    "numeric": ("rank_swapping", "correlated_noise"),
    "nominal": ("pram", "recoding", "local_suppression"),
}
WITHOUT_CLASSES = ("rank_swapping", "correlated_noise", "pram")
REPRESENTATIVES = ("mean", "median", "medoid", "control_tables", "mode")


class RecordsJob:
    """One random job on records.

    Attributes
    ----------
    frame : DataFrame
        The input.
    roles, sections : dict
        Roles of the columns, and sections of the specification.
    extra : dict of str to str
        Content of further files of the specification, by name.
    """

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.frame, self.roles, self.extra = _file(random)
        self._protected = [name for name in self.frame if name.startswith("q")]
        self.k = int(random.choice([2, 3, 5]))
        method = self._method(random)
        self.sections: dict[str, Any] = {
            "release": {"k": self.k, "seed": seed},
            "method": method,
            "missing": {
                "numeric": str(random.choice(["reject", "own_cluster"])),
                "nominal": str(random.choice(["category", "reject"])),
                "max_rejected": len(self.frame),
            },
            "blocking": {"small_regions": str(random.choice(["suppress", "suppress", "fail"]))},
        }
        if random.random() < 0.3:
            self.sections["blocking"]["max_records"] = int(random.choice([20, 100]))
        self.sections["publish"] = self._publish(random)
        self._recode(random)
        if "name" in method and method["name"] != "safe":
            self._groups = [self._protected]
            return
        half = len(self._protected) // 2
        self._groups = [self._protected]
        if half and random.random() < 0.2:
            self._groups = [self._protected[:half], self._protected[half:]]
            named = zip("ab", self._groups, strict=True)
            self.sections["groups"] = [{"name": name, "variables": group} for name, group in named]

    def _method(self, random: np.random.Generator) -> dict[str, Any]:
        kinds = {self.roles[name]["kind"] == "numeric" for name in self._protected}
        kind = "mixed" if len(kinds) > 1 else "numeric" if kinds == {True} else "nominal"
        if kind in METHODS and random.random() < 0.3 and not self._with_costs:
            return {"name": str(random.choice(METHODS[kind])), "effort": "standard"}
        names = [*algorithms("microaggregation", kind, len(self._protected))]
        names += [*FREQUENCY, *SAFE] if kind == "nominal" else []
        name = str(random.choice(names)) if random.random() < 0.5 else "auto"
        method: dict[str, Any] = {"effort": str(random.choice(EFFORTS, p=EFFORT_SHARES)), "algorithm": name}
        if name in SAFE:
            method["name"] = "safe"
        if random.random() < 0.15:
            method["representative"] = str(random.choice(REPRESENTATIVES))
        if "diagnosis" in self.frame and random.random() < 0.3:
            method["min_diversity"] = 2
        if "household" in self.frame and random.random() < 0.5:
            method["unit"] = "household"
        if "weight" in self.frame and random.random() < 0.3:
            method["weighted"] = False
        return method

    @property
    def _with_costs(self) -> bool:
        return any({"costs", "variable_weight"} & self.roles[name].keys() for name in self._protected)

    def _publish(self, random: np.random.Generator) -> dict[str, Any]:
        """Draw the formats of the release."""
        names = [name for name, role in self.roles.items() if role["role"] != "quasi_identifier"]
        unchanged = [name for name in names if name not in ("household",)]
        publish: dict[str, Any] = {"accept_dependencies": unchanged, "csv": bool(random.random() < 0.3)}
        publish["format"] = str(random.choice(["parquet", "parquet", "delta", "iceberg"]))
        if "region" in self.frame and publish["format"] == "parquet" and random.random() < 0.5:
            publish["partition_by"] = "region"
        return publish

    def _recode(self, random: np.random.Generator) -> None:
        """Draw recodes of columns that are published unchanged."""
        for name in ("diagnosis", "other"):
            if name not in self.frame or random.random() < 0.5:
                continue
            values, line = self.frame[name].dropna(), self.roles[name]
            if values.empty:
                continue
            if values.dtype.kind == "M":
                line["date"] = "year"
            elif name == "other" and values.dtype.kind in "iuf":
                line |= {"kind": "numeric", "round_to": 5, "top_code": float(np.ceil(values.quantile(0.8)))}
            elif isinstance(values.iloc[0], str):
                line["missing"] = [str(values.iloc[0])]

    def publish(self, spark: SparkSession, folder: Path, *, shuffled: bool = False) -> pd.DataFrame:
        """Publish the input, or its rows in another order and in several files."""
        data = folder / "data"
        data.mkdir(parents=True)
        frame, files = (self.frame.sample(frac=1, random_state=1), FILES) if shuffled else (self.frame, 1)
        for number in range(files):
            frame.iloc[number::files].to_parquet(data / f"{number}.parquet", index=False)
        for name, text in self.extra.items():
            (folder / name).write_text(text, encoding="utf-8")
        _, areas = run(spark, specification(folder, self.roles, **self.sections))
        failures = audit(areas.public.release(areas.public.current())).failures()
        assert not failures, f"the audit refuses the release: {failures}"
        return published(areas)

    def fault(self, release: pd.DataFrame) -> str:
        """Return the violated guarantees of a release; empty if there are none."""
        if self.sections["method"].get("name") in WITHOUT_CLASSES:
            return ""
        diverse = "diagnosis" if self.sections["method"].get("min_diversity", 1) > 1 else None
        as_text = release.astype(str)  # households are not published
        region = [name for name in ("region",) if name in release]
        faults = (broken_classes(as_text, [*region, *group], self.k, None, diverse) for group in self._groups)
        return "; ".join(fault for of_group in faults for fault in of_group)


def _file(random: np.random.Generator) -> tuple[pd.DataFrame, dict[str, Any], dict[str, str]]:
    """Draw records, the roles of their columns, and further files of the specification."""
    n = int(random.choice([3, 20, 60, 200, 400]))
    columns: dict[str, pd.Series] = {}
    roles: dict[str, Any] = {}
    extra: dict[str, str] = {}
    kinds = str(random.choice(["nominal", "numeric", "mixed"]))
    for place in range(int(random.integers(1, 5))):
        name, numeric = f"q{place}", kinds == "numeric" or (kinds == "mixed" and place % 2 == 0)
        columns[name] = numbers(random, n) if numeric else categories(random, n)
        roles[name] = {"role": "quasi_identifier", "kind": "numeric" if numeric else "nominal"}
        if numeric and random.random() < 0.15:
            roles[name]["round_to"] = float(random.choice([0.5, 10]))
        if random.random() < 0.1:
            roles[name]["variable_weight"] = float(random.choice([0.5, 3.0]))
    if kinds != "numeric" and random.random() < 0.6:
        name = f"q{len(columns)}"
        columns[name], roles[name] = _with_order(random, n, name, extra)
    beside = {
        "region": lambda: categories(random, n).astype(str),
        "diagnosis": lambda: categories(random, n),
        "weight": lambda: pd.Series(random.integers(0, 9, n) if n % 3 else random.uniform(1, 50, n).round(1)),
        "household": lambda: pd.Series(random.integers(0, max(1, n // 3), n)),
        "other": lambda: numbers(random, n),
    }
    for name, drawn in beside.items():
        if random.random() < 0.4:
            columns[name] = drawn()
            roles[name] = {"role": "sensitive" if name == "diagnosis" else name}
    frame = pd.DataFrame(columns)
    if random.random() < 0.2:
        frame = pd.concat([frame, frame.iloc[: n // 2]], ignore_index=True)
    return frame, roles, extra


def _with_order(
    random: np.random.Generator, n: int, name: str, extra: dict[str, str]
) -> tuple[pd.Series, dict[str, Any]]:
    """Draw an ordinal or hierarchical variable, or one with costs or bands."""
    number = int(random.choice([2, 3, 6, 10]))
    codes = [f"k{i}" for i in range(number)]
    column, role = pd.Series(random.choice(codes, n)), {"role": "quasi_identifier", "kind": "ordinal"}
    kind = str(random.choice(["ordinal", "hierarchical", "costs", "bands"]))
    if kind == "ordinal":
        return column, role | {"order": codes}
    if kind == "bands":
        return pd.Series(random.integers(0, 100, n)), role | {"bands": [0, 18, 40, 65]}
    if kind == "hierarchical":
        lines = [f"{code},M{place // 2},T{place // 4}" for place, code in enumerate(codes)]
        extra[f"{name}.csv"] = "\n".join(["code,mid,top", *lines]) + "\n"
        level = int(random.choice([1, 2]))
        return column, role | {"kind": "hierarchical", "hierarchy": f"{name}.csv", "level": level}
    costs = np.round(random.uniform(1, 3, (number, number)), 2)
    costs = np.where(np.eye(number) == 1, 0, costs + costs.T)
    lines = [",".join([code, *map(str, row)]) for code, row in zip(codes, costs, strict=True)]
    extra[f"{name}.csv"] = "\n".join([",".join(["code", *codes]), *lines]) + "\n"
    return column, role | {"kind": "nominal", "costs": f"{name}.csv"}
