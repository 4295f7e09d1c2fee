"""Targeted record swapping on Spark: which units exchange their geography is decided in tasks.

A unit is a household, or a record where there are none. Risk is counted by record and area. The coarsest
level, and levels that nest in no other, take units of the whole file: those at risk and a keyed sample of
donors. All other levels are decided by area of the coarsest level, in one task each. A geography of one level
is decided in one place. There and in the tasks only keys, areas and hashes of categories are seen.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.compat import apply_in_arrow, of_texts
from microguard.pipelines.guarantees.guarantee import Guarantee
from microguard.pipelines.guarantees.measured_only import MeasuredOnly
from microguard.pipelines.guarantees.record_files import RecordFiles
from microguard.pipelines.intake.unit_key import unit_key
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.pipelines.job import Job
from microguard.pipelines.measures.block_reports import BlockReports
from microguard.pipelines.method import RecordMethod
from microguard.pipelines.methods.perturbation import content_and_number
from microguard.schemas.errors import InputRejected, ProtectionFailed
from microguard.sdc.algorithms.record_methods import SwappingParameters
from microguard.sdc.swapping import swap
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql import types as t

#: Profile variable of households: their number of records, unless a published column has this name.
HOUSEHOLD_SIZE = "household_size"
#: Donors of the coarsest level for each unit at risk, and the least number of them.
DONORS, LEAST_DONORS = 100, 20_000
_UNIT, _SIZE, _TAKEN = "__unit", "__size", "__taken"
#: Name of the protected records in the work folder.
_TARGET = "protected"
#: Stands for a missing value, as no text file has it in a value.
_MISSING = "\x1e"
#: Units are numbered by keyed whole numbers below this one.
_NUMBERS = 1 << 60


class TargetedRecordSwapping(RecordMethod):
    """Exchange the geography of units at risk with that of similar units."""

    limits = (
        "Counts by the exchanged areas are perturbed. Variables that describe an area, and are published as "
        "they are, may contradict the exchanged area.",
    )

    def guarantees(self) -> Sequence[Guarantee[RecordFiles]]:
        """No formal promise."""
        return (MeasuredOnly(self._areas),)

    @property
    def _swapping(self) -> SwappingParameters:
        assert isinstance(self.parameters, SwappingParameters)
        return self.parameters

    @property
    def _areas(self) -> tuple[str, ...]:
        """Return the variable of each level, in the order of their exchange."""
        return tuple(areas[-1] for areas in self._swapping.levels)

    @property
    def _above(self) -> list[int]:
        """Return the level within whose areas each level is exchanged, -1 for the whole file."""
        levels = self._swapping.levels
        return [levels.index(areas[:-1]) if areas[:-1] else -1 for areas in levels]

    @property
    def _risk(self) -> tuple[str, ...]:
        others = (n for n in self.specification.quasi_identifiers if n not in self._areas)
        return self._swapping.risk or tuple(others)

    @property
    def _profiles(self) -> tuple[tuple[str, ...], ...]:
        default: tuple[tuple[str, ...], ...] = (
            ((HOUSEHOLD_SIZE,), ()) if self.specification.household else ((),)
        )
        return self._swapping.similar or default

    def protect(
        self, job: Job, screened: ValidatedInput, frame: DataFrame, release_id: str
    ) -> tuple[DataFrame, Mapping[str, BlockReports]]:
        """Decide the exchanges, and write the records with their new areas down once."""
        levels, place = self._areas, job.areas.staging_area(release_id, "resume")
        secret = hmac.digest(job.areas.key(), b"swapping", "sha256")
        with job.progress.stage("protect"):
            keyed = self._with_units(frame, secret)
            units = self._units(keyed, job).persist()
            try:
                exchanged = self._exchanges(units, job)
            finally:
                units.unpersist()
        if not exchanged.num_rows:
            raise ProtectionFailed(
                "method.parameters: expected units that exchange their areas, found none. Raise rate, lower "
                "risk_threshold, or choose profiles in similar that more units share."
            )
        areas = {name: f"__new{position}" for position, name in enumerate(levels)}
        schema = t.StructType(
            [t.StructField(_UNIT, t.LongType()), *(t.StructField(n, t.StringType()) for n in areas.values())]
        )
        moved = job.spark.createDataFrame(exchanged.to_pylist(), schema)
        joined = keyed.join(moved, on=_UNIT, how="left")
        changed = {
            name: f.when(f.col(new).isNull(), column(name)).otherwise(
                f.nullif(f.col(new), f.lit(_MISSING)).cast(frame.schema[name].dataType)
            )
            for name, new in areas.items()
        }
        protected = joined.select(*[changed.get(n, column(n)).alias(n) for n in frame.columns])
        with job.progress.stage("reconcile"):
            place.write(protected, _TARGET, "lz4")
        return place.read(job.spark, _TARGET).select(*[column(n) for n in frame.columns]), {}

    def _with_units(self, frame: DataFrame, secret: bytes) -> DataFrame:
        """Add the keyed number of each record's unit, which does not depend on the order of records."""
        if self.specification.household is not None:
            identity = column(self.specification.household).cast("string")
        else:
            content = (*self.specification.published, *self._swapping.risk_values)
            identity = content_and_number(frame, content)
        return frame.withColumn(_UNIT, _number(identity, secret))

    def _units(self, keyed: DataFrame, job: Job) -> DataFrame:
        """Return one row a unit: areas, risk by level, hashes of its categories and profiles."""
        levels, flags = self._areas, self._at_risk()
        named = {name for profile in self._profiles for name in profile} & {*self.specification.published}
        categories = {
            name: f"__category{i}" for i, name in enumerate([*self._risk, *sorted(named - {*self._risk})])
        }
        rows = (
            keyed.withColumns(flags)
            .groupBy(_UNIT)
            .agg(
                *[f.min(_text(name)).alias(f"__area{i}") for i, name in enumerate(levels)],
                *[f.max(_text(name)).alias(f"__other{i}") for i, name in enumerate(levels)],
                *[f.max(name).alias(name) for name in flags],
                *[
                    f.xxhash64(f.sort_array(f.collect_list(_text(name)))).alias(alias)
                    for name, alias in categories.items()
                ],
                f.count(f.lit(1)).alias(_SIZE),
            )
        )
        several = [f.col(f"__area{i}") != f.col(f"__other{i}") for i in range(len(levels))]
        wrong = rows.where(f.greatest(*several) if len(several) > 1 else several[0]).count()
        if wrong:
            raise InputRejected(
                f"{wrong} household(s) have records in several areas of method.parameters.geography: "
                "expected one area for each household. Correct the records, or remove the role household."
            )
        profiles = [
            f.xxhash64(
                *[f.col(categories[name]) if name in categories else f.col(_SIZE) for name in profile]
            ).alias(f"__profile{i}")
            if profile
            else f.lit(0).cast("bigint").alias(f"__profile{i}")
            for i, profile in enumerate(self._profiles)
        ]
        features = [f.col(categories[name]).alias(f"__feature{i}") for i, name in enumerate(self._risk)]
        areas = [f"__area{i}" for i in range(len(levels))]
        return rows.select(_UNIT, *areas, *flags, *profiles, *features)

    def _at_risk(self) -> dict[str, Column]:
        """Return whether a record is at risk at each level: by its supplied risk, else by k."""
        values, levels = self._swapping.risk_values, self._swapping.levels
        if not values:
            k, risk = self.specification.release.k, [_text(name) for name in self._risk]
            return {
                f"__risk{i}": f.count(f.lit(1)).over(Window.partitionBy(*map(_text, areas), *risk)) < k
                for i, areas in enumerate(levels)
            }
        threshold = f.lit(self._swapping.risk_threshold)
        every = dict(zip(self._swapping.geography, values, strict=True)) if len(values) > 1 else {}
        return {
            f"__risk{i}": f.coalesce(
                column(every.get(areas[-1], values[0])).try_cast("double") >= threshold, f.lit(True)
            )
            for i, areas in enumerate(levels)
        }

    def _exchanges(self, units: DataFrame, job: Job) -> pa.Table:
        """Return units with their new areas."""
        above, rate = self._above, self._swapping.rate
        depth = len(above)
        if len(self._swapping.geography) == 1:
            return _exchanged(units.toArrow(), above, range(depth), rate)
        whole = above.count(-1)  # the first levels
        open_ones = f.greatest(f.lit(False), *[f.col(f"__risk{i}") for i in range(whole)])
        counts = units.agg(f.count(f.lit(1)), f.count_if(open_ones)).first()
        assert counts is not None
        wanted = DONORS * counts[1] + LEAST_DONORS
        share = min(1.0, wanted / max(counts[0], 1))
        sampled = units.where(open_ones | (f.col(_UNIT) < int(share * _NUMBERS)))
        first = _exchanged(sampled.toArrow(), above, range(whole), 0.0) if counts[1] else None
        taken = [] if first is None else first[_UNIT].to_pylist()
        marked = job.spark.createDataFrame([(unit,) for unit in taken], f"{_UNIT} bigint")
        rest = units.join(f.broadcast(marked.withColumn(_TAKEN, f.lit(True))), on=_UNIT, how="left")

        def within(table: pa.Table) -> pa.Table:
            return _exchanged(table, above, range(whole, depth), rate)

        schema = t.StructType(
            [
                t.StructField(_UNIT, t.LongType()),
                *(t.StructField(f"__new{i}", t.StringType()) for i in range(depth)),
            ]
        )
        further = apply_in_arrow(rest, ["__area0"], within, schema).toArrow()
        return further if first is None else pa.concat_tables([first, further])


def _exchanged(table: pa.Table, above: Sequence[int], levels: range, rate: float) -> pa.Table:
    """Decide the exchanges of some units; return those exchanged with their new areas."""
    depth = len(above)
    table = table.sort_by(_UNIT)
    names = table.column_names
    areas = [np.asarray(table[f"__area{i}"].to_pylist(), object) for i in range(depth)]
    codes: dict[int, np.ndarray] = {-1: np.zeros(table.num_rows, np.int64)}
    while len(codes) <= depth:  # an area is named within the area above it, whose code comes first
        for level in (i for i in range(depth) if i not in codes and above[i] in codes):
            _, inverse = np.unique(areas[level].astype(str), return_inverse=True)
            both = codes[above[level]] * (inverse.max(initial=0) + 1) + inverse
            codes[level] = np.unique(both, return_inverse=True)[1]
            break

    def stacked(prefix: str) -> np.ndarray:
        chosen = [table[name].to_numpy() for name in names if name.startswith(prefix)]
        return np.column_stack(chosen) if chosen else np.zeros((table.num_rows, 0))

    taken = table[_TAKEN].is_valid().to_numpy() if _TAKEN in names else None
    geography = np.column_stack([codes[i] for i in range(depth)])
    swaps = swap(
        geography, stacked("__risk"), stacked("__profile"), stacked("__feature"),
        table[_UNIT].to_numpy(), rate=rate, levels=levels, above=above, taken=taken,
    )  # fmt: skip
    moved = np.flatnonzero(swaps.exchanged)
    columns = {_UNIT: table[_UNIT].to_numpy()[moved]}
    columns |= {f"__new{i}": area[swaps.partner[moved]] for i, area in enumerate(areas)}
    types = [(_UNIT, pa.int64()), *((f"__new{i}", pa.string()) for i in range(depth))]
    return pa.table(columns, schema=pa.schema(types))


def _text(name: str) -> Column:
    """Return a value as text; a missing one is a category of its own."""
    return f.coalesce(column(name).cast("string"), f.lit(_MISSING))


def _number(identity: Column, secret: bytes) -> Column:
    """Return a keyed whole number in [0, `_NUMBERS`); the key is in no plan that Spark shows."""

    def numbers(texts: pa.Array) -> pa.Array:
        keys = [unit_key(text, secret) for text in texts.to_pylist()]
        return pa.array(
            [None if each is None else int.from_bytes(each[:8], "big") % _NUMBERS for each in keys],
            pa.int64(),
        )

    hashed = of_texts(numbers, t.LongType())
    number: Column = hashed(identity)
    return number
