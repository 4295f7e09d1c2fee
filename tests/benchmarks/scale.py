"""Protect millions of persons: seconds and memory of all processes, compared with a sort of the file.

The persons are those of the demo, with households in regions of different size.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.demo import NEVER_PUBLISHED, PART, PUBLISHED_AS_IT_IS, QUASI_IDENTIFIERS, SEED, Kind
from microguard.pipelines.synthetic.dataset import generate_persons

from tests.benchmarks.processes import PeakMemory, microguard, timed
from tests.benchmarks.table import Table

#: Maximum ratio of the time of a fast run to reading, sorting and writing the same file.
MOST_SORTS: dict[Kind, float] = {"numeric": 5.0, "nominal": 7.5}
#: Maximum memory of all processes of a run in GiB.
MOST_MEMORY = 8.0

_SORT = """
import sys
from microguard.pipelines.engine.session import open_session
spark = open_session("local[2]")
frame = spark.read.parquet(sys.argv[1])
frame.sort(*frame.columns[:3]).write.mode("overwrite").parquet(sys.argv[2])
spark.stop()
"""


@dataclass(frozen=True)
class Town:
    """A demo file and the efforts at which it is protected."""

    kind: Kind
    records: int
    regions: int
    efforts: tuple[str, ...] = ("fast",)


QUICK = (Town("numeric", 50_000, 20), Town("nominal", 50_000, 20))
TOWNS = (
    Town("numeric", 1_000_000, 400, ("fast", "standard")),
    Town("numeric", 10_000_000, 400, ("fast", "standard")),
    Town("nominal", 1_000_000, 400),
    Town("nominal", 10_000_000, 400),
    Town("nominal", 1_000_000, 2_000),
    Town("nominal", 10_000_000, 2_000),
)


def run(quick: bool = False) -> Iterator[Table]:
    """Yield a table for each file as soon as it is measured."""
    for each in QUICK if quick else TOWNS:
        with tempfile.TemporaryDirectory() as folder:
            yield _protected(each, Path(folder), quick)


def _protected(asked: Town, folder: Path, quick: bool) -> Table:
    microguard("demo", "--records", "1000", "--kind", asked.kind, "--out", str(folder), "--only-data")
    _write(asked, folder / "data")
    sort = timed([sys.executable, "-c", _SORT, f"{folder}/data", f"{folder}/sorted"])
    columns: dict[str, dict[str, object]] = {}
    for effort in asked.efforts:
        areas = (f"publish.path={folder}/lake-{effort}", f"publish.evidence={folder}/evidence-{effort}")
        settings = [f"--set={each}" for each in (*areas, f"method.effort={effort}")]
        with PeakMemory() as memory:
            ran = microguard("protect", f"{folder}/release.toml", *settings, "--master", "local[2]")
        gigabytes, ratio = memory.peak / 2**30, ran.seconds / sort
        assert gigabytes <= MOST_MEMORY, f"{asked}, {effort}: {gigabytes:.1f} GiB"
        small = asked.records <= 1_000_000 and effort == "fast" and not quick
        assert not small or ratio <= MOST_SORTS[asked.kind], f"{asked}: {ratio:.1f} times a bare sort"
        columns[effort] = {
            "seconds of the whole process": ran.seconds,
            "records/s": asked.records / ran.seconds,
            "times the bare sort": ratio,
            "peak memory of all processes, GiB": gigabytes,
        } | {f"seconds: {stage}": took for stage, took in ran.stages.items()}
    figures = list(dict.fromkeys(name for column in columns.values() for name in column))
    return Table(
        f"{asked.records:,} persons in {asked.regions:,} regions, {len(QUASI_IDENTIFIERS[asked.kind])} "
        f"{asked.kind} quasi-identifiers, local[2]",
        ("figure", *columns),
        [(name, *(column.get(name) for column in columns.values())) for name in figures],
        f"A bare Spark read, sort and write of the file takes {sort:.1f} s.",
    )


def _write(asked: Town, folder: Path) -> None:
    """Write demo persons with regions of different size; a household is in one region."""
    random = np.random.default_rng(7)
    shares = random.dirichlet(np.full(asked.regions, 3.0))
    region = random.choice(
        asked.regions, p=shares, size=asked.records
    )  # drawn for as many households as persons
    labels = pa.array([f"R{number:04d}" for number in range(asked.regions)])
    names = [*NEVER_PUBLISHED, *PUBLISHED_AS_IT_IS[asked.kind], *QUASI_IDENTIFIERS[asked.kind]]
    for stale in folder.glob("*.parquet"):
        stale.unlink()
    for number, persons in enumerate(generate_persons(asked.records, SEED)):
        drawn = pa.array(region[persons["household"].to_numpy()].astype(np.int32))
        regional = persons.set_column(persons.column_names.index("region"), "region", labels.take(drawn))
        pq.write_table(regional.select(names), folder / PART.format(number=number), compression="zstd")
