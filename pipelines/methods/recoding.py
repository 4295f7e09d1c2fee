"""Recoding on Spark: key combinations are counted once, and the search runs on their counts in the driver.

A hierarchical variable has the levels of its file, from the one that the specification names; every variable
can also be suppressed altogether. All records are published at the same levels, except suppressed ones.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.versions import deciding_versions, in_words
from microguard.pipelines.guarantees.guarantee import Guarantee
from microguard.pipelines.guarantees.k_anonymity import Group as Classes
from microguard.pipelines.guarantees.k_anonymity import KAnonymity
from microguard.pipelines.guarantees.record_files import RecordFiles
from microguard.pipelines.intake.recode import hierarchy_paths
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.pipelines.job import Job
from microguard.pipelines.measures.block_reports import BlockReports, collected
from microguard.pipelines.method import RecordMethod
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.sections import Group
from microguard.sdc.algorithms.record_methods import RecodingParameters
from microguard.sdc.recoding import Ladder, Lattice, Recoding, recode
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

#: The counts of more combinations do not fit into the driver.
MOST_KEYS = 5_000_000
#: Stands for a missing value in a key, as no text file has it in a value.
_MISSING = "\x1e"
_REGION, _RECORDS, _GONE = "__region", "__records", "__gone"


class RecodingMethod(RecordMethod):
    """Publish each variable at one level of its hierarchy, and suppress the combinations that remain rare."""

    limits = (
        "All values of a variable are published at one level of its hierarchy. A variable without any value "
        "was suppressed altogether.",
        "Records without any value of the quasi-identifiers were rare combinations, or their values are "
        "missing in the source.",
    )

    def guarantees(self) -> Sequence[Guarantee[RecordFiles]]:
        """k-anonymity of each group of variables."""
        specification = self.specification
        region = () if specification.region is None else (specification.region,)
        groups = tuple(
            Classes(each.name, tuple(each.variables), region) for each in specification.clusterings
        )
        return (KAnonymity(specification.release.k, "record", groups, not specification.groups),)

    @property
    def _recoding(self) -> RecodingParameters:
        assert isinstance(self.parameters, RecodingParameters)
        return self.parameters

    def protect(
        self, job: Job, screened: ValidatedInput, frame: DataFrame, release_id: str
    ) -> tuple[DataFrame, Mapping[str, BlockReports]]:
        """Recode one group of variables after the other; write the records down once for each."""
        place, reports = job.areas.staging_area(release_id, "resume"), {}
        names, paths = frame.columns, hierarchy_paths(self.specification)
        for group in self.specification.clusterings:
            with job.progress.stage("protect"):
                _refuse_numbers(frame, [name for name in group.variables if name in paths])
                counts = self._counts(frame, group)
                start = time.monotonic()
                steps = [_steps(counts[f"__c{j}"], paths.get(n)) for j, n in enumerate(group.variables)]
                found = self._search(counts, steps, group)
                reports[group.name] = _report(found, steps, group, counts, time.monotonic() - start)
            with job.progress.stage("reconcile"):
                published = self._published(job, frame, group, counts, steps, found)
                place.write(published, f"recoded-{group.name}", "lz4")
            frame = place.read(job.spark, f"recoded-{group.name}").select(*[column(n) for n in names])
        return frame, reports

    def _keys(self, group: Group) -> dict[str, Column]:
        region = self.specification.region
        keys = {_REGION: f.lit("") if region is None else _text(region)}
        return keys | {f"__c{j}": _text(name) for j, name in enumerate(group.variables)}

    def _counts(self, frame: DataFrame, group: Group) -> pa.Table:
        """Count the finest combinations, in their order.

        Raises
        ------
        InputRejected
            If they are too many.
        """
        keys = self._keys(group)
        counted = frame.groupBy(*[each.alias(name) for name, each in keys.items()]).agg(
            f.count(f.lit(1)).alias(_RECORDS)
        )
        counts = counted.limit(MOST_KEYS + 1).toArrow()
        if counts.num_rows > MOST_KEYS:
            raise InputRejected(
                f"{group.name}: expected at most {MOST_KEYS:,} combinations of quasi-identifiers with method "
                "recoding, found more. Publish a coarser level or bands of a variable with many values."
            )
        return counts.sort_by([(name, "ascending") for name in keys])

    def _search(self, counts: pa.Table, steps: list[list[dict[str, str]]], group: Group) -> Recoding:
        """Search the levels; the finest values of a variable are numbered in their order."""
        specification, columns, ladders = self.specification, [], []
        for j, levels in enumerate(steps):
            finest = list(levels[0])
            number = {value: i for i, value in enumerate(finest)}
            columns.append(np.array([number[value] for value in counts[f"__c{j}"].to_pylist()], np.int64))
            ladders.append(Ladder(np.array([_numbers(level, finest) for level in levels], np.int64)))
        regions = np.unique(np.asarray(counts[_REGION].to_pylist(), object).astype(str), return_inverse=True)
        records = counts[_RECORDS].to_numpy()
        lattice = Lattice(
            codes=np.column_stack(columns),
            counts=records,
            regions=regions[1].ravel(),
            ladders=tuple(ladders),
            weights=np.array([specification.variables[name].variable_weight for name in group.variables]),
            k=specification.release.k,
            measure=self._recoding.loss,
        )
        return recode(lattice, int(self._recoding.max_suppressed * int(records.sum())))

    def _published(
        self,
        job: Job,
        frame: DataFrame,
        group: Group,
        counts: pa.Table,
        steps: list[list[dict[str, str]]],
        found: Recoding,
    ) -> DataFrame:
        """Return the records at the levels that were found; suppressed ones lose all values."""
        keys = self._keys(group)
        gone = counts.filter(pa.array(found.suppressed)).select(list(keys))
        kinds = t.StructType([t.StructField(name, t.StringType()) for name in keys])
        marked = job.spark.createDataFrame(gone.to_pylist(), kinds).withColumn(_GONE, f.lit(True))
        joined = frame.withColumns(keys).join(marked, on=list(keys), how="left")
        changed = {}
        for j, (name, level) in enumerate(zip(group.variables, found.levels, strict=True)):
            value = column(name)
            if level == len(steps[j]) - 1:
                value = f.lit(None)
            elif level:
                members: dict[str, list[str]] = {}
                for finest, coarse in steps[j][level].items():
                    members.setdefault(coarse, []).append(finest)
                value = f.lit(None)
                for coarse, each in members.items():
                    value = f.when(f.col(f"__c{j}").isin(each), f.lit(coarse)).otherwise(value)
                value = f.nullif(value, f.lit(_MISSING))
            changed[name] = f.when(f.col(_GONE).isNull(), value).cast(frame.schema[name].dataType)
        return joined.select(*[changed.get(name, column(name)).alias(name) for name in frame.columns])


def _steps(values: pa.ChunkedArray, paths: Mapping[str, Sequence[str]] | None) -> list[dict[str, str]]:
    """Return for each level the category of each finest value; at the last level all are missing.

    A value that is missing in the source stays so at each level.
    """
    finest = sorted(set(values.to_pylist()))
    height = 1 if paths is None else len(next(iter(paths.values())))
    levels = [
        {each: each if level == 0 or each == _MISSING else (paths or {})[each][level] for each in finest}
        for level in range(height)
    ]
    return [*levels, dict.fromkeys(finest, _MISSING)]


def _numbers(level: Mapping[str, str], finest: Sequence[str]) -> list[int]:
    """Number the categories of a level; -1 where they are missing."""
    names = {name: i for i, name in enumerate(sorted(set(level.values()) - {_MISSING}))}
    return [names.get(level[each], -1) for each in finest]


def _refuse_numbers(frame: DataFrame, names: Sequence[str]) -> None:
    """Refuse hierarchical codes that are no text, as their parents may not be numbers.

    Raises
    ------
    InputRejected
    """
    for name in names:
        kind = frame.schema[name].dataType
        if not isinstance(kind, t.StringType):
            raise InputRejected(
                f"variables.{name}: expected a column of text with method recoding, found "
                f"{kind.simpleString()}. Write the codes as text, as their parents are published for them."
            )


def _report(
    found: Recoding, steps: list[list[dict[str, str]]], group: Group, counts: pa.Table, seconds: float
) -> BlockReports:
    levels = {
        name: (level + 1, len(each))
        for name, level, each in zip(group.variables, found.levels, steps, strict=True)
    }
    report = {
        "block": 0,
        "records": int(counts[_RECORDS].to_numpy().sum()),
        "clusters": found.classes,
        "status": "done",
        "algorithm": "lattice search" if found.optimal else "descent",
        "software": in_words(deciding_versions()),
        "objective": found.loss,
        "lower_bound": found.lower_bound,
        "gap": 1 - found.lower_bound / found.loss if found.loss else 0.0,
        "optimal": found.optimal,
        "work": {
            "nodes": found.nodes,
            "counted": found.counted,
            "suppressed": found.records,
            "levels": levels,
        },
        "seconds": seconds,
    }
    return collected([json.dumps(report)], 0)


def _text(name: str) -> Column:
    """Return a value as text."""
    return f.coalesce(column(name).cast("string"), f.lit(_MISSING))
