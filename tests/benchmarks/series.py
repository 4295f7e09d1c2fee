"""Random streams of small registers, every history by brute force: nobody below k, nothing determined.

Arrivals, departures, bursts, returns, corrections and their taking back, empty nights; up to 30 units each,
so that all that a reader of every release could know is counted one by one.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from pipelines.engine.jvm import InputSize
from pipelines.engine.session import open_session
from pipelines.series.settings import SeriesSettings
from tests.benchmarks.table import Table
from tests.pipelines.series.register import Register, streams

STREAMS, NIGHTS = 500, 8


def run(quick: bool = False) -> Iterator[Table]:
    """Streams under both rules for corrections, at k = 3 and 5 (quick: a tenth of them, k = 3)."""
    with tempfile.TemporaryDirectory() as folder:
        spark = open_session("local[2]", Path(folder), size=InputSize.TINY)
        try:
            yield brute_force(spark, STREAMS // 10 if quick else STREAMS, (3,) if quick else (3, 5))
        finally:
            spark.stop()


def brute_force(spark: object, number: int, ks: tuple[int, ...]) -> Table:
    """Smallest number of units that share a history, and how long units waited."""
    rows: list[tuple[object, ...]] = []
    for k in ks:
        for changes in ("keep", "republish"):
            register = Register(spark, SeriesSettings(k=k, pool=2 * k, changes=changes))
            start = time.perf_counter()
            for tonight in streams(np.random.default_rng(k), number, NIGHTS):
                register.go_on(tonight)
            smallest = min(_shared(register.nights).values())
            assert smallest >= k
            last = register.counts[-1]
            published, ghosts, waiting = last.published, last.ghosts, last.waiting
            seconds = time.perf_counter() - start
            rows.append((k, changes, number, NIGHTS, smallest, published, ghosts, waiting, seconds))
    columns = ("k", "changes", "streams", "nights", "smallest history", "published at last", "ghosts")
    return Table("Registers of up to 30 units, by brute force", (*columns, "waiting", "wall seconds"), rows)


def _shared(nights: list[pd.DataFrame]) -> Counter[frozenset[tuple[int, str, float]]]:
    """Units by everything that was ever published of them."""
    told: dict[int, set[tuple[int, str, float]]] = {}
    for night, frame in enumerate(nights):
        for unit, region, value in zip(frame["unit"], frame["region"], frame["income"], strict=True):
            told.setdefault(unit, set()).add((night, region, value))
    return Counter(frozenset(history) for history in told.values())
