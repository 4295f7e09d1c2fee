"""Joint audit of an evidence area: a million records with 50 tables of them, and the next update.

Evidence is written as runs leave it. The tables cross two of ten classifications of the same units; small
cells and a tenth of the others are suppressed. Every other table omits one unit of the previous table.
"""

from __future__ import annotations

import json
import resource
import tempfile
import time
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.audit.joint.exposure import audit
from microguard.pipelines.audit.joint.releases import Release, TableLayout

from tests.benchmarks.table import Table

#: Number of codes of each classification.
CLASSES = (2, 3, 5, 8, 10, 12, 17, 20, 40, 88)
TOTAL, K = "Total", 3


def run(quick: bool = False) -> Iterator[Table]:
    """Audit 1,000,000 units and 50 tables (quick: 20,000 and 10), then the same with one additional table."""
    units, number = (20_000, 10) if quick else (1_000_000, 50)
    rows: list[tuple[object, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        population, keys = _population(units), _keys(units)
        releases = [_records(place / "records", population, keys)]
        pairs = list(combinations(range(len(CLASSES)), 2))
        for i in range(number + 1):
            one = pairs[i // 2 % len(pairs)]
            releases.append(_table(place / f"t{i}", population, keys, one, leave_out=i % 2 == 1, seed=i))
        for name, some in (
            ("first audit", releases[:-1]),
            ("again", releases[:-1]),
            ("one table more", releases),
        ):
            start, cpu = time.perf_counter(), time.process_time()
            exposure = audit(some, place / "answers", b"agency")
            seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            counts = (exposure.components, exposure.solved, exposure.known["outsider"], exposure.left_out)
            used = (round(seconds, 1), round(cpu, 1), round(memory, 1))
            rows.append((name, units, len(some) - 1, *used, *counts))
    assert rows[0][8], "units that every other table leaves out must be found"
    assert rows[1][7] == 0, "stored results are not computed again"
    assert int(str(rows[2][7])) < int(str(rows[0][7])), "an additional table must cost less than all tables"
    columns = ("audit", "units", "tables", "seconds", "CPU seconds", "memory, GiB", "systems", "solved")
    note = "Memory is the largest of the process so far. Left out: large sets of units."
    yield Table("Joint audit of an evidence area", (*columns, "values known", "left out"), rows, note)


def _population(units: int) -> pd.DataFrame:
    random = np.random.default_rng(0)
    columns = {f"c{i}": np.minimum(random.geometric(min(0.5, 8.0 / (size + 1)), units) - 1, size - 1)
               for i, size in enumerate(CLASSES)}  # fmt: skip
    return pd.DataFrame({**columns, "amount": np.round(random.lognormal(6, 1, units)) + 1})


def _keys(units: int) -> pa.Array:
    halves = np.random.default_rng(1).integers(0, 2**63, (units, 2), dtype=np.int64)
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), units, [None, pa.py_buffer(halves.tobytes())])


def _records(folder: Path, population: pd.DataFrame, keys: pa.Array) -> Release:
    """Write the classes of K units each by amount."""
    members = folder / "members"
    members.mkdir(parents=True)
    units = len(population)
    order = np.argsort(population["amount"].to_numpy(), kind="stable")
    class_of = np.empty(units, np.int64)
    class_of[order] = np.minimum(np.arange(units) // K, units // K - 1)
    size = np.bincount(class_of)
    means = np.round(np.bincount(class_of, population["amount"]) / size, 1)
    about = {"release_id": "records", "k": K, "region": None, "groups": [["amount"]], "means": ["amount"],
             "sensitive": []}  # fmt: skip
    (members / "members.json").write_text(json.dumps(about))
    pq.write_table(pa.table({"unit": keys, "class0": class_of}), members / "units.parquet")
    table = {"__class": np.arange(len(size)), "__records": size, "amount": means}
    pq.write_table(pa.table(table), members / "classes0.parquet")
    return Release("records", "firms", "2026", folder)


def _table(
    folder: Path,
    population: pd.DataFrame,
    keys: pa.Array,
    dimensions: tuple[int, ...],
    *,
    leave_out: bool,
    seed: int,
) -> Release:
    """Write a table of two classifications; cells of few units and one in ten are suppressed."""
    random = np.random.default_rng(seed)
    names = [f"c{i}" for i in dimensions]
    chosen = np.ones(len(population), bool)
    if leave_out:
        chosen[int(random.integers(len(population)))] = False
    part = population[chosen]
    frames = []
    for pattern in range(2 ** len(names)):
        named = [name for i, name in enumerate(names) if pattern >> i & 1]
        grouped = part.groupby(named) if named else part.groupby(np.zeros(len(part)))
        cells = grouped["amount"].agg(["sum", "size"]).reset_index()
        frames.append(cells.reindex(columns=[*names, "sum", "size"]))
    cells = pd.concat(frames, ignore_index=True)
    codes = {name: cells[name].map(lambda v: TOTAL if pd.isna(v) else str(int(v))) for name in names}
    inner = np.logical_and.reduce([codes[name] != TOTAL for name in names])
    sensitive = inner & (cells["size"] < K)
    hidden = sensitive | (inner & (np.random.default_rng(7).random(len(cells)) < 0.1))
    evidence = folder / "evidence"
    (evidence / "contributors" / "units.parquet").mkdir(parents=True)
    columns = {f"code_{name}": pa.array(codes[name], pa.string()) for name in names}
    columns |= {"original": pa.array(cells["sum"]), "contributors": pa.array(cells["size"]),
                "sensitive": pa.array(sensitive),
                "published": pa.array(cells["sum"].mask(hidden), from_pandas=True)}  # fmt: skip
    pq.write_table(pa.table(columns), evidence / "cells.parquet")
    units = {"unit": keys.filter(pa.array(chosen))}
    for name in names:
        texts = pa.array([str(code) for code in range(CLASSES[int(name[1:])])])
        units[f"code_{name}"] = pa.DictionaryArray.from_arrays(pa.array(part[name].astype("int32")), texts)
    pq.write_table(pa.table(units), evidence / "contributors" / "units.parquet" / "0.parquet")
    layout = TableLayout("amount", "suppression", least=K)
    return Release(folder.name, "firms", "2026", evidence, None, None, layout)
