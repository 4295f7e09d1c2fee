"""Random jobs on event streams: each update is protected separately, and no unit is published twice.

The records of a `RecordsJob` are distributed over updates, some of which have no records or fewer than k.
Later updates also contain units of earlier ones, and columns with other types. An unmodified column
identifies the published units.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.dataset as ds
from microguard.pipelines.audit.release import audit
from microguard.pipelines.engine.files import checksum
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.job import Job
from microguard.pipelines.joint_audit import audit_source
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.publish import finish_what_died
from microguard.pipelines.records.product import Records
from microguard.pipelines.release import run
from microguard.schemas.methods import SAFE
from microguard.schemas.specification.model import Specification
from pyspark.sql import SparkSession

from tests.benchmarks.jobs.records import RecordsJob
from tests.pipelines.microdata import specification

#: Minimum number of records of a series, and increment of a seed that draws fewer.
FEWEST, REDRAWN = 60, 1_000_000
#: Keys of methods that random jobs draw and that appended updates support.
CARRIED = ("algorithm", "min_diversity", "unit", "weighted")
UNIT_TYPES = ("int64", "int16", "float64", "str", "Int64")


class EventsJob:
    """One random series of updates.

    Attributes
    ----------
    nights : list of DataFrame
        Input of each update.
    """

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        jobs = (RecordsJob(seed + REDRAWN * number) for number in itertools.count())
        self._job = job = next(each for each in jobs if len(each.frame) >= FEWEST and _has_clusters(each))
        job.roles |= {"person": {"role": "unit"}, "label": {"role": "other"}}
        method = {name: value for name, value in job.sections["method"].items() if name in CARRIED}
        method |= {"effort": "fast"}
        if random.random() < 0.3 and method["algorithm"] not in SAFE:
            method["effort"] = "standard"
        else:
            method["algorithm"] = "auto"
        job.sections["method"] = method
        job.sections["blocking"]["small_regions"] = str(random.choice(["suppress", "suppress", "fail"]))
        job.sections["publish"] = {
            "series": "append",
            "accept_dependencies": ["label"],
            "format": str(random.choice(["parquet", "parquet", "parquet", "delta", "iceberg"])),
        }
        self.nights = _nights(job.frame.assign(person=np.arange(len(job.frame))), job.k, random)
        self._published: dict[str, dict[str, str]] = {}
        self._seen: set[int] = set()

    def publish(self, spark: SparkSession, folder: Path, number: int) -> str:
        """Publish one update, and return the id of its release."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in self._job.extra.items():
            (folder / name).write_text(text, encoding="utf-8")
        self.nights[number].to_parquet(folder / "data", index=False)
        spec, areas = self._specification(folder), self._areas(folder)
        with areas.lock():
            finish_what_died(areas)
            job = Job(spark, spec, areas, Progress(quiet=True))
            return str(run(Records(spec), job).content["release_id"])

    def fault(self, folder: Path, number: int, release_id: str) -> str:
        """Return the violated guarantees of an update; empty if there are none."""
        areas, tonight = self._areas(folder), self.nights[number]
        release = areas.public.release(release_id)
        failures = audit(release).failures()
        if failures:
            return f"the audit refuses the release: {failures}"
        rows = ds.dataset(release / "microdata").to_table().to_pandas()
        labels = rows["label"]
        units = set(tonight.set_index("label")["person"].astype(float).astype(int).reindex(labels))
        if len(units) < len(rows):
            return "a unit has two records in one night"
        if units & self._seen:
            return f"{len(units & self._seen)} units were published on an earlier night"
        self._seen |= units
        for earlier, files in self._published.items():
            if _files(areas.public.release(earlier)) != files:
                return "the files of an earlier night have changed"
        self._published[release_id] = _files(release)
        manifest = json.loads((release / "manifest.json").read_text(encoding="utf-8"))
        nights = manifest["series"]
        if nights["releases"] != list(self._published) or nights["night"] != len(self._published):
            return "the manifest does not name the nights that make the whole"
        counts = json.loads((areas.record(release_id) / "quality.json").read_text(encoding="utf-8"))["counts"]
        if len(rows) != len(tonight) - sum(counts["rejected"].values()) - counts["suppressed"]:
            return "records are not accounted for"
        return self._job.fault(rows)

    def audited(self, folder: Path) -> dict[str, Any]:
        """Check all updates together."""
        return audit_source(self._specification(folder)).content

    def _specification(self, folder: Path) -> Specification:
        return specification(folder, self._job.roles, **self._job.sections)

    def _areas(self, folder: Path) -> Areas:
        return Areas.from_places(folder / "lake", folder / "evidence")


def _has_clusters(job: RecordsJob) -> bool:
    return "algorithm" in job.sections["method"]


def _files(folder: Path) -> dict[str, str]:
    return {str(path): checksum(path) for path in sorted(folder.rglob("*")) if path.is_file()}


def _nights(frame: pd.DataFrame, k: int, random: np.random.Generator) -> list[pd.DataFrame]:
    """Distribute the records over three to five updates, with some repeated records."""
    frame, number = frame.sample(frac=1, random_state=1), int(random.integers(3, 6))
    ends = np.sort(random.integers(0, len(frame) + 1, number - 1))
    if random.random() < 0.3:  # this update has fewer than k records, or none
        ends[0] = int(random.integers(0, k))
    parts = np.split(np.arange(len(frame)), np.sort(ends))
    nights = []
    for place, rows in enumerate(parts):
        earlier = np.concatenate([np.empty(0, dtype=int), *parts[:place]])
        again = random.choice(earlier, min(len(earlier), int(random.choice([0, 1, 5, 50]))), replace=False)
        tonight = frame.iloc[np.concatenate([rows, again])].reset_index(drop=True)
        tonight["label"] = [f"night{place} event{row}" for row in range(len(tonight))]
        if random.random() < 0.1 and len(tonight):
            tonight = pd.concat([tonight, tonight.iloc[:1].assign(label="a second time")], ignore_index=True)
        if random.random() < 0.3:
            tonight["person"] = tonight["person"].astype(str(random.choice(UNIT_TYPES)))
        if random.random() < 0.3:
            tonight = _of_another_type(tonight, str(random.choice(frame.columns)))
        nights.append(tonight)
    return nights


def _of_another_type(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the update with another type of one column."""
    column = frame[name]
    if name == "person":
        return frame
    if column.dtype.kind in "iu":
        return frame.assign(**{name: column.astype(float)})
    if column.dtype.kind == "f":
        return frame.assign(**{name: column.astype(np.float32)})
    return frame.assign(**{name: column.map(lambda each: each if pd.isna(each) else str(each))})
