"""Registers: brute-force checks, attacks on releases of the real job, cost for readers, and speed.

1. Random small registers with up to 30 units, and entrants, exits, bursts, returns, corrections, reverted
corrections and empty updates. Every history is counted.

2. Releases of the real job under attack: registers of a few hundred units with all of these events, and large
registers.

3. The same large registers with every update protected from scratch, on which the attack must succeed.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from microguard.pipelines.engine.jvm import InputSize
from microguard.pipelines.engine.session import open_session
from microguard.pipelines.series.settings import SeriesSettings
from pyspark.sql import SparkSession

from tests.benchmarks.parts import Parts
from tests.benchmarks.registers.agency import warm_session, wide_session
from tests.benchmarks.registers.cost import cost, waiting
from tests.benchmarks.registers.kills import kills
from tests.benchmarks.registers.speed import first_and_later
from tests.benchmarks.registers.unruly import unruly_registers
from tests.benchmarks.registers.updates import PublishedRegister, disclosures_in, watched
from tests.benchmarks.table import Table
from tests.pipelines.series.register import Register, streams

STREAMS, NIGHTS = 500, 8


@dataclass(frozen=True)
class Size:
    """Sizes of the registers that the real job publishes.

    Attributes
    ----------
    units : int
        Number of units of a register with many updates.
    nights, anew : int
        Number of updates of registers with the rule, and of registers that are protected from scratch.
    cases : tuple of (kind, k)
    timed : tuple of int
        Numbers of units of the registers whose first update is compared with a later one.
    kills : (int, int)
        Number of kills, and number of the last killed update.
    unruly : int
        Number of registers with frequent unusual events.
    """

    units: int
    nights: int
    anew: int
    cases: tuple[tuple[str, int], ...]
    timed: tuple[int, ...]
    kills: tuple[int, int]
    unruly: int


WHOLE = Size(
    units=10_000,
    nights=30,
    anew=30,
    cases=tuple(product(("numeric", "mixed", "nominal"), (3, 5))),
    timed=(100_000, 1_000_000),
    kills=(100, 10),
    unruly=20,
)
QUICK = Size(units=2_000, nights=5, anew=3, cases=(("mixed", 3),), timed=(20_000,), kills=(1, 2), unruly=1)


def run(quick: bool = False) -> Iterator[Table]:
    """Return all tables (quick: a tenth of the streams at k = 3, one register with five updates).

    After a kill, the next call with the same code continues with the next update. Finished parts are in
    ``build/benchmarks`` until all parts are finished.
    """
    size, parts = QUICK if quick else WHOLE, Parts("series-quick" if quick else "series", "registers")
    for units in size.timed:  # these are first, because the JVM keeps the options of its first session
        yield parts.table(f"night of {units}", partial(_timed, units))
    yield parts.table("brute force", partial(_brute_force, quick))
    yield parts.table("unruly registers", partial(_unruly, size.unruly))
    yield from through_the_job(parts, size)
    yield parts.table("kills", lambda: kills(parts.folder("kills"), *size.kills))
    parts.forget()


def _timed(units: int) -> Table:
    with tempfile.TemporaryDirectory() as folder, wide_session(Path(folder)) as spark:
        return first_and_later(spark, Path(folder), "numeric", units, 3, 3, "fast")


def _unruly(number: int) -> Table:
    with tempfile.TemporaryDirectory() as folder, warm_session(Path(folder)) as spark:
        return unruly_registers(spark, Path(folder), range(number))


def _brute_force(quick: bool) -> Table:
    with tempfile.TemporaryDirectory() as folder:
        spark = open_session("local[2]", Path(folder), size=InputSize.TINY)
        try:
            return brute_force(spark, STREAMS // 10 if quick else STREAMS, (3,) if quick else (3, 5))
        finally:
            spark.stop()


def through_the_job(parts: Parts, size: Size) -> Iterator[Table]:
    """Attack every register, and measure its cost for readers."""
    registers: list[PublishedRegister] = []
    solved_anew: list[PublishedRegister] = []
    with tempfile.TemporaryDirectory() as scratch, warm_session(Path(scratch)) as spark:
        for kind, k in size.cases:
            registers.append(_watched(spark, parts, kind, k, size, register=True))
            if k == min(k for _, k in size.cases):
                solved_anew.append(_watched(spark, parts, kind, k, size, register=False))
    yield disclosures_in([*registers, *solved_anew])
    yield waiting(registers)
    for anew in solved_anew:
        (series,) = (each for each in registers if (each.kind, each.k) == (anew.kind, anew.k))
        yield cost(series, anew)


def _watched(
    spark: SparkSession, parts: Parts, kind: str, k: int, size: Size, *, register: bool
) -> PublishedRegister:
    folder = parts.folder(f"{kind}-{k}-{'rule' if register else 'anew'}")
    nights = size.nights if register else size.anew
    return watched(spark, folder, kind, k, size.units, nights, register=register)


def brute_force(spark: object, number: int, ks: tuple[int, ...]) -> Table:
    """Return the minimum number of units with the same history, and the number of updates that units were
    pending.
    """
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
    """Group units by their history over all releases."""
    classes: dict[int, set[tuple[int, str, float]]] = {}
    for night, frame in enumerate(nights):
        for unit, region, value in zip(frame["unit"], frame["region"], frame["income"], strict=True):
            classes.setdefault(unit, set()).add((night, region, value))
    return Counter(frozenset(history) for history in classes.values())
