"""Measure the share of small blocks that effort standard proves, on regions of synthetic and other files."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pandas as pd
from microguard.pipelines.demo import QUASI_IDENTIFIERS
from microguard.pipelines.synthetic.dataset import generate_persons
from microguard.sdc.microaggregation import microaggregate

from tests.benchmarks.microaggregation.generated import KINDS
from tests.benchmarks.misses import Misses
from tests.benchmarks.table import Table
from tests.reference import reference_file

#: Number of regions, half of them of the synthetic file, and the limits of their size.
REGIONS, SMALLEST, LARGEST = 400, 20, 150
#: Share of the regions that must be proved optimal.
PROVED = 0.95
REFERENCE = ("tarragona", "casc_census", "adult", "business_survey")


def regions(misses: Misses, quick: bool = False) -> Table:
    """Return the share of regions that standard proves at k = 3, for a synthetic file and thirteen kinds of
    files.
    """
    count = (REGIONS // 16 if quick else REGIONS) // 2
    town = _town()
    sources = {"town of the demo": [town], "thirteen files": [town, *_other_files()]}
    rows = []
    for name, files in sources.items():
        size, proved, gaps, seconds = [], [], [], []
        for records in _regions(files, count):
            start = time.process_time()
            clustering = microaggregate(records, 3, share_of_run=len(records) / (count * (LARGEST / 2)))
            seconds.append(time.process_time() - start)
            size.append(len(records))
            proved.append(clustering.optimal)
            gaps.append(clustering.gap or 0.0)
        share, of_records = np.mean(proved), np.average(proved, weights=size)
        rows.append((name, count, 100 * share, 100 * of_records, 100 * max(gaps), np.mean(seconds)))
        misses.unless(quick or share >= PROVED, f"regions of {name}: {100 * share:.1f} % proved")
    return Table(
        f"Regions of {SMALLEST} to {LARGEST} records, standard, k = 3",
        ("file", "regions", "proved, %", "records in them, %", "largest gap, %", "CPU s per region"),
        rows,
        "Thirteen files: the town, four reference files and eight generated kinds, in turn.",
    )


def _town() -> np.ndarray:
    persons = next(iter(generate_persons(60_000, seed=7)))
    return np.column_stack([persons[name].to_numpy().astype(float) for name in QUASI_IDENTIFIERS["numeric"]])


def _other_files() -> Iterator[np.ndarray]:
    for name in REFERENCE:
        file = pd.read_csv(reference_file(f"{name}.csv"), sep=None, engine="python")
        yield file.select_dtypes("number").fillna(0.0).to_numpy(dtype=float)
    for seed, draw in enumerate(KINDS.values()):
        yield draw(np.random.default_rng(seed), 20_000, 4 + seed)


def _regions(files: list[np.ndarray], count: int) -> Iterator[np.ndarray]:
    """Draw regions of the files in turn, without columns that are constant in a region."""
    random = np.random.default_rng(0)
    for number in range(count):
        file, n = files[number % len(files)], int(random.integers(SMALLEST, LARGEST + 1))
        records = file[random.choice(len(file), n, replace=False)]
        yield records[:, records.std(axis=0) > 0.0]
