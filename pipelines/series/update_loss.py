"""Information loss of an update: values of the present units in the input, compared with their published
values.

The block reports of an update cover only the units whose class it creates. Retained records have no input
values, and waiting units have no published values.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple

import numpy as np
import pyarrow as pa
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.intake.fixed_point import Scale
from microguard.pipelines.intake.unit_key import UNIT
from microguard.pipelines.records.coordinates import Coordinates, numbers
from microguard.sdc.measures.moments import Moments
from pyspark import TaskContext
from pyspark.sql import DataFrame

#: Number of units whose values one task sums.
UNITS_PER_TASK = 200_000
_PART, _MOMENTS, _WEIGHT = "part", "moments", "weight"


def moments_of_present_units(
    published: DataFrame,
    incoming: DataFrame,
    scales: Mapping[str, Scale],
    records: int,
    weight: str | None = None,
) -> Moments:
    """Compute the moments of present units before and after protection; the result does not depend on the
    partitioning.

    Parameters
    ----------
    published : DataFrame
        `UNIT` and the numeric variables of every record of the release that is not superseded.
    incoming : DataFrame
        `UNIT` and the numeric variables of the input. A unit in both frames is present.
    scales : mapping of numeric variable to Scale
        Measurement units of the moments.
    records : int
        Number of records of the release, which determines the number of tasks.
    weight : str, optional
        Column of the published weight.
    """
    if not scales:
        return Moments.none(0)
    weights = [] if weight is None else [column(weight).cast("double").alias(_WEIGHT)]
    originals = incoming.select(UNIT, *[column(name).alias(f"before{i}") for i, name in enumerate(scales)])
    protected = published.select(
        UNIT, *[column(name).alias(f"after{i}") for i, name in enumerate(scales)], *weights
    )
    tasks = math.ceil(max(records, 1) / UNITS_PER_TASK)
    pairs = protected.repartition(tasks, UNIT).join(originals.repartition(tasks, UNIT), on=UNIT)
    parts = pairs.sortWithinPartitions(UNIT)

    def add_up(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        total = Moments.none(len(scales))
        for batch in batches:
            total = total + _of(batch, scales)
        context = TaskContext.get()
        assert context is not None
        content = json.dumps([array.tolist() for array in astuple(total)])
        yield pa.RecordBatch.from_pydict({_PART: [context.partitionId()], _MOMENTS: [content]})

    rows = parts.mapInArrow(add_up, f"{_PART} bigint, {_MOMENTS} string").collect()
    total = Moments.none(len(scales))
    for row in sorted(rows, key=lambda row: row[_PART]):
        total = total + Moments(*(np.array(array) for array in json.loads(row[_MOMENTS])))
    return total


def _of(batch: pa.RecordBatch, scales: Mapping[str, Scale]) -> Moments:
    """Compute the moments of a batch, without pairs in which a value is missing."""
    table, coordinates = pa.Table.from_batches([batch]), Coordinates(scales, {})
    before, after = (
        coordinates.numeric(pa.table({name: table[f"{side}{i}"] for i, name in enumerate(scales)}))
        for side in ("before", "after")
    )
    missing = np.isnan(before) | np.isnan(after)
    before[missing] = after[missing] = np.nan
    weights = numbers(table[_WEIGHT]) if _WEIGHT in table.column_names else None
    return Moments.from_values(before, after, weights)
