"""Validate the original records: compute all counts in one aggregation, and remove records that do not fit.

Rejected records are counted by reason, and no value of them is stored. `pipelines.gate.expectations` compares
the counts with the requirements.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.row_hash import content_of
from microguard.pipelines.intake.faults import translate_read_errors
from microguard.pipelines.intake.fixed_point import Scale, scales_from_sums
from microguard.pipelines.intake.part_sums import part_sums
from microguard.pipelines.intake.read import Microdata
from microguard.pipelines.intake.recode import hierarchy_paths
from microguard.pipelines.intake.reject import REASON, REASONS, flag_rejected, not_finite, not_positive
from microguard.pipelines.intake.totals import totals_from_sums
from microguard.pipelines.intake.typed import UNREADABLE
from microguard.pipelines.intake.untouched_columns import (
    UntouchedColumns,
    untouched_columns,
    untouched_from_sums,
)
from microguard.schemas.errors import ProtectionFailed
from microguard.schemas.requirements.requirement import MetricKey
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.sections import Group
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as f

#: Column of the missing pattern: bit i is set if the i-th numeric quasi-identifier is missing.
PATTERN = "__pattern"
REGION = "region"
_OF_STRATA = (REGION, PATTERN, "records")
Rejects = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True)
class ValidatedInput:
    """The original records that passed validation, and the statistics that were computed from them.

    Attributes
    ----------
    frame : DataFrame
        Records to protect: published columns, the household, supplied risks, the column whose distinct values
        k counts, `PATTERN`.
    keyed : DataFrame
        The same records with the published columns and the unit: the input of the source fingerprint.
    raw : DataFrame
        Every column and record of the input, unchanged.
    records, remaining : int
        Number of records of the file, and of `frame` (neither rejected nor suppressed).
    rejected : mapping of reason to int
        Number of rejected records.
    suppressed : int
        Number of records in regions with fewer than k units, if the specification suppresses these regions.
    strata : pyarrow.Table
        Record counts of `frame` by region and missing pattern, with the columns `REGION` (if there is a
        region), `PATTERN` and ``records``.
    scales : mapping of numeric quasi-identifier to Scale
        Mean and standard deviation in `frame`.
    mean_weights : mapping of the weight, if there is one, to its mean in `frame`
    totals : pandas.DataFrame
        Totals of the numeric quasi-identifiers of `frame` by region (`pipelines.intake.totals`).
    fingerprint : str
        Hash of the records as a multiset, with names and types; it does not depend on the order of rows or
        files.
    metrics : mapping of MetricKey to float
        Values of the metrics that `schemas.requirements.records` limits.
    untouched : UntouchedColumns
        Summary of the columns of `frame` that protection does not touch.
    population : DataFrame or None
        Number of units of each combination in the population (`pipelines.intake.population`), if given.
    """

    frame: DataFrame
    keyed: DataFrame
    raw: DataFrame
    records: int
    remaining: int
    rejected: Mapping[str, int]
    suppressed: int
    strata: pa.Table
    scales: Mapping[str, Scale]
    mean_weights: Mapping[str, float]
    totals: pd.DataFrame
    fingerprint: str
    untouched: UntouchedColumns
    metrics: Mapping[MetricKey, float] = field(default_factory=dict)
    population: DataFrame | None = None

    @property
    def domains(self) -> dict[str, int]:
        """Estimated number of distinct values of each nominal quasi-identifier; missing counts as a value."""
        return {key.variable: int(value) for key, value in self.metrics.items() if key.metric == "domain"}


def validate(
    microdata: Microdata, specification: Specification, further: Rejects | None = None
) -> ValidatedInput:
    """Validate the records: reject those that do not fit, suppress small regions, and compute statistics.

    Parameters
    ----------
    further : callable, optional
        Sets `REASON` for records that are rejected for another cause than their own values, for example
        because their unit was published before.

    Raises
    ------
    InputRejected
        If a part of the file cannot be read.
    """
    with translate_read_errors(specification):
        records = flag_rejected(microdata.frame, specification)
        records = records if further is None else further(records)
        records = records.withColumn(PATTERN, missing_pattern(specification))
        row = records.agg(*_metrics(microdata, specification)).first()
        assert row is not None
        accepted = records.where(f.col(REASON).isNull())
        magnitude = _magnitude(row, specification)
        others = [name for name in microdata.published if name in specification.published_as_it_is]
        parts = _parts(accepted, others, magnitude, specification)
        strata = parts.select([name for name in parts.column_names if name in _OF_STRATA])
        regions = _units(accepted, strata, 0, specification)
        small = _small(regions, specification)
        metrics = _smallest(accepted, strata, regions, small, specification)
    rejected = {reason: row[f"reason{i}"] for i, reason in enumerate(REASONS) if row[f"reason{i}"] > 0}
    metrics |= _named(row, microdata, specification)
    suppressed = row["accepted"] - int(pc.sum(_without(strata, small)["records"]).as_py() or 0)
    remaining = accepted if rejected else records
    if suppressed:
        strata, parts = _without(strata, small), _without(parts, small)
        remaining = remaining.join(
            f.broadcast(accepted.sparkSession.createDataFrame(pa.table({"__small": small}))),
            column(specification.region or "") == f.col("__small"),
            how="left_anti",
        )
    metrics[MetricKey("records_kept")] = row["accepted"] - suppressed
    counted = {*specification.with_role("household", "risk"), *filter(None, [specification.counted])}
    if specification.publish.series != "single":
        counted |= {*specification.with_role("unit")}
    names = [*microdata.published, *[name for name in microdata.frame.columns if name in counted]]
    keyed = [*microdata.published, *specification.with_role("unit")]
    scales = scales_from_sums(parts, [*specification.numeric, *_weighing(specification)], magnitude)
    return ValidatedInput(
        frame=remaining.select(*[column(name) for name in names], PATTERN),
        keyed=remaining.select(*[column(name) for name in keyed]),
        raw=microdata.raw,
        records=row["records"],
        remaining=row["accepted"] - suppressed,
        rejected=rejected,
        suppressed=suppressed,
        strata=strata,
        scales={name: scales[name] for name in specification.numeric},
        mean_weights={name: scales[name].mean for name in _weighing(specification)},
        totals=totals_from_sums(parts, REGION, specification.numeric, specification.weights),
        fingerprint=_fingerprint(row, microdata, specification),
        untouched=untouched_from_sums(parts, accepted, others, specification),
        metrics=metrics,
        population=_population(microdata.frame, specification),
    )


def _population(frame: DataFrame, specification: Specification) -> DataFrame | None:
    """Return the counts of the population, if the specification names a file of them."""
    if specification.population is None:
        return None
    from microguard.pipelines.intake.population import population

    return population(frame, specification)


def require_unchanged(microdata: Microdata, specification: Specification, validated: ValidatedInput) -> None:
    """Refuse an input whose records changed after they were validated.

    Otherwise the ledger and the source fingerprint would describe other records than the published ones, and
    the differencing checks of later releases would compare the wrong records.

    Raises
    ------
    ProtectionFailed
        If the fingerprint of the records differs.
    """
    with translate_read_errors(specification):
        row = microdata.frame.agg(*_content(microdata)).first()
        assert row is not None
    if _fingerprint(row, microdata, specification) != validated.fingerprint:
        raise ProtectionFailed(
            "Input: expected the records that were validated, found other records. The input changed during "
            "the run, or returns different records each time it is read. Nothing was published. Start the "
            "run again when the input no longer changes."
        )


def pattern_mask(group: Group, specification: Specification) -> int:
    """Return the bit mask of `PATTERN` for the variables of one clustering."""
    return sum(1 << i for i, name in enumerate(specification.numeric) if name in group.variables)


def merge_strata(strata: pa.Table, mask: int) -> pa.Table:
    """Merge strata whose missing patterns agree in the bits of `mask`, and sum their record counts."""
    of_clustering = strata.set_column(
        strata.column_names.index(PATTERN),
        PATTERN,
        pc.bit_wise_and(strata[PATTERN], pa.scalar(mask, pa.int64())),
    )
    return _summed(of_clustering, [name for name in of_clustering.column_names if name != "records"])


def missing_pattern(specification: Specification) -> Column:
    """Return the column `PATTERN`: 0 unless records are clustered by missing pattern."""
    pattern = f.lit(0).cast("bigint")
    if specification.missing.numeric == "own_cluster":
        for i, name in enumerate(specification.numeric):
            pattern = pattern + f.when(column(name).isNull(), f.lit(1 << i).cast("bigint")).otherwise(
                f.lit(0)
            )
    return pattern


def _weighing(specification: Specification) -> list[str]:
    """Return the name of the weight as a list; the list is empty without a weight."""
    return [] if specification.weight is None else [specification.weight]


def _names(microdata: Microdata) -> list[str]:
    return [name for name in microdata.frame.columns if name != UNREADABLE]


def _content(microdata: Microdata) -> list[Column]:
    """Return the aggregates of the fingerprint.

    Row hashes are summed in two halves of 32 bits, because a sum of 2^31 whole hashes overflows.
    """
    row_hash = f.xxhash64(*content_of(_names(microdata)))
    return [
        f.count(f.lit(1)).alias("records"),
        f.sum(f.shiftright(row_hash, 32)).alias("high"),
        f.sum(row_hash.bitwiseAND(f.lit(0xFFFFFFFF))).alias("low"),
        f.bit_xor(row_hash).alias("mixed"),
    ]


def _metrics(microdata: Microdata, specification: Specification) -> list[Column]:
    """Return all aggregates over the records, so that one pass over the file computes them.

    The number of categories is estimated by HyperLogLog++, whose registers are maxima: the estimate does not
    depend on the partitioning.
    """
    accepted = f.col(REASON).isNull()
    numbers = [*specification.numeric, *specification.with_role("weight")]
    return [
        *_content(microdata),
        f.count_if(accepted).alias("accepted"),
        *[f.count_if(f.col(REASON) == reason).alias(f"reason{i}") for i, reason in enumerate(REASONS)],
        *[f.count_if(column(name).isNull()).alias(f"missing{i}") for i, name in enumerate(_names(microdata))],
        *[
            f.count_if(not_finite(name, microdata.frame)).alias(f"infinite{i}")
            for i, name in enumerate(numbers)
        ],
        *[f.count_if(not_positive(name)).alias("not_positive") for name in _weighing(specification)],
        *[
            f.max(f.when(accepted, f.abs(column(name).cast("double")))).alias(f"magnitude{i}")
            for i, name in enumerate([*specification.numeric, *_weighing(specification)])
        ],
        *[
            (f.approx_count_distinct(column(name)) + f.max(column(name).isNull().cast("int"))).alias(
                f"domain{i}"
            )
            for i, name in enumerate(specification.nominal)
        ],
    ]


def _named(row: Row, microdata: Microdata, specification: Specification) -> dict[MetricKey, float]:
    names = _names(microdata)
    metrics: dict[MetricKey, float] = {
        MetricKey("records_rejected"): row["records"] - row["accepted"],
    }
    # The reader has refused inputs that lack a column or have another type, so both metrics are met.
    for name, variable in specification.variables.items():
        metrics[MetricKey("present", name)] = 1
        if variable.role != "identifier":
            metrics[MetricKey("type_fits", name)] = 1
    for i, name in enumerate(names):
        metrics[MetricKey("missing", name)] = row[f"missing{i}"]
    for i, name in enumerate([*specification.numeric, *specification.with_role("weight")]):
        metrics[MetricKey("not_finite", name)] = row[f"infinite{i}"]
    for name in _weighing(specification):
        metrics[MetricKey("not_positive", name)] = row["not_positive"]
    for name in specification.with_role("unit"):
        metrics[MetricKey("repeated", name)] = row[f"reason{REASONS.index('unit repeated')}"]
    for i, name in enumerate(specification.nominal):
        metrics[MetricKey("domain", name)] = row[f"domain{i}"] or 0
    return metrics


def _magnitude(row: Row, specification: Specification) -> dict[str, float]:
    names = [*specification.numeric, *_weighing(specification)]
    return {name: row[f"magnitude{i}"] or 0.0 for i, name in enumerate(names)}


def _parts(
    accepted: DataFrame, others: list[str], magnitude: Mapping[str, float], specification: Specification
) -> pa.Table:
    """Compute the record count of each stratum and the sums for scales, totals and summary, in one pass."""
    keys = {PATTERN: f.col(PATTERN)}
    if specification.region is not None:
        keys = {REGION: column(specification.region), **keys}
    untouched = untouched_columns(accepted, others, specification)
    return part_sums(accepted, keys, magnitude, specification.weights, untouched)


def _summed(strata: pa.Table, keys: list[str]) -> pa.Table:
    return strata.group_by(keys).aggregate([("records", "sum")]).rename_columns([*keys, "records"])


def _units(accepted: DataFrame, strata: pa.Table, mask: int, specification: Specification) -> pa.Table:
    """Count the units (what k counts) by region and by the bits `mask` of the pattern: column ``units``."""
    of_clustering = merge_strata(strata, mask)
    if specification.counted is None:
        return of_clustering.rename_columns(
            [{"records": "units"}.get(name, name) for name in of_clustering.column_names]
        )
    keys = [f.col(PATTERN).bitwiseAND(f.lit(mask)).alias(PATTERN)]
    if specification.region is not None:
        keys.insert(0, column(specification.region).alias(REGION))
    households = f.count_distinct(column(specification.counted)).alias("units")
    return accepted.groupBy(*keys).agg(households).toArrow()


def _small(regions: pa.Table, specification: Specification) -> pa.Array:
    """Return the regions with fewer than k units, if the specification suppresses them; else none."""
    if specification.region is None or specification.blocking.small_regions != "suppress":
        return pa.array([])
    return regions.filter(pc.less(regions["units"], specification.release.k))[REGION].combine_chunks()


def _without(strata: pa.Table, small: pa.Array) -> pa.Table:
    return strata.filter(pc.invert(pc.is_in(strata[REGION], value_set=small))) if len(small) else strata


def _smallest(
    accepted: DataFrame,
    strata: pa.Table,
    regions: pa.Table,
    small: pa.Array,
    specification: Specification,
) -> dict[MetricKey, float]:
    """Count the units of the smallest region, and the missing patterns with fewer than k units."""
    rare: list[int] = []
    for group in specification.clusterings:
        mask = pattern_mask(group, specification)
        units = regions if mask == 0 else _units(accepted, strata, mask, specification)
        units = _without(units, small)
        rare += units.filter(pc.less(units["units"], specification.release.k))[PATTERN].to_pylist()
    return {
        MetricKey("smallest_region", specification.region or ""): float(
            pc.min(regions["units"]).as_py() or 0
        ),
        MetricKey("complete_below_k"): rare.count(0),
        **{
            MetricKey("patterns_below_k", name): sum(pattern >> i & 1 for pattern in rare)
            for i, name in enumerate(specification.numeric)
        },
    }


def _fingerprint(row: Row, microdata: Microdata, specification: Specification) -> str:
    """Hash the recoded records and the hierarchies and cost matrices that define distances."""
    layout = sorted(
        (entry.name, entry.dataType.simpleString())
        for entry in microdata.frame.schema
        if entry.name != UNREADABLE
    )
    total = ((row["high"] or 0) << 32) + (row["low"] or 0)
    parts = [row["records"], total, row["mixed"] or 0, layout, microdata.contract.schema.to_string()]
    trees = hierarchy_paths(specification)
    if trees:
        parts.append(sorted((name, sorted(tree.items())) for name, tree in trees.items()))
    if specification.nominal:
        from microguard.pipelines.intake.cost_matrices import cost_matrices

        matrices = cost_matrices(specification).items()
        if matrices:
            parts.append(sorted((name, each.categories, each.costs.tolist()) for name, each in matrices))
    return hashlib.sha256(repr(parts).encode()).hexdigest()
