"""Local suppression on Spark: key combinations are counted once, and each region is solved in one task.

Tasks read only the counts of combinations. A keyed draw on the content of the records selects which records
of a combination lose their values. The selection therefore depends neither on the order of records nor on
anything that a reader knows.
"""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.compat import apply_in_arrow
from microguard.pipelines.intake.unit_key import keyed_hash
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.pipelines.job import Job
from microguard.pipelines.measures.block_reports import BlockReports, collected
from microguard.pipelines.methods.coarsening import MISSING, RECORDS, REGION, Coarsening, report
from microguard.sdc.algorithms.record_methods import LocalSuppressionParameters
from microguard.sdc.local_suppression import suppress
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql import types as t

_REPORT, _RANK, _DRAW = "__report", "__rank", "__draw"
#: Columns with the patterns of a combination, and with the rank of the last record that has each pattern.
_PATTERNS, _LAST = "__patterns", "__last"
#: Name of the protected records in the work folder.
_TARGET = "suppressed"


class LocalSuppressionMethod(Coarsening):
    """Replace values of quasi-identifiers by missing ones until each combination has k records."""

    limits = (
        "Values were suppressed because their combination is rare: values are not missing at random, and "
        "statistics of complete records are biased against rare combinations.",
        "A missing value of a quasi-identifier may be suppressed, or missing in the source.",
    )

    @property
    def missing(self) -> str:
        """How k-anonymity counts a missing value."""
        assert isinstance(self.parameters, LocalSuppressionParameters)
        return self.parameters.missing

    def protect(
        self, job: Job, screened: ValidatedInput, frame: DataFrame, release_id: str
    ) -> tuple[DataFrame, Mapping[str, BlockReports]]:
        """Find the pattern of each combination, suppress the values, and write the records to files."""
        place = job.areas.staging_area(release_id, "resume")
        with job.progress.stage("protect"):
            place.write(self._patterns(frame), f"{_TARGET}-patterns", "lz4")
            found = place.read(job.spark, f"{_TARGET}-patterns")
            reports = _reports(found)
        with job.progress.stage("reconcile"):
            secret = hmac.digest(job.areas.key(), b"local suppression", "sha256")
            place.write(self._published(frame, found, secret), _TARGET, "lz4")
        protected = place.read(job.spark, _TARGET).select(*[column(name) for name in frame.columns])
        return protected, {self.group.name: reports}

    def _patterns(self, frame: DataFrame) -> DataFrame:
        """Return the patterns of the combinations that lose values, and a report for each region."""
        specification, missing, group = self.specification, self.missing, self.group
        k, effort, m = specification.release.k, specification.method.effort, len(group.variables)
        weights = np.array([specification.variables[name].variable_weight for name in group.variables])
        keys = [each.alias(name) for name, each in self.keys().items()]
        counts = frame.groupBy(*keys).agg(f.count(f.lit(1)).alias(RECORDS))

        def solve(table: pa.Table) -> pa.Table:
            start = time.monotonic()
            table = table.sort_by([(f"__c{j}", "ascending") for j in range(m)])
            codes = np.column_stack([_codes(table[f"__c{j}"]) for j in range(m)])
            records = table[RECORDS].to_numpy()
            found = suppress(codes, records, k, weights=weights, missing=missing, effort=effort)
            lost = found.pattern & ~(codes < 0).dot(1 << np.arange(m))[found.key]
            solved = report(
                records=int(records.sum()),
                clusters=found.classes,
                algorithm=found.algorithm,
                objective=found.cost,
                lower_bound=found.lower_bound,
                optimal=found.optimal,
                work={"programs": found.programs, "nodes": found.nodes},
                seconds=time.monotonic() - start,
            )
            rows: dict[int, tuple[list[int], list[int]]] = {}
            for key, pattern, count in zip(found.key, lost, found.count, strict=True):
                patterns, last = rows.setdefault(int(key), ([], []))
                patterns.append(int(pattern))
                last.append(int(count) + (last[-1] if last else 0))
            rows = {key: each for key, each in rows.items() if any(each[0])}
            chosen = table.take(pa.array(list(rows), pa.int64()))
            columns = [*[chosen[f"__c{j}"] for j in range(m)], chosen[REGION]]
            columns += [pa.array([each[i] for each in rows.values()], pa.list_(pa.int64())) for i in (0, 1)]
            columns.append(pa.nulls(len(rows), pa.string()))
            region = table[REGION][0].as_py()
            last_row = [*[None] * m, region, None, None, json.dumps(solved)]
            parts = [pa.table(columns, arrow_schema), pa.Table.from_pylist(
                [dict(zip(arrow_schema.names, last_row, strict=True))], arrow_schema
            )]  # fmt: skip
            return pa.concat_tables(parts)

        arrow_schema = pa.schema(
            [
                *[(f"__c{j}", pa.string()) for j in range(m)],
                (REGION, pa.string()),
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
        return apply_in_arrow(counts, [REGION], solve, schema)

    def _published(self, frame: DataFrame, found: DataFrame, secret: bytes) -> DataFrame:
        """Return the records with the values that their patterns suppress missing."""
        names, keys = frame.columns, self.keys()
        content = f.to_json(f.struct(*[column(name) for name in names]), {"ignoreNullFields": "false"})
        patterns = found.where(f.col(_REPORT).isNull()).drop(_REPORT)
        joined = frame.withColumns(keys).join(patterns, on=list(keys), how="left")
        several = f.coalesce(f.size(_PATTERNS) > 1, f.lit(False))
        drawn = joined.where(several).withColumn(_DRAW, keyed_hash(content, secret))
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
            for j, name in enumerate(self.group.variables)
        }
        return records.select(*[lost.get(name, column(name)).alias(name) for name in names])


def _reports(found: DataFrame) -> BlockReports:
    """Collect the reports of the regions, in the order of their names."""
    rows = found.where(f.col(_REPORT).isNotNull()).select(REGION, _REPORT).collect()
    parsed = [json.loads(report) for _, report in sorted((row[0], row[1]) for row in rows)]
    return collected([json.dumps({"block": i, **report}) for i, report in enumerate(parsed)], 0)


def _codes(values: pa.ChunkedArray) -> np.ndarray:
    """Number the values in ascending order; -1 for missing values."""
    texts = np.asarray(values.to_pylist(), object).astype(str)
    _, codes = np.unique(texts, return_inverse=True)
    present = texts != MISSING
    return np.where(present, codes.ravel(), -1)
