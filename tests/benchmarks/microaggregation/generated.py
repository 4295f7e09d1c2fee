"""Numeric microaggregation of thirty generated files with different distributions and repetitions.

The files have heavy tails with and without panels, amounts that are mostly zero, integers with few levels,
duplicates, and variables with several scales. Effort standard is compared with MDAV of the whole file, with
thorough, and with its own time at k = 3.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from microguard.sdc.microaggregation import Clustering, microaggregate

from tests.benchmarks.misses import Misses
from tests.benchmarks.parts import say
from tests.benchmarks.table import Table, line

#: Number of periods of a panel.
PERIODS = 12
#: Maximum additional loss of standard compared with thorough, as median and for the worst file.
MEDIAN_EXCESS, WORST_EXCESS = 0.03, 0.08
#: Maximum ratio of the CPU time of standard to that at k = 3, and CPU seconds below which it is not compared.
TIMES, UNMEASURED = 2.0, 0.5
#: Losses below this share of the total count as zero, and are not compared.
NO_LOSS = 1e-12


@dataclass(frozen=True)
class GeneratedFile:
    """A generated file by kind and size; its position in `FILES` is its seed."""

    kind: str
    n: int
    p: int
    k: int

    def records(self, seed: int) -> np.ndarray:
        """Return the records, (n, p)."""
        return KINDS[self.kind](np.random.default_rng(seed), self.n, self.p)


def _heavy_tails(random: np.random.Generator, n: int, p: int) -> np.ndarray:
    """Draw lognormal amounts of units with lognormal sizes."""
    return np.exp(2.0 * random.normal(size=(n, 1)) + random.normal(size=(n, p)))


def _panel(random: np.random.Generator, n: int, p: int) -> np.ndarray:
    """Draw units in twelve periods, with little variation within a unit compared with that between units."""
    units = -(-n // PERIODS)
    size = 2.0 * random.normal(size=(units, 1, 1)) + random.normal(size=(units, 1, p))
    return np.asarray(np.exp(size + 0.15 * random.normal(size=(units, PERIODS, p))).reshape(-1, p)[:n])


def _mostly_zero(random: np.random.Generator, n: int, p: int) -> np.ndarray:
    """Draw lognormal amounts that are zero in half to nine tenths of the records."""
    amounts = np.exp(1.5 * random.normal(size=(n, 1)) + random.normal(size=(n, p)))
    return np.where(random.random((n, p)) < random.uniform(0.1, 0.5, p), np.round(amounts, 2), 0.0)


def _integers(levels: int) -> Callable[[np.random.Generator, int, int], np.ndarray]:
    """Draw correlated integers with a number of levels."""

    def records(random: np.random.Generator, n: int, p: int) -> np.ndarray:
        latent = random.normal(size=(n, 1)) + random.normal(size=(n, p))
        return np.clip(np.floor((latent / 4.0 + 0.5) * levels), 0, levels - 1)

    return records


def _duplicates(random: np.random.Generator, n: int, p: int) -> np.ndarray:
    """Draw records that occur one to twelve times each."""
    contents = np.exp(random.normal(size=(n, p)))
    return np.repeat(contents, random.integers(1, 13, n), axis=0)[:n]


def _mixed(random: np.random.Generator, n: int, p: int) -> np.ndarray:
    """Draw normal, lognormal, mostly zero, integer and binary variables in one file."""
    size = random.normal(size=(n, 1))
    records = size + random.normal(size=(n, p))
    records[:, 1::5] = np.exp(2.0 * records[:, 1::5])
    records[:, 2::5] = np.where(records[:, 2::5] > 1.0, np.exp(records[:, 2::5]), 0.0)
    records[:, 3::5] = np.floor(2.0 * records[:, 3::5])
    records[:, 4::5] = records[:, 4::5] > 0.5
    return records


KINDS: dict[str, Callable[[np.random.Generator, int, int], np.ndarray]] = {
    "heavy tails": _heavy_tails,
    "panel of heavy tails": _panel,
    "mostly zero": _mostly_zero,
    "3 levels": _integers(3),
    "5 levels": _integers(5),
    "20 levels": _integers(20),
    "duplicates": _duplicates,
    "mixed scales": _mixed,
}
#: Files in ascending size; a quick run uses the first ones.
FILES = (
    GeneratedFile("heavy tails", 500, 4, 3),
    GeneratedFile("mostly zero", 500, 6, 5),
    GeneratedFile("5 levels", 600, 4, 3),
    GeneratedFile("duplicates", 800, 3, 4),
    GeneratedFile("mixed scales", 1_000, 10, 3),
    GeneratedFile("panel of heavy tails", 1_000, 5, 10),
    GeneratedFile("20 levels", 1_000, 8, 50),
    GeneratedFile("heavy tails", 1_000, 2, 20),
    GeneratedFile("3 levels", 1_500, 12, 5),
    GeneratedFile("mostly zero", 1_500, 20, 10),
    GeneratedFile("mixed scales", 1_500, 50, 5),
    GeneratedFile("duplicates", 2_000, 13, 3),
    GeneratedFile("heavy tails", 2_000, 13, 5),
    GeneratedFile("panel of heavy tails", 2_000, 13, 3),
    GeneratedFile("5 levels", 2_000, 6, 10),
    GeneratedFile("20 levels", 2_000, 3, 4),
    GeneratedFile("mostly zero", 3_000, 4, 3),
    GeneratedFile("mixed scales", 3_000, 5, 20),
    GeneratedFile("heavy tails", 3_000, 30, 3),
    GeneratedFile("3 levels", 4_000, 5, 3),
    GeneratedFile("panel of heavy tails", 4_092, 7, 5),
    GeneratedFile("duplicates", 5_000, 5, 10),
    GeneratedFile("20 levels", 5_000, 13, 5),
    GeneratedFile("heavy tails", 5_000, 8, 50),
    GeneratedFile("mostly zero", 7_000, 10, 5),
    GeneratedFile("mixed scales", 8_000, 8, 4),
    GeneratedFile("5 levels", 10_000, 13, 3),
    GeneratedFile("heavy tails", 12_000, 5, 3),
    GeneratedFile("panel of heavy tails", 20_000, 10, 5),
    GeneratedFile("mixed scales", 20_000, 13, 3),
)
QUICK = 4


def generated(misses: Misses, quick: bool = False) -> Table:
    """Check effort standard on every file: not worse than MDAV, near thorough, not slower for a larger k."""
    rows: list[tuple[object, ...]] = []
    excesses = []
    for seed, file in enumerate(FILES[: QUICK if quick else len(FILES)]):
        records, name = file.records(seed), f"{file.kind}, {file.n:,} x {file.p}, k = {file.k}"
        mdav, _ = _timed(records, file.k, algorithm="mdav")
        standard, seconds = _timed(records, file.k)
        thorough, longer = _timed(records, file.k, effort="thorough")
        _, at_three = _timed(records, 3)
        excesses.append(_excess(standard, thorough))
        losses = (100 * clustering.information_loss for clustering in (mdav, standard, thorough))
        rows.append((name, *losses, 100 * excesses[-1], at_three, seconds, longer))
        say(line(rows[-1]))
        no_worse = standard.sse <= mdav.sse * (1 + NO_LOSS) + NO_LOSS * mdav.sst
        misses.unless(no_worse, f"{name}: worse than MDAV")
        no_slower = seconds <= max(TIMES * at_three, UNMEASURED)
        misses.unless(no_slower, f"{name}: {seconds:.1f} s, {at_three:.1f} s at k = 3")
        near = excesses[-1] <= WORST_EXCESS
        misses.unless(near, f"{name}: {100 * excesses[-1]:.1f} % more than thorough")
    median, worst = float(np.median(excesses)), max(excesses)
    misses.unless(median <= MEDIAN_EXCESS, f"{100 * median:.1f} % more than thorough in the median")
    return Table(
        "Generated files, 100 SSE/SST",
        ("file", "MDAV", "standard", "thorough", "excess, %", "CPU s at k = 3", "CPU s", "thorough CPU s"),
        rows,
        f"Excess over the best found, %: {100 * median:.2f} in the median, {100 * worst:.2f} at worst.",
    )


def _excess(standard: Clustering, thorough: Clustering) -> float:
    """Return the additional loss of standard relative to the best loss found."""
    best = min(standard.sse, thorough.sse)
    return standard.sse / best - 1.0 if best > NO_LOSS * standard.sst else 0.0


def _timed(records: np.ndarray, k: int, **options: str) -> tuple[Clustering, float]:
    start = time.process_time()
    clustering = microaggregate(records, k, **options)
    return clustering, time.process_time() - start
