"""Compare an update of a register with the first one: time by stage and memory in a warm session."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from microguard.pipelines.engine.progress import Progress
from pyspark.sql import SparkSession

from tests.benchmarks.registers.agency import Agency
from tests.benchmarks.registers.stream import register_updates
from tests.benchmarks.table import Table

#: Number of updates of a small register before the measurement, to warm up the session.
WARM_UNITS, WARM_NIGHTS = 2_000, 2


class Meter(Progress):
    """Progress that measures the CPU seconds of this process, Spark and the workers for each stage."""

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self.cpu: dict[str, float] = {}

    @contextmanager
    def stage(
        self, name: str, total: int | None = None, done: Callable[[], int] | None = None
    ) -> Iterator[None]:
        """Run a stage."""
        before = cpu_seconds()
        try:
            with super().stage(name, total, done):
                yield
        finally:
            self.cpu[name] = self.cpu.get(name, 0.0) + cpu_seconds() - before


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its running child processes (Linux)."""
    tick = os.sysconf("SC_CLK_TCK")
    parents, ticks = {}, {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:  # the process ended while it was sampled
            continue
        parents[int(entry.parent.name)] = int(fields[1])
        ticks[int(entry.parent.name)] = sum(int(each) for each in fields[11:15])
    ours = {os.getpid()}
    while grown := {child for child, parent in parents.items() if parent in ours} - ours:
        ours |= grown
    return sum(ticks.get(each, 0) for each in ours) / tick


def first_and_later(
    spark: SparkSession, folder: Path, kind: str, units: int, nights: int, k: int, effort: str
) -> Table:
    """Compare the first update with a later one; each has 1 % entrants, 1 % exits and 0.5 % corrections."""
    (folder / "warm").mkdir()
    warm = Agency(spark, folder / "warm", kind, k, effort=effort)
    for tonight in register_updates(kind, WARM_UNITS, WARM_NIGHTS, 1, calm=True):
        warm.publish(tonight.frame)
    (folder / "timed").mkdir()
    agency = Agency(spark, folder / "timed", kind, k, effort=effort)
    measured: list[tuple[float, Meter]] = []
    for tonight in register_updates(kind, units, nights, 2, calm=True):
        meter = Meter()
        done = agency.publish(tonight.frame, meter)
        measured.append((done.seconds, meter))
    (first, one), (last, other) = measured[0], measured[-1]
    rows: list[tuple[object, ...]] = [
        (
            name,
            one.seconds.get(name, 0.0),
            other.seconds.get(name, 0.0),
            one.cpu.get(name, 0.0),
            other.cpu.get(name, 0.0),
        )
        for name in dict.fromkeys([*one.seconds, *other.seconds])
    ]
    totals = (sum(one.cpu.values()), sum(other.cpu.values()))
    rows.append(("whole night", first, last, *totals))
    rows.append(("later / first", 1.0, last / first, 1.0, totals[1] / totals[0]))
    columns = (
        "stage",
        "first night, s",
        f"night {nights}, s",
        "first night, CPU s",
        f"night {nights}, CPU s",
    )
    return Table(
        f"A register of {units:,} units, {kind}, k = {k}, {effort}, 1 % changes a night", columns, rows
    )
