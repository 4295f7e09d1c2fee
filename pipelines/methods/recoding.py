"""Recoding on Spark: key combinations are counted once, then their counts are searched in the driver.

A hierarchical variable has the levels of its file, starting at the level that the specification names. Every
variable can also be suppressed completely. All records are published at the same levels, except suppressed
ones.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.intake.recode import coarser, hierarchy_paths
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.pipelines.job import Job
from microguard.pipelines.measures.block_reports import BlockReports, collected
from microguard.pipelines.methods.coarsening import MISSING, RECORDS, REGION, Coarsening, report
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.sections import Group
from microguard.sdc.algorithms.record_methods import RecodingParameters
from microguard.sdc.recoding import Ladder, Lattice, Recoding, recode
from microguard.sdc.recoding.search import MOST_NODES
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

#: Maximum number of combinations whose counts fit into the driver's memory.
MOST_KEYS = 5_000_000
_GONE = "__gone"
#: Name of the protected records in the staging area.
_TARGET = "recoded"


class RecodingMethod(Coarsening):
    """Recoding: each variable is published at one level of its hierarchy, and remaining rare combinations are
    suppressed.
    """

    limits = (
        "All values of a variable are published at one level of its hierarchy. A variable without any value "
        "was suppressed altogether.",
        "Records without any value of the quasi-identifiers had rare combinations, or their values are "
        "missing in the source.",
    )

    @property
    def _recoding(self) -> RecodingParameters:
        assert isinstance(self.parameters, RecodingParameters)
        return self.parameters

    def protect(
        self, job: Job, screened: ValidatedInput, frame: DataFrame, release_id: str
    ) -> tuple[DataFrame, Mapping[str, BlockReports]]:
        """Search the levels, recode the records, and write them to files."""
        place, group = job.areas.staging_area(release_id, "resume"), self.group
        paths = hierarchy_paths(self.specification)
        with job.progress.stage("protect"):
            _refuse_numbers(frame, [name for name in group.variables if name in paths])
            counts = self._counts(frame)
            start = time.monotonic()
            steps = [_steps(counts[f"__c{j}"], paths.get(n)) for j, n in enumerate(group.variables)]
            found = self._search(counts, steps)
            reports = _report(found, steps, group, counts, time.monotonic() - start)
        with job.progress.stage("reconcile"):
            gone = counts.filter(pa.array(found.suppressed)).select(list(self.keys()))
            place.write(self._published(frame, gone, paths, found.levels), _TARGET, "lz4")
        protected = place.read(job.spark, _TARGET).select(*[column(name) for name in frame.columns])
        return protected, {group.name: reports}

    def _counts(self, frame: DataFrame) -> pa.Table:
        """Count the finest combinations, in a reproducible order.

        Raises
        ------
        InputRejected
            If there are too many combinations.
        """
        keys = self.keys()
        counted = frame.groupBy(*[each.alias(name) for name, each in keys.items()]).agg(
            f.count(f.lit(1)).alias(RECORDS)
        )
        counts = counted.limit(MOST_KEYS + 1).toArrow()
        if counts.num_rows > MOST_KEYS:
            raise InputRejected(
                f"{self.group.name}: expected at most {MOST_KEYS:,} combinations of quasi-identifiers with "
                "method recoding, found more. Publish a coarser level of a variable with many values, or "
                "recode it into bands."
            )
        return counts.sort_by([(name, "ascending") for name in keys])

    def _search(self, counts: pa.Table, steps: list[list[dict[str, str]]]) -> Recoding:
        """Search the levels; the finest values of each variable are numbered in ascending order."""
        specification, columns, ladders = self.specification, [], []
        for j, levels in enumerate(steps):
            finest = list(levels[0])
            number = {value: i for i, value in enumerate(finest)}
            columns.append(np.array([number[value] for value in counts[f"__c{j}"].to_pylist()], np.int64))
            ladders.append(Ladder(np.array([_numbers(level, finest) for level in levels], np.int64)))
        regions = np.unique(np.asarray(counts[REGION].to_pylist(), object).astype(str), return_inverse=True)
        records = counts[RECORDS].to_numpy()
        lattice = Lattice(
            codes=np.column_stack(columns),
            counts=records,
            regions=regions[1].ravel(),
            ladders=tuple(ladders),
            weights=np.array(
                [specification.variables[name].variable_weight for name in self.group.variables]
            ),
            k=specification.release.k,
            measure=self._recoding.loss,
        )
        return recode(lattice, int(self._recoding.max_suppressed * int(records.sum())))

    def _published(
        self,
        frame: DataFrame,
        gone: pa.Table,
        paths: Mapping[str, Mapping[str, Sequence[str]]],
        levels: Sequence[int],
    ) -> DataFrame:
        """Return the records at their published levels; records whose keys are in `gone` lose all values."""
        keys, changed = self.keys(), {}
        # Spark Connect cannot infer a schema from a table without rows
        kinds = t.StructType([t.StructField(name, t.StringType()) for name in keys])
        marked = frame.sparkSession.createDataFrame(gone, kinds).withColumn(_GONE, f.lit(True))
        joined = frame.withColumns(keys).join(marked, on=list(keys), how="left")
        for name, level in zip(self.group.variables, levels, strict=True):
            value, path = column(name), paths.get(name, {})
            if level == _height(path):
                value = f.lit(None)
            elif level:
                value = coarser(value, {finest: parents[level] for finest, parents in path.items()})
            changed[name] = f.when(f.col(_GONE).isNull(), value).cast(frame.schema[name].dataType)
        return joined.select(*[changed.get(name, column(name)).alias(name) for name in frame.columns])


def _steps(values: pa.ChunkedArray, paths: Mapping[str, Sequence[str]] | None) -> list[dict[str, str]]:
    """Return for each level the category of each finest value; at the last level all values are missing.

    A value that is missing in the source is missing at each level.
    """
    finest = sorted(set(values.to_pylist()))
    levels = [
        {each: each if level == 0 or each == MISSING else (paths or {})[each][level] for each in finest}
        for level in range(_height(paths or {}))
    ]
    return [*levels, dict.fromkeys(finest, MISSING)]


def _height(paths: Mapping[str, Sequence[str]]) -> int:
    """Return the number of levels of the hierarchy (1 without one); an additional level has no values."""
    return len(next(iter(paths.values()))) if paths else 1


def _numbers(level: Mapping[str, str], finest: Sequence[str]) -> list[int]:
    """Number the categories of a level; -1 for missing values."""
    names = {name: i for i, name in enumerate(sorted(set(level.values()) - {MISSING}))}
    return [names.get(level[each], -1) for each in finest]


def _refuse_numbers(frame: DataFrame, names: Sequence[str]) -> None:
    """Refuse hierarchical codes that are not text, because their parent codes may not be numbers.

    Raises
    ------
    InputRejected
    """
    for name in names:
        kind = frame.schema[name].dataType
        if not isinstance(kind, t.StringType):
            raise InputRejected(
                f"variables.{name}: expected a column of text with method recoding, because parent codes "
                f"are published in it; found {kind.simpleString()}. Write the codes as text."
            )


def _report(
    found: Recoding, steps: list[list[dict[str, str]]], group: Group, counts: pa.Table, seconds: float
) -> BlockReports:
    levels = {
        name: (level + 1, len(each))
        for name, level, each in zip(group.variables, found.levels, steps, strict=True)
    }
    solved = report(
        records=int(counts[RECORDS].to_numpy().sum()),
        clusters=found.classes,
        algorithm="lattice search" if found.nodes <= MOST_NODES else "descent",
        objective=found.loss,
        lower_bound=found.lower_bound,
        optimal=found.optimal,
        work={
            "nodes": found.nodes,
            "counted": found.counted,
            "suppressed": found.records,
            "levels": levels,
        },
        seconds=seconds,
    )
    return collected([json.dumps({"block": 0, **solved})], 0)
