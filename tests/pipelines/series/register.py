"""Simulate a register over many updates in memory, clustered by a simple method, with one register per
region.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from microguard.pipelines.intake.unit_key import ROW, UNIT
from microguard.pipelines.series.class_creation import (
    created_records,
    next_units,
    published_records,
    with_classes,
)
from microguard.pipelines.series.counts import UpdateCounts, counts_by_region, total_counts
from microguard.pipelines.series.settings import CLASS, ORIGIN, PATTERN, REGION, VERSION, SeriesSettings
from microguard.pipelines.series.update import moved_classes, pooled_units, update_state, with_moved_classes
from pyspark.sql import functions as f

STATE_DDL = (
    "__unit binary, __version int, __class bigint, __row bigint, __status string, __since int, __born int, "
    "__origin bigint, __stale boolean, __superseded boolean, __region string, __pattern bigint"
)
BIRTHS_DDL = "__unit binary, __version int, __class bigint, region string, income double"


def key(unit: int) -> bytes:
    return int(unit).to_bytes(16, "big")


@dataclass
class Register:
    """Hold the state of a series in memory; every update calls the functions of `pipelines/series`."""

    spark: object
    settings: SeriesSettings
    nights: list[pd.DataFrame] = field(default_factory=list)
    counts: list[UpdateCounts] = field(default_factory=list)

    def __post_init__(self):
        self.units = self.spark.createDataFrame([], STATE_DDL)
        self.births = self.spark.createDataFrame([], BIRTHS_DDL)
        self.moved = self.spark.createDataFrame([], f"{CLASS} bigint")

    def go_on(self, persons: pd.DataFrame) -> UpdateCounts:
        """Run one update; `persons` has the columns unit (int), region and income."""
        number = len(self.nights) + 1
        keyed = persons.assign(**{UNIT: [bytearray(key(unit)) for unit in persons["unit"]]})
        tonight = (
            self.spark.createDataFrame(
                keyed[[UNIT, "region", "income"]], f"{UNIT} binary, region string, income double"
            )
            .withColumns({REGION: f.col("region"), PATTERN: f.lit(0).cast("bigint")})
            .withColumn(ROW, f.xxhash64("region", "income"))
        )
        beside = self._settled(update_state(self.units, tonight, self.settings, number))
        moved = self._settled(moved_classes(beside))
        self.moved = self._settled(self.moved.unionByName(moved))
        rows = self._settled(with_moved_classes(beside, moved, number))
        pooled = pooled_units(beside, self.settings, first=number == 1)
        to_cluster = (
            tonight.join(pooled, on=UNIT).select(UNIT, VERSION, ORIGIN, "region", "income").toPandas()
        )
        records = self.spark.createDataFrame(
            clustered(to_cluster, self.settings.k),
            f"{UNIT} binary, {VERSION} int, {ORIGIN} bigint, region string, income double",
        )
        created = self._settled(with_classes(records, ["region", "income"], self.settings, number))
        after = next_units(rows, created, number)
        self.counts.append(total_counts(counts_by_region(after, number)))
        self.units = self._settled(after.drop("__event"))
        fresh = created_records(created, ["region", "income"])
        self.births = self._settled(self.births.unionByName(fresh))
        records_of_night = published_records(self.births, self.moved).toPandas()
        records_of_night["unit"] = [int.from_bytes(bytes(each), "big") for each in records_of_night[UNIT]]
        columns = ["unit", VERSION, CLASS, "region", "income"]
        self.nights.append(records_of_night[columns].sort_values(columns, ignore_index=True))
        return self.counts[-1]

    def _settled(self, frame):
        """Return the frame as a new table, so that its plan does not grow from update to update."""
        return self.spark.createDataFrame(frame.toArrow())


def clustered(frame: pd.DataFrame, k: int) -> pd.DataFrame:
    """Return means of k to 2k - 1 neighbours by income, within region and past."""
    frame = frame.sort_values(["region", ORIGIN, "income", UNIT], ignore_index=True)
    groups = frame.groupby(["region", ORIGIN], sort=False)
    size, rank = groups["income"].transform("size"), groups.cumcount()
    label = np.minimum(rank // k, size // k - 1)
    mean = frame.groupby([frame["region"], frame[ORIGIN], label])["income"].transform("mean")
    return frame.assign(income=mean.round(2), **{UNIT: [bytearray(each) for each in frame[UNIT]]})


def streams(random: np.random.Generator, number: int, nights: int, most: int = 30) -> list[pd.DataFrame]:
    """Return updates of many small registers, one per region: arrivals, departures, returns, corrections."""
    parts: list[list[pd.DataFrame]] = [[] for _ in range(nights)]
    for stream in range(number):
        size = int(random.integers(6, most + 1))
        income = random.integers(10, 1000, size) * 100.0
        present = random.random(size) < 0.7
        for t in range(nights):
            kind = random.random()
            if t and kind < 0.15:
                present = random.random(size) < random.random()  # a burst of arrivals or a mass departure
            elif t and kind < 0.8:
                present ^= random.random(size) < 0.12
            corrected = random.random(size) < (0.1 if t else 0.0)
            income = np.where(corrected, random.integers(10, 1000, size) * 100.0, income)
            back = random.random(size) < 0.05
            original = np.random.default_rng(stream).integers(10, 1000, size) * 100.0
            income = np.where(back, original, income)
            unit = 1000 * (stream + 1) + np.flatnonzero(present)
            parts[t].append(pd.DataFrame({"unit": unit, "region": f"s{stream}", "income": income[present]}))
    return [pd.concat(each, ignore_index=True) for each in parts]
