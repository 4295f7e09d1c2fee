"""Information loss of a night: tonight's values of the units that stand, beside their published values.

The block reports of a night cover only the units whose class is born tonight. Ghosts have no values tonight,
and of units that wait nothing is published.
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

#: Units summed up in one task.
UNITS_PER_TASK = 200_000
_PART, _MOMENTS, _WEIGHT = "part", "moments", "weight"


def standing_moments(
    published: DataFrame,
    tonight: DataFrame,
    scales: Mapping[str, Scale],
    records: int,
    weight: str | None = None,
) -> Moments:
    """Moments before and after of the units that stand, the same for any partitioning.

    Parameters
    ----------
    published : DataFrame
        `UNIT` and the numeric variables of every record of the release, superseded ones excepted.
    tonight : DataFrame
        `UNIT` and the numeric variables of tonight's input: whoever is in both stands.
    scales : mapping of numeric variable to Scale
        Units of the moments.
    records : int
        Of the release: they decide how many tasks there are.
    weight : str, optional
        What the records weigh, as published.
    """
    if not scales:
        return Moments.none(0)
    weights = [] if weight is None else [column(weight).cast("double").alias(_WEIGHT)]
    originals = tonight.select(UNIT, *[column(name).alias(f"before{i}") for i, name in enumerate(scales)])
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
    """Moments of a batch; a variable that is missing on one side does not count there."""
    table, coordinates = pa.Table.from_batches([batch]), Coordinates(scales, {})
    before, after = (
        coordinates.numeric(pa.table({name: table[f"{side}{i}"] for i, name in enumerate(scales)}))
        for side in ("before", "after")
    )
    missing = np.isnan(before) | np.isnan(after)
    before[missing] = after[missing] = np.nan
    weights = numbers(table[_WEIGHT]) if _WEIGHT in table.column_names else None
    return Moments.from_values(before, after, weights)
