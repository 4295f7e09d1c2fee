"""Protect millions of persons: seconds and memory of all processes, compared with a sort of the file.

The persons are those of the demo, with households in regions of different size.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from microguard.pipelines.demo import NEVER_PUBLISHED, PART, PUBLISHED_AS_IT_IS, QUASI_IDENTIFIERS, SEED, Kind
from microguard.pipelines.synthetic.dataset import generate_persons

from tests.benchmarks.processes import Usage, microguard, timed
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
    """A demo file and the efforts at which it is protected.

    `largest` is the share of the persons in the first region; None: regions of similar size.
    """

    kind: Kind
    records: int
    regions: int
    efforts: tuple[str, ...] = ("fast",)
    largest: float | None = None


QUICK = (Town("numeric", 50_000, 20), Town("nominal", 50_000, 20))
TOWNS = (
    Town("numeric", 1_000_000, 400, ("fast", "standard")),
    Town("numeric", 10_000_000, 400, ("fast", "standard")),
    Town("nominal", 1_000_000, 400),
    Town("nominal", 10_000_000, 400),
    Town("nominal", 1_000_000, 2_000),
    Town("nominal", 10_000_000, 2_000),
)
#: Files of one size with differently distributed region sizes, compared with a file of equal regions.
SHAPES = (
    Town("numeric", 1_000_000, 400),
    Town("numeric", 1_000_000, 400, largest=0.5),
    Town("numeric", 1_000_000, 1),
    Town("numeric", 1_000_000, 10_000),
)
#: Maximum CPU time of a file as a multiple of that with equal regions, for files without more regions.
MOST_OF_EVEN = 1.5
_TIMES = "times the first"


def run(quick: bool = False) -> Iterator[Table]:
    """Yield a table that compares distributions of region sizes, then one table for each file."""
    shapes = _shapes(quick)
    yield shapes
    uneven = [row for row, town in zip(shapes.rows, SHAPES, strict=True) if town.regions <= SHAPES[0].regions]
    most = max(float(str(row[shapes.columns.index(_TIMES)])) for row in uneven)
    assert quick or most <= MOST_OF_EVEN, f"{most:.2f} times the CPU time of the even file"
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
        with Usage() as usage:
            ran = microguard("protect", f"{folder}/release.toml", *settings, "--master", "local[2]")
        gigabytes, ratio = usage.peak / 2**30, ran.seconds / sort
        assert gigabytes <= MOST_MEMORY, f"{asked}, {effort}: {gigabytes:.1f} GiB"
        small = asked.records <= 1_000_000 and effort == "fast" and not quick
        assert not small or ratio <= MOST_SORTS[asked.kind], f"{asked}: {ratio:.1f} times a plain sort"
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


def _shapes(quick: bool) -> Table:
    rows, even = [], 0.0
    for town in (
        [replace(each, records=50_000, regions=-(-each.regions // 20)) for each in SHAPES]
        if quick
        else SHAPES
    ):
        with tempfile.TemporaryDirectory() as folder:
            microguard("demo", "--records", "1000", "--kind", town.kind, "--out", folder, "--only-data")
            _write(town, Path(folder) / "data")
            areas = (f"publish.path={folder}/lake", f"publish.evidence={folder}/evidence")
            settings = [f"--set={each}" for each in (*areas, "method.effort=fast")]
            with Usage() as usage:
                ran = microguard("protect", f"{folder}/release.toml", *settings, "--master", "local[2]")
            [blocks] = Path(folder, "evidence").glob("*/blocks.parquet")
            largest = pc.max(pq.read_table(blocks)["records"]).as_py()
        even = even or usage.cpu_seconds
        share = "similar" if town.largest is None else f"{100 * town.largest:.0f} % in one"
        measured = (ran.seconds, usage.cpu_seconds, usage.cpu_seconds / even, largest, usage.peak / 2**30)
        rows.append((town.regions, share, *measured))
    return Table(
        f"{town.records:,} persons, {len(QUASI_IDENTIFIERS[town.kind])} {town.kind} quasi-identifiers, fast, "
        "local[2]",
        (
            "regions",
            "sizes",
            "seconds of the whole process",
            "CPU seconds",
            _TIMES,
            "largest block",
            "peak memory of all processes, GiB",
        ),
        rows,
    )


def _write(asked: Town, folder: Path) -> None:
    """Write demo persons with regions of different size; a household is in one region."""
    random = np.random.default_rng(7)
    # every region gets a minimum share, so that no region is nearly empty
    shares = 0.8 * random.dirichlet(np.full(asked.regions, 3.0)) + 0.2 / asked.regions
    if asked.largest is not None:
        shares *= (1 - asked.largest) / shares[1:].sum()
        shares[0] = asked.largest
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
