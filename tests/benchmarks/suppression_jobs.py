"""Large suppressed tables from microdata by the job: `microguard adjust`, then `microguard verify`.

The microdata are those of generated firms, with an activity of three levels and a region of two. A release
must pass the gate and the audit of `verify`, which counts the intervals of all sensitive cells again.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from microguard.pipelines.demo import SEED

from tests.benchmarks.parts import Parts
from tests.benchmarks.processes import Usage, microguard
from tests.benchmarks.table import Table
from tests.benchmarks.tabular.suppression_page import Plan, measure_rows

#: Children of the nodes by level of the activity and of the region, number of firms, and attackers.
TABLES: dict[str, tuple[tuple[int, ...], tuple[int, ...], int, tuple[str, ...]]] = {
    "4.4.3 x 4.3": ((4, 4, 3), (4, 3), 2_000, ("outsider",)),
    "10.10.10 x 9.10": ((10, 10, 10), (9, 10), 200_000, ("outsider",)),
    "10.10.16 x 10.10.16": ((10, 10, 16), (10, 10, 16), 1_000_000, ("outsider",)),
    "4.4.3 x 4.3, all attackers": ((4, 4, 3), (4, 3), 2_000, ("outsider", "single", "pair", "unit")),
}
_QUICK = 1
_SPECIFICATION = """
[release]
name = "firms"
k = 3
source = "firms"

[input]
path = "firms.parquet"

[variables]
firm = {{ role = "unit" }}
turnover = {{ role = "sensitive", kind = "numeric" }}
{roles}

[table]
value = "turnover"
tables = [["a3", "r2"]]
hierarchies = [["a1", "a2", "a3"], ["r1", "r2"]]
dominance = {{ n = 1, k = 85 }}
decimals = 0
method = "suppression"
effort = "fast"
attackers = {attackers}

[table.quality]
max_suppressed = 0.7

[publish]
path = "lake"
evidence = "evidence"
"""


def run(quick: bool = False) -> Iterator[Table]:
    """Publish and verify the tables; a full run writes each row into the page of the manual."""
    parts = Parts(f"suppression_jobs{'_quick' * quick}", rooms=("sdc/suppression", "pipelines", "schemas"))
    columns = (
        "table",
        "cells",
        "sensitive",
        "suppressed",
        "adjust, s",
        "of these: search and audit",
        "of these: count on the files",
        "CPU s",
        "verify, s",
        "CPU s of it",
        "peak memory of all processes, MB",
    )
    rows = {name: partial(_row, name) for name in list(TABLES)[: _QUICK if quick else None]}
    note = "Seconds of the clock, of the whole process with its Java; two tasks at a time (`local[2]`)."
    plan = Plan("Large tables from microdata by the job, costs by value, effort fast", columns, rows, note)
    yield from measure_rows([plan], parts, "suppression_jobs", write=not quick)


def _row(name: str) -> tuple[object, ...]:
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        specification = write_job(folder, *TABLES[name])
        with Usage() as usage:
            ran = microguard("adjust", str(specification), "--master", "local[2]")
        with Usage() as again:
            start = time.monotonic()
            microguard("verify", str(specification))
            verified = time.monotonic() - start
        (quality,) = folder.glob("evidence/*/quality.json")
        content = json.loads(quality.read_text(encoding="utf-8"))
    return (
        name,
        content["table"]["cells"],
        content["table"]["sensitive"],
        content["suppression"]["suppressed"],
        ran.seconds,
        ran.stages["adjust"],
        ran.stages["verify"],
        usage.cpu_seconds,
        verified,
        again.cpu_seconds,
        max(usage.peak, again.peak) // 2**20,
    )


def write_job(
    folder: Path, activity: tuple[int, ...], region: tuple[int, ...], firms: int, attackers: tuple[str, ...]
) -> Path:
    """Write lognormal firms and a specification; some activities and regions have many more firms."""
    random = np.random.default_rng(SEED)
    frame = pd.DataFrame(
        {"firm": np.arange(firms), "turnover": np.rint(random.lognormal(5.0, 1.5, firms)) + 10}
    )
    for name, branching in (("a", activity), ("r", region)):
        weights = random.lognormal(0.0, 1.0, int(np.prod(branching)))
        leaf = random.choice(len(weights), firms, p=weights / weights.sum())
        for level in range(len(branching)):
            node = leaf // int(np.prod(branching[level + 1 :]))
            frame[f"{name}{level + 1}"] = pd.Series(node).map(f"{name}{level + 1}.{{:04d}}".format)
    frame.to_parquet(folder / "firms.parquet", index=False)
    codes = [name for name in frame if name not in ("firm", "turnover")]
    roles = "\n".join(f'{name} = {{ role = "other" }}' for name in codes)
    path = folder / "release.toml"
    path.write_text(_SPECIFICATION.format(roles=roles, attackers=json.dumps(attackers)), encoding="utf-8")
    return path
