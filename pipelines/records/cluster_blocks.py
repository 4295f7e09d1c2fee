"""Protect by cluster: the one seam from Spark to the methods. Arrow in, Arrow out, one call per block.

A block arrives whole, in an order that its content decides.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from pipelines.engine.column_names import map_in_arrow
from pipelines.records.block import BEFORE, CLUSTER, protect_block
from pipelines.records.blocks import BLOCK
from pipelines.records.clustering_task import ClusteringTask
from sdc.measures.moments import Moments

#: Report of a block, on its first record; the moments of a partition, on a line of their own.
REPORT = "__report"


def cluster_blocks(frame: DataFrame, clustering: ClusteringTask) -> DataFrame:
    """Protected records with `BLOCK` and `REPORT`.

    Parameters
    ----------
    frame : DataFrame
        Blocked records: sorted by `BLOCK` within partitions.
    clustering : ClusteringTask

    Returns
    -------
    DataFrame
        The same columns and types, the clustering's variables replaced by representatives. A row whose
        `BLOCK` is NULL holds a report only: moments of a partition, or why a block failed.
    """
    beside: list[tuple[str, t.DataType]] = [(CLUSTER, t.LongType())] if clustering.jointly else []
    if clustering.jointly:
        types = {entry.name: entry.dataType for entry in frame.schema}
        beside += [(f"{BEFORE}{place}", types[name]) for place, name in enumerate(clustering.nominal)]
    schema = t.StructType(
        [t.StructField(entry.name, entry.dataType, True) for entry in frame.schema]
        + [t.StructField(name, kind, True) for name, kind in beside]
        + [t.StructField(REPORT, t.StringType(), True)]
    )

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        moments = Moments.none(len(clustering.numeric))
        first = None
        for block in blocks_of(batches):
            first = block.slice(0, 1) if first is None else first
            protected, report, of_block = protect_block(block, clustering)
            moments = moments if of_block is None else moments + of_block
            yield from _reported(_widened(protected, clustering), report).to_batches()
        if first is not None and clustering.numeric:
            row = {
                "first_block": first[BLOCK][0].as_py(),
                "moments": [getattr(moments, name).tolist() for name in moments.__dataclass_fields__],
            }
            yield from _reported(_widened(first.slice(0, 0), clustering), row).to_batches()

    return map_in_arrow(frame, task, schema)


def blocks_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Tables of one block each, from batches sorted by block; a block may straddle batches."""
    parts: list[pa.RecordBatch] = []
    current = None
    for batch in batches:
        ids = batch.column(batch.schema.get_field_index(BLOCK)).to_numpy()
        starts = np.concatenate([[0], np.flatnonzero(ids[1:] != ids[:-1]) + 1, [len(ids)]])
        for start, stop in pairwise(starts):
            if start == stop:
                continue
            if current is not None and ids[start] != current:
                yield pa.Table.from_batches(parts)
                parts = []
            current = ids[start]
            parts.append(batch.slice(start, stop - start))
    if parts:
        yield pa.Table.from_batches(parts)


def _widened(table: pa.Table, clustering: ClusteringTask) -> pa.Table:
    """A table with the columns of `_with_clusters`; one that lacks them has no records."""
    if not clustering.jointly or CLUSTER in table.column_names:
        return table
    table = table.append_column(CLUSTER, pa.array([], pa.int64()))
    for place, name in enumerate(clustering.nominal):
        table = table.append_column(f"{BEFORE}{place}", table[name])
    return table


def _reported(table: pa.Table, report: Mapping[str, Any]) -> pa.Table:
    """Add the report to the first record, or as a line of its own where there is none."""
    rows = max(len(table), 1)
    schema = pa.schema([pa.field(each.name, each.type) for each in table.schema] + [(REPORT, pa.string())])
    texts = pa.concat_arrays(
        [pa.array([json.dumps(report, sort_keys=True)]), pa.nulls(rows - 1, pa.string())]
    )
    columns = table.columns if len(table) else [pa.nulls(1, each.type) for each in table.schema]
    return pa.table([*columns, texts], schema=schema)
