"""Local suppression on Spark: key combinations are counted once, and each region is solved in one task.

Tasks see counts of combinations and no other variable. Which records of a combination lose their values is a
keyed draw by the content of the record, so that it depends neither on their order nor on what a reader knows.
"""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.compat import apply_in_arrow, of_texts
from microguard.pipelines.engine.versions import deciding_versions, in_words
from microguard.pipelines.guarantees.guarantee import Guarantee
from microguard.pipelines.guarantees.k_anonymity import Group as Classes
from microguard.pipelines.guarantees.k_anonymity import KAnonymity
from microguard.pipelines.guarantees.record_files import RecordFiles
from microguard.pipelines.intake.unit_key import unit_key
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.pipelines.job import Job
from microguard.pipelines.measures.block_reports import BlockReports, collected
from microguard.pipelines.method import RecordMethod
from microguard.schemas.specification.sections import Group
from microguard.sdc.algorithms.record_methods import LocalSuppressionParameters
from microguard.sdc.local_suppression import suppress
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql import types as t

#: Stands for a missing value in a key, as no text file has it in a value.
_MISSING = "\x1e"
_REGION, _RECORDS, _REPORT, _RANK, _DRAW = "__region", "__records", "__report", "__rank", "__draw"
#: Patterns of a combination, and the rank of the last record that has each.
_PATTERNS, _LAST = "__patterns", "__last"


class LocalSuppressionMethod(RecordMethod):
    """Replace values of quasi-identifiers by missing ones until each combination has k records."""

    limits = (
        "Values were suppressed because their combination is rare: what is missing is not missing at random, "
        "and statistics of complete records are biased against rare combinations.",
        "A missing value of a quasi-identifier may be suppressed, or missing in the source.",
    )

    def guarantees(self) -> Sequence[Guarantee[RecordFiles]]:
        """k-anonymity of each group of variables, by the meaning that a missing value has."""
        specification = self.specification
        region = () if specification.region is None else (specification.region,)
        groups = tuple(
            Classes(each.name, tuple(each.variables), region) for each in specification.clusterings
        )
        return (
            KAnonymity(specification.release.k, "record", groups, not specification.groups, self._missing),
        )

    @property
    def _missing(self) -> str:
        assert isinstance(self.parameters, LocalSuppressionParameters)
        return self.parameters.missing

    def protect(
        self, job: Job, screened: ValidatedInput, frame: DataFrame, release_id: str
    ) -> tuple[DataFrame, Mapping[str, BlockReports]]:
        """Suppress values of one group of variables after the other; write the records down once for each."""
        place, reports = job.areas.staging_area(release_id, "resume"), {}
        names = frame.columns
        for group in self.specification.clusterings:
            target = f"suppressed-{group.name}"
            with job.progress.stage("protect"):
                place.write(self._patterns(frame, group), f"{target}-patterns", "lz4")
                found = place.read(job.spark, f"{target}-patterns")
                reports[group.name] = _reports(found)
            with job.progress.stage("reconcile"):
                secret = hmac.digest(job.areas.key(), b"local suppression", "sha256")
                place.write(_published(frame, group, self._region, found, secret), target, "lz4")
            frame = place.read(job.spark, target).select(*[column(name) for name in names])
        return frame, reports

    @property
    def _region(self) -> Column:
        region = self.specification.region
        return f.lit("") if region is None else _text(region)

    def _patterns(self, frame: DataFrame, group: Group) -> DataFrame:
        """Return the patterns of the combinations that lose values, and a report for each region."""
        specification, missing = self.specification, self._missing
        k, effort, m = specification.release.k, specification.method.effort, len(group.variables)
        weights = np.array([specification.variables[name].variable_weight for name in group.variables])
        keys = [_text(name).alias(f"__c{j}") for j, name in enumerate(group.variables)]
        counts = frame.groupBy(self._region.alias(_REGION), *keys).agg(f.count(f.lit(1)).alias(_RECORDS))

        def solve(table: pa.Table) -> pa.Table:
            start = time.monotonic()
            table = table.sort_by([(f"__c{j}", "ascending") for j in range(m)])
            codes = np.column_stack([_codes(table[f"__c{j}"]) for j in range(m)])
            records = table[_RECORDS].to_numpy()
            found = suppress(codes, records, k, weights=weights, missing=missing, effort=effort)
            lost = found.pattern & ~(codes < 0).dot(1 << np.arange(m))[found.key]
            report = {
                "records": int(records.sum()),
                "clusters": found.classes,
                "status": "done",
                "algorithm": found.algorithm,
                "software": in_words(deciding_versions()),
                "objective": found.cost,
                "lower_bound": found.lower_bound,
                "gap": 1 - found.lower_bound / found.cost if found.cost else 0.0,
                "optimal": found.optimal,
                "work": {"programs": found.programs, "nodes": found.nodes},
                "seconds": time.monotonic() - start,
            }
            rows: dict[int, tuple[list[int], list[int]]] = {}
            for key, pattern, count in zip(found.key, lost, found.count, strict=True):
                patterns, last = rows.setdefault(int(key), ([], []))
                patterns.append(int(pattern))
                last.append(int(count) + (last[-1] if last else 0))
            rows = {key: each for key, each in rows.items() if any(each[0])}
            chosen = table.take(pa.array(list(rows), pa.int64()))
            columns = [*[chosen[f"__c{j}"] for j in range(m)], chosen[_REGION]]
            columns += [pa.array([each[i] for each in rows.values()], pa.list_(pa.int64())) for i in (0, 1)]
            columns.append(pa.nulls(len(rows), pa.string()))
            region = table[_REGION][0].as_py()
            last_row = [*[None] * m, region, None, None, json.dumps(report)]
            parts = [pa.table(columns, arrow_schema), pa.Table.from_pylist(
                [dict(zip(arrow_schema.names, last_row, strict=True))], arrow_schema
            )]  # fmt: skip
            return pa.concat_tables(parts)

        arrow_schema = pa.schema(
            [
                *[(f"__c{j}", pa.string()) for j in range(m)],
                (_REGION, pa.string()),
                (_PATTERNS, pa.list_(pa.int64())),
                (_LAST, pa.list_(pa.int64())),
                (_REPORT, pa.string()),
            ]
        )
        whole = t.ArrayType(t.LongType())
        kinds = [*[t.StringType()] * (m + 1), whole, whole, t.StringType()]
        schema = t.StructType(
            [t.StructField(name, kind) for name, kind in zip(arrow_schema.names, kinds, strict=True)]
        )
        return apply_in_arrow(counts, [_REGION], solve, schema)


def _published(frame: DataFrame, group: Group, region: Column, found: DataFrame, secret: bytes) -> DataFrame:
    """Return the records with the values that their patterns suppress missing."""
    names = frame.columns
    keys = [_REGION, *[f"__c{j}" for j in range(len(group.variables))]]
    content = f.to_json(f.struct(*[column(name) for name in names]), {"ignoreNullFields": "false"})
    keyed = frame.withColumns(
        {_REGION: region, **{f"__c{j}": _text(name) for j, name in enumerate(group.variables)}}
    )
    patterns = found.where(f.col(_REPORT).isNull()).drop(_REPORT)
    joined = keyed.join(patterns, on=keys, how="left")
    several = f.coalesce(f.size(_PATTERNS) > 1, f.lit(False))
    drawn = joined.where(several).withColumn(_DRAW, _keyed(content, secret))
    order = Window.partitionBy(*keys).orderBy(_DRAW)
    ranked = drawn.withColumn(_RANK, f.row_number().over(order).cast("bigint")).drop(_DRAW)
    alone = joined.where(~several).withColumn(_RANK, f.lit(1).cast("bigint"))
    records = alone.unionByName(ranked)
    place = f"element_at(filter(arrays_zip({_PATTERNS}, {_LAST}), each -> each.{_LAST} >= {_RANK}), 1)"
    pattern = f.expr(f"{place}.{_PATTERNS}")
    lost = {
        name: f.when(f.coalesce(pattern.bitwiseAND(f.lit(1 << j)) != 0, f.lit(False)), f.lit(None))
        .otherwise(column(name))
        .cast(frame.schema[name].dataType)
        for j, name in enumerate(group.variables)
    }
    return records.select(*[lost.get(name, column(name)).alias(name) for name in names])


def _reports(found: DataFrame) -> BlockReports:
    """Collect the reports of the regions, in the order of their names."""
    rows = found.where(f.col(_REPORT).isNotNull()).select(_REGION, _REPORT).collect()
    parsed = [json.loads(report) for _, report in sorted((row[0], row[1]) for row in rows)]
    return collected([json.dumps({"block": i, **report}) for i, report in enumerate(parsed)], 0)


def _codes(values: pa.ChunkedArray) -> np.ndarray:
    """Number the values in their order; -1 where missing."""
    texts = np.asarray(values.to_pylist(), object).astype(str)
    _, codes = np.unique(texts, return_inverse=True)
    present = texts != _MISSING
    return np.where(present, codes.ravel(), -1)


def _text(name: str) -> Column:
    """Return a value as text."""
    return f.coalesce(column(name).cast("string"), f.lit(_MISSING))


def _keyed(content: Column, secret: bytes) -> Column:
    """Return a keyed hash of each record; the key is in no plan that Spark shows."""

    def keyed(texts: pa.Array) -> pa.Array:
        return pa.array([unit_key(text, secret) for text in texts.to_pylist()], pa.binary())

    hashed = of_texts(keyed, t.BinaryType())
    draw: Column = hashed(content)
    return draw
