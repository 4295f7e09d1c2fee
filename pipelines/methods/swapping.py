"""Targeted record swapping on Spark: tasks decide which units exchange their geography.

A unit is a household, or a record without households. Risk is counted by record and area. At the coarsest
level, and at levels that are not nested in another level, swaps are decided for the whole file: for the units
at risk and a keyed sample of donors. At all other levels, one task decides the swaps within each area of the
coarsest level. A geography with one level is decided in one place. Deciding needs only keys, numbers of areas
and hashes of categories: about 100 bytes for each unit.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from microguard.sdc.algorithms.swapping import SwappingParameters
from microguard.sdc.swapping import swap
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql import types as t

#: Profile variable of households: their number of records. A published column with this name has precedence.
HOUSEHOLD_SIZE = "household_size"
#: Number of donors at the coarsest level for each unit at risk, and minimum number of donors.
DONORS, LEAST_DONORS = 100, 20_000
_UNIT, _SIZE, _TAKEN = "__unit", "__size", "__taken"
#: Columns with numbers of combinations of areas: of the unit, of another combination in the same area, and of
#: the combination after the swap. Last: column with the coarsest area.
_PLACE, _OTHER, _NEW, _COARSEST = "__place", "__other", "__new", "__coarsest"
#: Name of the protected records in the staging area.
_TARGET = "protected"
#: Text that represents a missing value; text files never contain it in a value.
_MISSING = "\x1e"
#: Upper limit of the keyed integers by which units are numbered.
_NUMBERS = 1 << 60
#: Schema of swapped units, needed because Spark Connect cannot infer a schema from a table without rows.
_EXCHANGED = t.StructType(
    [
        t.StructField(_UNIT, t.LongType()),
        t.StructField(_NEW, t.IntegerType()),
    ]
)


class TargetedRecordSwapping(RecordMethod):
    """Targeted record swapping: units at risk exchange their geography with similar units."""

    limits = (
        "Counts by the exchanged areas are perturbed. Variables that describe an area, and are published "
        "unmodified, may contradict the exchanged area.",
    )

    def guarantees(self) -> Sequence[Guarantee[RecordFiles]]:
        """Return the statement that there is no formal promise."""
        return (MeasuredOnly(self._areas),)

    @property
    def _swapping(self) -> SwappingParameters:
        assert isinstance(self.parameters, SwappingParameters)
        return self.parameters

    @property
    def _areas(self) -> tuple[str, ...]:
        """Return the variable of each level, in the order of the swaps."""
        return tuple(areas[-1] for areas in self._swapping.levels)

    @property
    def _above(self) -> list[int]:
        """Return for each level the level within whose areas it is swapped; -1 for the whole file."""
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
        """Decide the swaps, and write the records with their new areas to files once.

        Raises
        ------
        InputRejected
            If a household is in several areas.
        GateRefused
            If no unit is swapped although some are at risk, the rate is above 0, or risks are supplied.
        """
        place = job.areas.staging_area(release_id, "resume")
        names = [f"__new{i}" for i in range(len(self._areas))]
        kept: list[DataFrame] = []
        try:
            with job.progress.stage("protect"):
                places = _places(frame, self._areas, self._above)
                areas = f.broadcast(job.spark.createDataFrame(places.table, _place_schema(self._areas)))
                secret = hmac.digest(job.areas.key(), b"swapping", "sha256")
                keyed = self._at_places(self._with_units(frame, secret), areas).persist()
                kept.append(keyed)
                units = self._units(keyed, areas).persist()
                kept.append(units)
                _refuse_several_areas(units)
                exchanged = self._exchanges(units, places.levels, job)
                if not exchanged.num_rows:
                    self._refuse_unmoved(units)
            moved = job.spark.createDataFrame(exchanged, _EXCHANGED)
            moved = moved.join(areas.toDF(_NEW, *names), on=_NEW).select(_UNIT, _NEW, *names)
            with job.progress.stage("reconcile"):
                protected = keyed.join(moved, on=_UNIT, how="left").select(*self._changed(frame))
                place.write(protected, _TARGET, "lz4")
        finally:
            for each in kept:
                each.unpersist()
        return place.read(job.spark, _TARGET).select(*[column(n) for n in frame.columns]), {}

    def _changed(self, frame: DataFrame) -> list[Column]:
        """Return the columns of a frame in which swapped units have their new areas."""
        new = {name: f.col(f"__new{i}") for i, name in enumerate(self._areas)}
        return [
            (
                f.when(f.col(_NEW).isNull(), column(name))
                .otherwise(f.nullif(new[name], f.lit(_MISSING)).cast(frame.schema[name].dataType))
                .alias(name)
                if name in new
                else column(name).alias(name)
            )
            for name in frame.columns
        ]

    def _refuse_unmoved(self, units: DataFrame) -> None:
        """Refuse to publish unchanged records, unless no unit is at risk by k and the rate is 0."""
        flags = [f.col(f"__risk{i}") for i in range(len(self._areas))]
        at_risk = units.where(reduce(or_, flags)).count()
        if not (at_risk or self._swapping.rate or self._swapping.risk_values):
            return
        raise GateRefused(
            "[method.parameters]: expected units that exchange their areas, found none that moved, and "
            f"{at_risk} at risk. Nothing was published. If units are at risk but none was found, correct "
            "risk_threshold. Otherwise name areas that have several codes in the file, fewer variables in "
            "similar, or more in risk (two units must differ in a risk variable to be exchanged)."
        )

    def _with_units(self, frame: DataFrame, secret: bytes) -> DataFrame:
        """Add the keyed number of each record's unit; it does not depend on the order of records."""
        if self.specification.household is not None:
            identity = column(self.specification.household).cast("string")
        else:
            content = (*self.specification.published, *self._swapping.risk_values)
            identity = content_and_number(frame, content)
        return frame.withColumn(_UNIT, _number(identity, secret))

    def _at_places(self, frame: DataFrame, areas: DataFrame) -> DataFrame:
        """Add the number of each record's combination of areas."""
        where = [f"__area{i}" for i in range(len(self._areas))]
        same = [_text(name) == f.col(text) for name, text in zip(self._areas, where, strict=True)]
        return frame.join(areas, on=same, how="left").drop(*where)

    def _units(self, keyed: DataFrame, areas: DataFrame) -> DataFrame:
        """Return one row for each unit: areas, risk by level, and hashes of its categories and profiles."""
        named = {name for profile in self._profiles for name in profile} & {*self.specification.published}
        categories = {
            name: f"__category{i}" for i, name in enumerate([*self._risk, *sorted(named - {*self._risk})])
        }
        flagged, flags = self._with_risk(keyed, areas)
        rows = flagged.groupBy(_UNIT).agg(
            f.min(_PLACE).alias(_PLACE),
            f.max(_PLACE).alias(_OTHER),
            *[f.max(name).alias(name) for name in flags],
            *[_hash_of_all(_text(name)).alias(alias) for name, alias in categories.items()],
            f.count(f.lit(1)).alias(_SIZE),
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
        return rows.select(_UNIT, _PLACE, _OTHER, *flags, *profiles, *features)

    def _with_risk(self, keyed: DataFrame, areas: DataFrame) -> tuple[DataFrame, list[str]]:
        """Add for each level whether a record is at risk: by its supplied risk if there is one, otherwise by
        k.
        """
        levels, parameters = self._swapping.levels, self._swapping
        flags = [f"__risk{i}" for i in range(len(levels))]
        if parameters.risk_values:
            at_risk = [at_risk_by_value(parameters, chain) for chain in levels]
            return keyed.withColumns(dict(zip(flags, at_risk, strict=True))), flags
        risk = {f"__value{i}": _text(name) for i, name in enumerate(self._risk)}
        counted = keyed.groupBy(_PLACE, *[text.alias(name) for name, text in risk.items()])
        cells = counted.agg(f.count(f.lit(1)).alias(_SIZE)).join(areas, on=_PLACE)
        within = [[f"__area{self._areas.index(name)}" for name in chain] for chain in levels]
        rare = cells.withColumns(
            {
                flag: f.sum(_SIZE).over(Window.partitionBy(*chain, *risk)) < self.specification.release.k
                for flag, chain in zip(flags, within, strict=True)
            }
        ).where(reduce(or_, map(f.col, flags)))
        rare = rare.select(f.col(_PLACE).alias("__in"), *risk, *flags)
        same = [f.col(_PLACE) == f.col("__in"), *[text == f.col(name) for name, text in risk.items()]]
        none = {flag: f.coalesce(f.col(flag), f.lit(False)) for flag in flags}
        return keyed.join(rare, on=same, how="left").withColumns(none), flags

    def _exchanges(self, units: DataFrame, levels: np.ndarray, job: Job) -> pa.Table:
        """Return the swapped units with the number of their new areas; `levels` contains the areas of each
        number.
        """
        above, rate = self._above, self._swapping.rate
        depth = len(above)
        if len(self._swapping.geography) == 1:
            return _exchanged(units.toArrow(), levels, above, range(depth), rate)
        whole = above.count(-1)  # the levels that have no coarser level come first
        open_ones = f.greatest(f.lit(False), *[f.col(f"__risk{i}") for i in range(whole)])
        counts = units.agg(f.count(f.lit(1)), f.count_if(open_ones)).first()
        assert counts is not None
        wanted = DONORS * counts[1] + LEAST_DONORS
        share = min(1.0, wanted / max(counts[0], 1))
        sampled = units.where(open_ones | (f.col(_UNIT) < int(share * _NUMBERS)))
        first = _exchanged(sampled.toArrow(), levels, above, range(whole), 0.0) if counts[1] else None
        rest = units
        if first is not None:
            taken = job.spark.createDataFrame(first, _EXCHANGED).select(_UNIT, f.lit(True).alias(_TAKEN))
            rest = units.join(f.broadcast(taken), on=_UNIT, how="left")
        coarsest = job.spark.createDataFrame(
            pa.table({_PLACE: np.arange(len(levels), dtype=np.int32), _COARSEST: levels[:, 0]})
        )

        def within(table: pa.Table) -> pa.Table:
            return _exchanged(table, levels, above, range(whole, depth), rate)

        by_area = rest.join(f.broadcast(coarsest), on=_PLACE)
        further = apply_in_arrow(by_area, [_COARSEST], within, _EXCHANGED).toArrow()
        return further if first is None else pa.concat_tables([first, further])


@dataclass(frozen=True, eq=False)
class _Places:
    """Combinations of areas that occur in the records.

    Attributes
    ----------
    table : Table
        Number of each combination, and its areas as text.
    levels : (places, levels) int32 array
        Number of each area; areas of the same name in different higher areas have different numbers.
    """

    table: pa.Table
    levels: np.ndarray


def _places(frame: DataFrame, areas: Sequence[str], above: Sequence[int]) -> _Places:
    """Number the combinations of areas in the order of their names."""
    names = [f"__area{i}" for i in range(len(areas))]
    texts = [_text(area).alias(name) for area, name in zip(areas, names, strict=True)]
    table = frame.select(*texts).distinct().toArrow()
    table = table.sort_by([(name, "ascending") for name in names]).combine_chunks()
    codes: dict[int, np.ndarray] = {-1: np.zeros(table.num_rows, np.int64)}
    # an area is identified within its coarser area, whose code is assigned first
    while len(codes) <= len(areas):
        for level in (i for i in range(len(areas)) if i not in codes and above[i] in codes):
            texts = table[names[level]].combine_chunks().dictionary_encode()
            both = codes[above[level]] * len(texts.dictionary) + texts.indices.to_numpy()
            codes[level] = np.unique(both, return_inverse=True)[1]
            break
    levels = np.column_stack([codes[i] for i in range(len(areas))]).astype(np.int32)
    return _Places(table.add_column(0, _PLACE, pa.array(np.arange(table.num_rows, dtype=np.int32))), levels)


def _refuse_several_areas(units: DataFrame) -> None:
    wrong = units.where(f.col(_PLACE) != f.col(_OTHER)).count()
    if wrong:
        raise InputRejected(
            f"{wrong} household(s) have records in several areas of method.parameters.geography, expected "
            "one area for each household. Correct the records, or remove the role household."
        )


def _place_schema(areas: Sequence[str]) -> t.StructType:
    names = (t.StructField(f"__area{i}", t.StringType()) for i in range(len(areas)))
    return t.StructType([t.StructField(_PLACE, t.IntegerType()), *names])


def _exchanged(
    table: pa.Table, levels: np.ndarray, above: Sequence[int], exchanged: range, rate: float
) -> pa.Table:
    """Decide the swaps of some units; return the swapped units with the numbers of their new areas."""
    table = table.sort_by(_UNIT)
    names = table.column_names

    def stacked(prefix: str) -> np.ndarray:
        chosen = [table[name].to_numpy() for name in names if name.startswith(prefix)]
        return np.column_stack(chosen) if chosen else np.zeros((table.num_rows, 0))

    taken = table[_TAKEN].is_valid().to_numpy() if _TAKEN in names else None
    units, places = table[_UNIT].to_numpy(), table[_PLACE].to_numpy()
    swaps = swap(
        levels[places], stacked("__risk"), stacked("__profile"), stacked("__feature"), units,
        rate=rate, levels=exchanged, above=above, taken=taken,
    )  # fmt: skip
    moved = np.flatnonzero(swaps.exchanged)
    return pa.table({_UNIT: units[moved], _NEW: places[swaps.partner[moved]].astype(np.int32)})


def _hash_of_all(text: Column) -> Column:
    """Return a hash of the texts of a group as a multiset: a sum, which requires neither a list nor
    an order.
    """
    hashed = f.xxhash64(text)
    halves = (f.shiftright(hashed, 32), hashed.bitwiseAND(f.lit(0xFFFFFFFF)))
    return f.xxhash64(*map(f.sum, halves))


def _text(name: str) -> Column:
    """Return a value as text; a missing value is a category of its own."""
    return f.coalesce(column(name).cast("string"), f.lit(_MISSING))


def _number(identity: Column, secret: bytes) -> Column:
    """Return a keyed integer in [0, `_NUMBERS`); query plans do not contain the key."""

    def numbers(texts: pa.Array) -> pa.Array:
        keys = [unit_key(text, secret) for text in texts.to_pylist()]
        return pa.array(
            [None if each is None else int.from_bytes(each[:8], "big") % _NUMBERS for each in keys],
            pa.int64(),
        )

    hashed = of_texts(numbers, t.LongType())
    number: Column = hashed(identity)
    return number
