"""Protect the same files with other packages from the package index, each in an environment of its own.

One file has n records of four numeric quasi-identifiers, k = 3. A package is a row of `PEERS`: how it is
installed, how it is called, and what it cannot do. A call gets `frame` (with a column `id`), `names` and `k`,
and sets `published`: a frame with `id` and, for each name, the published value or its class. The tables are
also written into `docs/benchmarks/peers.md`.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd

import microguard
from tests.benchmarks.table import Table

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/benchmarks/peers.md"
FOLDER = ROOT / "build/peers"
K = 3
NAMES = ["age", "income", "hours", "rent"]
SIZES = (1_000, 20_000, 200_000)
SECONDS = 120

_RUN = """
import json, resource, sys, time
import numpy as np, pandas as pd
frame, names, k = pd.read_csv(sys.argv[1]), {names!r}, {k}
{imports}
start = time.process_time()
{call}
seconds = time.process_time() - start
published[["id", *names]].to_csv(sys.argv[2], index=False)
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({{"seconds": seconds, "memory": memory}}))
"""


@dataclass(frozen=True)
class Peer:
    """A package (with others that it needs and does not declare) and a call; without one it is microguard."""

    name: str
    package: str
    imports: str
    call: str
    cannot: str
    joint: bool = True
    """Whether it protects the combination of the variables, and not each variable by itself."""


_OURS = """clusters = microaggregate(frame[names].to_numpy(float), k, effort={effort!r})
published = frame[["id"]].assign(**{{name: clusters.labels for name in names}})"""
PEERS = (
    Peer("microguard, fast", "", "from microguard import microaggregate", _OURS.format(effort="fast"),
         "suppress single values of records"),
    Peer("microguard, standard", "", "from microguard import microaggregate", _OURS.format(effort="standard"),
         "suppress single values of records"),
    Peer("umbra-k", "umbra-k", "from umbra_k import MondrianAnonymizer",
         "published = MondrianAnonymizer(k=k, quasi_id=names).fit_transform(frame)",
         "weights, households, sensitive variables, tables, files larger than memory"),
    Peer("polarfrost", "polarfrost pyspark",
         "import polars as pl\nfrom polarfrost.mondrian import mondrian_k_anonymity",
         "published = mondrian_k_anonymity(pl.from_pandas(frame), names, 'id', k).to_pandas()\n"
         "published = published.assign(id=published['id'].astype(str).str.split(',')).explode('id')",
         "weights, households, tables, a measure of loss"),
    Peer("anjana", "anjana", "from anjana.anonymity import k_anonymity",
         """levels = {}
for name in names:
    levels[name] = {0: frame[name].to_numpy()}
    for level, bins in enumerate((64, 16, 4, 1), 1):
        edges = np.unique(np.quantile(frame[name], np.linspace(0, 1, bins + 1)))
        levels[name][level] = np.digitize(frame[name], edges[1:-1]).astype(str)
published = k_anonymity(frame, [], names, k, 5, levels)""",
         "numbers without hierarchies of intervals, weights, households, tables"),
    Peer("microagg1d", "microagg1d", "from microagg1d import univariate_microaggregation",
         "published = frame[['id']].assign(**{name: univariate_microaggregation("
         "frame[name].to_numpy(float), k) for name in names})",
         "more than one variable: the combination is not k-anonymous", joint=False),
)  # fmt: skip
#: Packages of other methods, which these files do not fit.
OTHERS = (
    (
        "pytauargus",
        "cell suppression by the engine of tau-ARGUS",
        "records; audits by contributors with all cells",
    ),
    ("cell-key-perturbation", "noise by cell keys for one frequency table", "a check of all tables together"),
    ("suda", "special uniques of records", "protection"),
)


def run(quick: bool = False) -> Iterator[Table]:
    """Yield one table per size (quick: the first two sizes), and write the page."""
    tables = [_table(size) for size in SIZES[: 2 if quick else None]]
    PAGE.write_text(page(tables, quick), encoding="utf-8")
    yield from tables


def records(size: int) -> pd.DataFrame:
    """Generate persons; nobody in the file exists."""
    rng = np.random.default_rng(size)
    age = rng.integers(18, 90, size)
    income = np.round(rng.lognormal(10 + 0.01 * np.minimum(age, 55), 0.5), -1)
    hours = np.clip(np.round(rng.normal(36, 9, size)), 0, 80)
    rent = np.round(0.25 * income / 12 * rng.lognormal(0, 0.3, size))
    return pd.DataFrame({"id": np.arange(size), "age": age, "income": income, "hours": hours, "rent": rent})


def _table(size: int) -> Table:
    FOLDER.mkdir(parents=True, exist_ok=True)
    original = records(size)
    original.to_csv(FOLDER / f"{size}.csv", index=False)
    rows: list[tuple[object, ...]] = []
    for peer in PEERS:
        seconds, memory, published, failure = _protected(peer, size)
        if published is None:
            rows.append((peer.name, failure, None, None, None, None, None))
            continue
        loss, risk, smallest = judge(original, published, peer.joint)
        missing = 1 - len(published) / size
        rows.append(
            (peer.name, round(seconds, 2), round(memory), 100 * loss, 100 * risk, smallest, 100 * missing)
        )
    columns = (
        "package",
        "CPU seconds",
        "memory, MiB",
        "loss, %",
        "risk, %",
        "smallest combination",
        "removed, %",
    )
    return Table(f"{size:,} records, {len(NAMES)} numeric variables, k = {K}", columns, rows)


def judge(original: pd.DataFrame, published: pd.DataFrame, joint: bool) -> tuple[float, float, int]:
    """Return loss, risk and smallest class of a published file, by the same measures for every package.

    The loss is SSE/SST if each value becomes the mean of the original values in its class. A class is the
    records whose published combination is equal; or value, if a package protects each variable alone. This
    favours packages that publish intervals. The risk is the expected share of published records that somebody
    finds who knows all four variables: the number of published combinations over the number of records.
    """
    both = original.merge(published, on="id", suffixes=("", "_published"))
    released = [f"{name}_published" for name in NAMES]
    ratios = []
    for name, column in zip(NAMES, released, strict=True):
        means = both.groupby(released if joint else column)[name].transform("mean")
        ratios.append(((both[name] - means) ** 2).sum() / ((both[name] - both[name].mean()) ** 2).sum())
    combinations = both.groupby(released).size()
    return float(np.mean(ratios)), len(combinations) / len(both), int(combinations.min())


def _protected(peer: Peer, size: int) -> tuple[float, float, pd.DataFrame | None, str]:
    """Run a package; return seconds, MiB, and the published records, or the reason why there are none."""
    script, out = FOLDER / f"run {peer.name}.py", FOLDER / f"{peer.name}-{size}.csv"
    script.write_text(_RUN.format(names=NAMES, k=K, imports=peer.imports, call=peer.call), encoding="utf-8")
    python = _environment(peer.package)
    if python is None:
        return 0.0, 0.0, None, "not installed"
    environment = os.environ if not peer.package else {**os.environ, "PYTHONPATH": ""}
    command = [python, str(script), str(FOLDER / f"{size}.csv"), str(out)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment)
    except subprocess.TimeoutExpired:
        return 0.0, 0.0, None, f"more than {SECONDS}"
    if done.returncode:
        return 0.0, 0.0, None, f"failed: {(done.stderr.strip().splitlines() or ['?'])[-1].partition(':')[0]}"
    told = json.loads(done.stdout.splitlines()[-1])
    return told["seconds"], told["memory"], pd.read_csv(out), ""


def _environment(package: str) -> str | None:
    """Return the Python of the environment of a package, which is made once; None if it does not install."""
    if not package:
        return sys.executable
    folder = FOLDER / "environments" / package.split()[0]
    python = folder / "bin/python"
    if not (folder / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", *package.split(), "pandas", "pyarrow"]
        if subprocess.run(pip, capture_output=True).returncode:
            return None
        (folder / "installed").touch()
    return str(python)


def page(tables: list[Table], quick: bool) -> str:
    """Return the page of the manual."""
    command = "microguard benchmark peers" + (" --quick" if quick else "")
    where = f"*Command:* `{command}`. *Machine:* {os.cpu_count()} cores, {platform.machine()}, shared."
    where += f" *Version:* {microguard.__version__}. *Date:* {date.today()}."
    measures = (judge.__doc__ or "").split("\n\n")[1].replace("\n", " ")
    lines = ["# Beside other software", "", " ".join(measures.split()), ""]
    lines += [f"A run ends after {SECONDS} seconds. The command below the headings writes this page.", ""]
    for table in tables:
        lines += [f"## {table.title}", where, "", table.markdown().split("\n\n", 1)[1].strip(), ""]
    lines += ["## What each cannot do", "| package | cannot |", "|---|---|"]
    lines += [f"| {peer.name} | {peer.cannot} |" for peer in PEERS]
    lines += ["", "## Packages of other methods", "They install, and these files do not fit them.", "",
              "| package | does | does not |", "|---|---|---|"]  # fmt: skip
    lines += [f"| {name} | {does} | {cannot} |" for name, does, cannot in OTHERS]
    return "\n".join(lines) + "\n"
