"""Reassignments: records of a key combination that receive the values of another one.

The records of a key combination are ordered by content. The first records keep their values; the surplus
records get the values of the key combinations to which they flow. Flows are written once to the staging area
and joined to the records by key combination. A task needs only the flows of the key combinations of its own
records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.row_hash import DIGESTS, content_order, digest, with_hash
from microguard.pipelines.measures.pairs import drawn_order
from microguard.pipelines.publication.staging.staging_area import Part, StagingArea, part_file
from microguard.pipelines.records.combinations import Combinations, keys_of
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.sections import Group
from microguard.sdc.nominal.transport import transport
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema

#: Column with the rank of a record among the records of its key combination, from 1.
_RANK = "__rank"
#: Columns of the ranks covered by a reassignment: (above, last].
_ABOVE, _LAST = "__above", "__last"
#: Column with the digest of the key combination from which records are reassigned.
_LEFT = ("__left0", "__left1")
#: Number of reassignments whose values are decoded and written at a time.
_ROWS = 200_000


def carried_back(frame: DataFrame, group: Group, specification: Specification, moves: DataFrame) -> DataFrame:
    """Replace the values of each record by those of the key combination to which it is reassigned.

    Parameters
    ----------
    moves : DataFrame
        The frame written by `write_moves`.
    """
    names, keys = list(group.variables), keys_of(group, specification)
    published = [name for name in frame.columns if name in specification.published]
    order = [*content_order(frame, published), *drawn_order(frame)]
    ranked = (
        with_hash(frame, published)
        .select("*", *digest(keys))
        .withColumn(_RANK, f.row_number().over(Window.partitionBy(*DIGESTS).orderBy(*order)))
    )
    same = [f.col(mine) == f.col(left) for mine, left in zip(DIGESTS, _LEFT, strict=True)]
    within = (f.col(_RANK) > f.col(_ABOVE)) & (f.col(_RANK) <= f.col(_LAST))
    moved = f.col(_LAST).isNotNull()
    types = {field.name: field.dataType for field in frame.schema}
    fresh = {
        name: f.when(moved, f.col(_taken(j)).cast(types[name])).otherwise(_own(name, types[name])).alias(name)
        for j, name in enumerate(names)
    }
    return ranked.join(moves, on=[*same, within], how="left").select(
        *[fresh.get(name, column(name)) for name in frame.columns]
    )


def moves_schema(categories: Sequence[pa.Array]) -> t.StructType:
    """Return the schema of reassignments, for variables with these values."""
    return from_arrow_schema(_columns(categories))


def write_moves(
    place: StagingArea, name: str, number: int, collapsed: Combinations, counts: np.ndarray
) -> Part:
    """Write the flows between key combinations: one row for each flow, with the values that its records
    receive.

    The records that keep their combination have the lowest ranks. The flows follow in the order of their
    target combinations.

    Parameters
    ----------
    counts : (m,) int64 array
        Protected counts of the combinations.
    """
    frequencies = collapsed.frequencies
    flows = transport(frequencies, counts, collapsed.similarity)
    stay = np.minimum(frequencies.counts, counts)
    until = np.cumsum(flows.count)
    # index of the first flow with the same origin
    of_combination = np.searchsorted(flows.origin, flows.origin)
    above = stay[flows.origin] + (until - flows.count) - (until - flows.count)[of_combination]
    schema = _columns(collapsed.categories)

    def write(file: BinaryIO) -> None:
        with pq.ParquetWriter(file, schema) as writer:
            for start in range(0, len(until), _ROWS):
                part = slice(start, start + _ROWS)
                left, codes = collapsed.digests[flows.origin[part]], frequencies.codes[flows.target[part]]
                taken = [values.take(pa.array(codes[:, j])) for j, values in enumerate(collapsed.categories)]
                ranks = [above[part], above[part] + flows.count[part]]
                writer.write_table(pa.table([left[:, 0], left[:, 1], *ranks, *taken], schema=schema))

    return place.write_part(name, part_file(number), write)


def _columns(categories: Sequence[pa.Array]) -> pa.Schema:
    return pa.schema(
        [
            *((name, pa.int64()) for name in (*_LEFT, _ABOVE, _LAST)),
            *((_taken(j), values.type) for j, values in enumerate(categories)),
        ]
    )


def _own(name: str, kind: t.DataType) -> Column:
    """Return the value of a record that is not reassigned; -0.0 becomes 0.0, as in its key combination."""
    floating = isinstance(kind, t.FloatType | t.DoubleType)
    return column(name) + f.lit(0.0).cast(kind) if floating else column(name)


def _taken(position: int) -> str:
    """Return the name of the column with the values that a variable receives by a reassignment."""
    return f"__taken{position}"
