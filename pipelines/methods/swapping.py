"""Targeted record swapping on Spark: which units exchange their geography is decided in tasks.

A unit is a household, or a record where there are none. Risk is counted by record and area. The coarsest
level, and levels that nest in no other, take units of the whole file: those at risk and a keyed sample of
donors. All other levels are decided by area of the coarsest level, in one task each. A geography of one level
is decided in one place. There and in the tasks only keys, areas and hashes of categories are seen.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

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
from microguard.pipelines.measures.exchanged_areas import at_risk_by_value
from microguard.pipelines.method import RecordMethod
from microguard.pipelines.methods.perturbation import content_and_number
from microguard.schemas.errors import GateRefused, InputRejected
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
        """Decide the exchanges, and write the records with their new areas down once.

        Raises
        ------
        InputRejected
            If a household is in several areas.
        GateRefused
            If no unit is exchanged though some are at risk, the rate asks for it, or risks are supplied.
        """
        levels, place = self._areas, job.areas.staging_area(release_id, "resume")
        secret = hmac.digest(job.areas.key(), b"swapping", "sha256")
        with job.progress.stage("protect"):
            keyed = self._with_units(frame, secret)
            units = self._units(keyed, job).persist()
            try:
                exchanged = self._exchanges(units, job)
                if not exchanged.num_rows:
                    self._refuse_unmoved(units)
            finally:
                units.unpersist()
        areas = {name: f"__new{position}" for position, name in enumerate(levels)}
        moved = job.spark.createDataFrame(exchanged, _schema(len(levels)))
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

    def _refuse_unmoved(self, units: DataFrame) -> None:
        """Refuse to publish the records as they are, unless none is at risk by k and the rate is 0."""
        flags = [f.col(f"__risk{i}") for i in range(len(self._areas))]
        at_risk = units.where(reduce(or_, flags)).count()
        if not (at_risk or self._swapping.rate or self._swapping.risk_values):
            return
        raise GateRefused(
            "[method.parameters]: expected units that exchange their areas, found none that moved, and "
            f"{at_risk} at risk. Nothing was published. Correct risk_threshold if units are at risk and none "
            "was found; else name areas that have several codes in the file, fewer variables in similar, or "
            "more in risk, in which two units must differ to be exchanged."
        )

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
        levels = self._swapping.levels
        if not self._swapping.risk_values:
            k, risk = self.specification.release.k, [_text(name) for name in self._risk]
            return {
                f"__risk{i}": f.count(f.lit(1)).over(Window.partitionBy(*map(_text, areas), *risk)) < k
                for i, areas in enumerate(levels)
            }
        return {f"__risk{i}": at_risk_by_value(self._swapping, areas) for i, areas in enumerate(levels)}

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
        rest = units
        if first is not None:
            taken = job.spark.createDataFrame(first.select([_UNIT]), _schema(0))
            taken = taken.withColumn(_TAKEN, f.lit(True))
            rest = units.join(f.broadcast(taken), on=_UNIT, how="left")

        def within(table: pa.Table) -> pa.Table:
            return _exchanged(table, above, range(whole, depth), rate)

        further = apply_in_arrow(rest, ["__area0"], within, _schema(depth)).toArrow()
        return further if first is None else pa.concat_tables([first, further])


def _schema(depth: int) -> t.StructType:
    """Return the columns of exchanged units; Spark Connect infers none from a table without rows."""
    areas = (t.StructField(f"__new{i}", t.StringType()) for i in range(depth))
    return t.StructType([t.StructField(_UNIT, t.LongType()), *areas])


def _exchanged(table: pa.Table, above: Sequence[int], levels: range, rate: float) -> pa.Table:
    """Decide the exchanges of some units; return those exchanged with their new areas."""
    depth = len(above)
    table = table.sort_by(_UNIT)
    names = table.column_names
    areas = [table[f"__area{i}"].combine_chunks().dictionary_encode() for i in range(depth)]
    codes: dict[int, np.ndarray] = {-1: np.zeros(table.num_rows, np.int64)}
    while len(codes) <= depth:  # an area is named within the area above it, whose code comes first
        for level in (i for i in range(depth) if i not in codes and above[i] in codes):
            both = codes[above[level]] * len(areas[level].dictionary) + areas[level].indices.to_numpy()
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
    partners = pa.array(swaps.partner[moved])
    columns |= {f"__new{i}": table[f"__area{i}"].take(partners) for i in range(depth)}
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
