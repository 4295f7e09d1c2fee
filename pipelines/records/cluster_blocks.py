"""Microaggregation in Spark tasks, with Arrow tables as input and output; no other module calls the methods
from Spark.

Each block arrives whole, sorted by its content.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
from microguard.pipelines.records.block import BEFORE, CLUSTER, protect_block
from microguard.pipelines.records.block_config import BlockConfig
from microguard.pipelines.records.blocks import BLOCK
from microguard.sdc.measures.moments import Moments
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema


def cluster_blocks(
    batches: Iterable[pa.RecordBatch], clustering: BlockConfig, schema: t.StructType
) -> Iterator[tuple[pa.Table, str]]:
    """Protect the blocks of a partition; yield each block with its report, then the moments of all blocks.

    Parameters
    ----------
    batches : iterable of RecordBatch
        Blocked records: sorted by `BLOCK`.
    clustering : BlockConfig
    schema : StructType
        From `protected_schema`.

    Yields
    ------
    (Table, str)
        The clustering's variables replaced by representatives, and a report in JSON. A block that failed, and
        the moments, have no records.
    """
    columns = to_arrow_schema(schema)
    moments = Moments.none(len(clustering.numeric))
    first = None
    for block in blocks_of(batches):
        first = block[BLOCK][0].as_py() if first is None else first
        for records, margins in _within_limit(block, clustering):
            protected, report, of_block = protect_block(records, clustering, margins)
            moments = moments if of_block is None else moments + of_block
            table = protected.cast(columns) if len(protected) else columns.empty_table()
            yield table, json.dumps(report, sort_keys=True)
    if first is not None and clustering.numeric:
        listed = [getattr(moments, name).tolist() for name in moments.__dataclass_fields__]
        yield columns.empty_table(), json.dumps({"first_block": first, "moments": listed})


def _within_limit(block: pa.Table, clustering: BlockConfig) -> Iterator[tuple[pa.Table, np.ndarray | None]]:
    """Return a block (or its parts, if it is too large) with the margins of each part."""
    if len(block) <= clustering.plan.most:
        yield block, None
        return
    # imported here, because few runs need it
    from microguard.pipelines.records.block_cuts import cut_to_limit

    for part in cut_to_limit(block, clustering):
        yield part.records, part.margins


def protected_schema(blocked: t.StructType, clustering: BlockConfig) -> t.StructType:
    """Return the schema of protected records: the blocked columns, and the columns stored with them."""
    beside: list[tuple[str, t.DataType]] = []
    if clustering.jointly:
        types = {entry.name: entry.dataType for entry in blocked}
        beside = [(CLUSTER, t.LongType())]
        beside += [(f"{BEFORE}{place}", types[name]) for place, name in enumerate(clustering.nominal)]
    columns = [(entry.name, entry.dataType) for entry in blocked]
    return t.StructType([t.StructField(name, kind, True) for name, kind in columns + beside])


def blocks_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Split batches that are sorted by block into one table for each block; a block may extend over several
    batches.
    """
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
