"""Sums over the records of each part of a file, computed in tasks from Arrow batches.

Ten variables need a hundred sums. Spark takes longer to compile such a query than to run it on a small file,
and on a large file the query takes three times as long as the tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.tasks import without_values
from microguard.pipelines.intake.fixed_point import (
    fixed_point_columns,
    fixed_point_sums,
    totals_from_fixed_point,
)
from pyspark.sql import Column, DataFrame
from pyspark.sql import types as t

_RECORDS = "records"
#: Number of partial sums that a task stores before it adds them up.
_HELD = 64
#: Aggregates by which the results of parts are combined.
_COMBINED = {"sum": "sum", "count": "sum", "min": "min", "max": "max"}


def part_sums(
    frame: DataFrame,
    keys: Mapping[str, Column],
    magnitude: Mapping[str, float],
    weights: Sequence[str] = (),
    further: Mapping[str, tuple[Column, str]] | None = None,
) -> pa.Table:
    """Return the sums of each part of the records, in the order of the keys.

    Parameters
    ----------
    frame : DataFrame
        Its numeric variables are finite or missing.
    keys : mapping of name to Column
        Columns whose combinations of values define the parts.
    magnitude : mapping of numeric variable to its largest absolute value
    weights : sequence of str
    further : mapping of result to (Column, "min", "max" or "sum")

    Returns
    -------
    pyarrow.Table
        The keys, ``records``, the sums of `scales_from_sums` and of `totals_from_sums`, and `further`.
    """
    further = further or {}
    numbers = {f"x{i}": column(name).cast("double") for i, name in enumerate(magnitude)}
    numbers |= {f"w{j}": column(name).cast("double") for j, name in enumerate(weights)}
    given = {**keys, **numbers, **{name: each for name, (each, _) in further.items()}}
    aggregates = fixed_point_sums(len(magnitude)) | _weighted_sums(len(magnitude), len(weights))
    aggregates |= {name: (name, aggregate) for name, (_, aggregate) in further.items()}
    selected = frame.select(*[each.alias(name) for name, each in given.items()])
    of = _Sums(tuple(keys), tuple(magnitude.values()), len(weights), aggregates)
    whole = t.LongType()
    fields = [t.StructField(name, selected.schema[name].dataType) for name in keys]
    fields.append(t.StructField(_RECORDS, whole))
    for name in aggregates:
        kind = selected.schema[name].dataType if name in further else whole
        fields.append(t.StructField(name, t.DoubleType() if name.startswith("w") else kind))
    parts = selected.mapInArrow(of.task, t.StructType(fields)).toArrow()
    return _with_totals(of.combined([parts]).sort_by([(key, "ascending") for key in keys]), magnitude)


class _Sums:
    """Sums that a task computes over its records; `aggregates` maps each result to a column and an
    aggregate.
    """

    def __init__(
        self,
        keys: tuple[str, ...],
        magnitudes: tuple[float, ...],
        weights: int,
        aggregates: dict[str, tuple[str, str]],
    ) -> None:
        self.keys, self.magnitudes, self.weights, self.aggregates = keys, magnitudes, weights, aggregates

    def task(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the sums of all batches."""
        parts: list[pa.Table] = []
        with without_values():
            for batch in batches:
                parts.append(self._summed(batch))
                if len(parts) > _HELD:
                    parts = [self.combined(parts)]
            if parts:
                yield from self.combined(parts).combine_chunks().to_batches()

    def combined(self, parts: Sequence[pa.Table]) -> pa.Table:
        """Add up the sums of some parts of the records."""
        results = {name: (name, _COMBINED[aggregate]) for name, (_, aggregate) in self.aggregates.items()}
        return _grouped(pa.concat_tables(parts), self.keys, {_RECORDS: (_RECORDS, "sum")} | results)

    def _summed(self, batch: pa.RecordBatch) -> pa.Table:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        weights = [_numbers(columns.pop(f"w{j}")) for j in range(self.weights)]
        for i, magnitude in enumerate(self.magnitudes):
            values = _numbers(columns.pop(f"x{i}"))
            columns |= fixed_point_columns(i, values, magnitude)
            missing = np.isnan(values)
            for j, weight in enumerate(weights):
                columns[f"w{j}n{i}"] = pa.array(weight, mask=missing | np.isnan(weight))
                columns[f"w{j}s{i}"] = pa.array(weight * values, mask=missing | np.isnan(weight))
        return _grouped(pa.table(columns), self.keys, {_RECORDS: ("", "count_all")} | self.aggregates)


def _with_totals(parts: pa.Table, magnitude: Mapping[str, float]) -> pa.Table:
    """Add the unweighted sums of `totals_from_sums`, which are computed from the fixed-point sums."""
    for i, largest in enumerate(magnitude.values()):
        counts, totals = totals_from_fixed_point(parts, i, largest)
        parts = parts.append_column(f"n{i}", pa.array(counts)).append_column(f"s{i}", pa.array(totals))
    return parts


def _weighted_sums(numbers: int, weights: int) -> dict[str, tuple[str, str]]:
    names = [f"w{j}{sum_}{i}" for i in range(numbers) for j in range(weights) for sum_ in "ns"]
    return {name: (name, "sum") for name in names}


def _grouped(table: pa.Table, keys: Sequence[str], aggregates: Mapping[str, tuple[str, str]]) -> pa.Table:
    """Group a table by its keys, and name each aggregate by its result."""
    asked = [([name] if name else [], aggregate) for name, aggregate in aggregates.values()]
    found = table.group_by(list(keys), use_threads=False).aggregate(asked)
    names = ["_".join([*columns, aggregate]) for columns, aggregate in asked]
    return found.select([*keys, *names]).rename_columns([*keys, *aggregates])


def _numbers(values: pa.Array) -> np.ndarray:
    return pc.fill_null(values, np.nan).to_numpy(zero_copy_only=False)
