"""Protect the same files with other packages from the package index, each in a separate environment.

One file has n records of four numeric quasi-identifiers, k = 3; another one has 20,000 records of five
categories. `peer_packages` has a row for each package. The tables are also written into
`docs/benchmarks/peers.md`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from tests.benchmarks.peer_packages import (
    CATEGORIES,
    FOLDER,
    METHODS,
    NAMES,
    OURS,
    PEERS,
    SECONDS,
    K,
    run_package,
)
from tests.benchmarks.table import Table, measured_by

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/benchmarks/peers.md"
SIZES = (1_000, 20_000, 200_000, 1_000_000)
COLUMNS = (
    "package",
    "CPU seconds",
    "memory, MiB",
    "loss, %",
    "risk, %",
    "smallest combination",
    "removed, %",
)
#: Measures for which less is better, by their column.
MEASURES = {1: "CPU seconds", 2: "memory, MiB", 3: "loss, %", 4: "risk, %"}
#: Features that these tables do not compare, and in which other tools are better.
ELSEWHERE = (
    ("sdcMicro", "shuffling and synthetic data; documentation and courses of twenty years"),
    ("ARX", "a view of the lattice of generalisations; more privacy models (differential privacy)"),
    ("tau-ARGUS", "the same patterns as other offices have published with for years; a window for each step"),
    ("umbra-k, anjana, pram, suda", "one small package in pure Python, without Spark and Java"),
)  # fmt: skip


def run(quick: bool = False) -> Iterator[Table]:
    """Yield a table of methods and one per size (quick: the first two), and write the page after each."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    others = _methods(20_000)
    yield others
    tables: list[Table] = []
    seconds: dict[str, float] = {}
    for size in SIZES[: 2 if quick else None]:
        tables.append(_table(size, seconds))
        PAGE.write_text(page(tables, others, quick), encoding="utf-8")
        yield tables[-1]


def records(size: int) -> pd.DataFrame:
    """Generate persons with numbers; none of them is real."""
    rng = np.random.default_rng(size)
    age = rng.integers(18, 90, size)
    income = np.round(rng.lognormal(10 + 0.01 * np.minimum(age, 55), 0.5), -1)
    hours = np.clip(np.round(rng.normal(36, 9, size)), 0, 80)
    rent = np.round(0.25 * income / 12 * rng.lognormal(0, 0.3, size))
    return pd.DataFrame({"id": np.arange(size), "age": age, "income": income, "hours": hours, "rent": rent})


def categories(size: int) -> pd.DataFrame:
    """Generate persons with categories; none of them is real."""
    rng = np.random.default_rng(size)
    levels = (2, 8, 5, 6, 30)
    drawn = {
        name: np.minimum(rng.geometric(2 / (m + 1), size), m)
        for name, m in zip(CATEGORIES, levels, strict=True)
    }
    return pd.DataFrame(
        {
            "id": np.arange(size),
            **{name: [f"c{each:02}" for each in column] for name, column in drawn.items()},
        }
    )


def _table(size: int, seconds: dict[str, float]) -> Table:
    """Return the table of a size.

    `seconds` has the seconds a record of each package, of the last size, and is updated. A package that would
    exceed the limit at this rate is not run: no method is faster for each record of a larger file.
    """
    original = records(size)
    file = FOLDER / f"{size}.csv"
    original.to_csv(file, index=False)
    rows: list[tuple[object, ...]] = []
    for peer in PEERS:
        if seconds.get(peer.name, 0.0) * size > SECONDS:
            rows.append((peer.name, f"more than {SECONDS}, by its rate", None, None, None, None, None))
            continue
        done = run_package(peer, file, NAMES)
        if done.published is None:
            seconds[peer.name] = float("inf")
            rows.append((peer.name, done.failure, None, None, None, None, None))
            continue
        seconds[peer.name] = done.seconds / size
        loss, risk, smallest = judge(original, done.published[["id", *NAMES]], peer.joint)
        removed = 1 - len(done.published) / size
        rows.append((peer.name, round(done.seconds, 2), round(done.memory), 100 * loss, 100 * risk, smallest,
                     100 * removed))  # fmt: skip
    return Table(f"{size:,} records, {len(NAMES)} numeric variables, k = {K}", COLUMNS, rows)


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


def _methods(size: int) -> Table:
    original = categories(size)
    file = FOLDER / f"categories-{size}.csv"
    original.to_csv(file, index=False)
    rows: list[tuple[object, ...]] = []
    for method, peers in METHODS.items():
        for peer in peers:
            done = run_package(peer, file, CATEGORIES)
            if done.published is None:
                rows.append((method, peer.name, done.failure, None, None))
                continue
            result = _result(original, done.published)
            rows.append((method, peer.name, round(done.seconds, 2), round(done.memory), result))
    return Table(
        f"{size:,} records, {len(CATEGORIES)} categories",
        ("method", "package", "CPU seconds", "memory, MiB", "result"),
        rows,
    )


def _result(original: pd.DataFrame, published: pd.DataFrame) -> str:
    """Return the effects of a method: records with a unique combination, changed values, or noise."""
    if "msu" in published:
        return f"records unique on one or two variables: {(published['msu'] > 0).sum():,}"
    if "new" in published:
        off = (published["new"] - published["old"]).abs()
        return f"{len(off):,} cells, mean deviation {off.mean():.2f}, largest {off.max():.0f}"
    changed = (original[CATEGORIES].to_numpy() != published[CATEGORIES].to_numpy()).mean()
    counts = [
        original[name].value_counts().sub(published[name].value_counts(), fill_value=0).abs().max()
        for name in CATEGORIES
    ]
    return f"{100 * changed:.1f} % of the values changed; largest change of a count {max(counts):,.0f}"


def ahead(tables: list[Table]) -> list[str]:
    """Return the rows in which another package is better than ours: its best measures, by size."""
    lines = []
    for table in tables:
        ours = next(row for row in table.rows if row[0] == OURS)
        for row in table.rows:
            better = [
                f"{name} {_short(row[column])} (ours {_short(ours[column])})"
                for column, name in MEASURES.items()
                if isinstance(row[column], int | float) and isinstance(ours[column], int | float)
                and row[column] < ours[column]  # type: ignore[operator]
            ]  # fmt: skip
            if better and not str(row[0]).startswith("microguard"):
                lines.append(f"| {table.title.partition(' ')[0]} | {row[0]} | {', '.join(better)} |")
    return lines


def _short(value: object) -> str:
    return f"{value:,.3g}" if isinstance(value, float) else f"{value:,}"


def page(tables: list[Table], others: Table, quick: bool) -> str:
    """Return the page of the manual."""
    where = measured_by("peers", quick)
    measures = (judge.__doc__ or "").split("\n\n")[1].replace("\n", " ")
    how = (
        f"A call ends after {SECONDS} seconds of processor time. A package that would need more at its rate "
        "for the smaller file is not run. The command below the headings makes an environment for each "
        "package, gives all the same files, and writes this page."
    )
    lines = ["# Comparison with other software", "", " ".join(measures.split()), "", how, ""]
    for table in [*tables, others]:
        lines += [f"## {table.title}", where, "", table.markdown().split("\n\n", 1)[1].strip(), ""]
    note = (
        "By the tables of records above. A risk below ours comes with larger classes, and so with more loss. "
        "microagg1d does not protect combinations."
    )
    lines += ["## Where another package is ahead", note, "", where, ""]
    lines += ["| records | package | ahead by |", "|---|---|---|", *ahead(tables), ""]
    lines += ["Ahead in what no table shows:", "", where, "", "| software | has |", "|---|---|"]
    lines += [f"| {name} | {what} |" for name, what in ELSEWHERE]
    lines += ["", "## What each cannot do", "| package | cannot |", "|---|---|"]
    both = [*PEERS, *(peer for pair in METHODS.values() for peer in pair if peer.cannot)]
    lines += [f"| {peer.name} | {peer.cannot} |" for peer in both]
    lines += [
        "| pytauargus (cell suppression) | [records; audits by contributors with all cells](suppression.md) |"
    ]
    return "\n".join(lines) + "\n"
