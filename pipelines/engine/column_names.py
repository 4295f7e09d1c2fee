"""Names of columns as Spark must be told them: any character is allowed in a variable's name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType


def quoted(name: str) -> str:
    """The name in back-ticks, so that dots and quotes in it are part of the name."""
    return "`" + name.replace("`", "``") + "`"


def column(name: str) -> Column:
    """The column of this very name."""
    return f.col(quoted(name))


def map_in_arrow(
    frame: DataFrame, task: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: StructType
) -> DataFrame:
    """`DataFrame.mapInArrow`, which takes names for expressions: the columns travel under numbers."""
    names = frame.columns
    numbered = frame.toDF(*[f"c{position}" for position in range(len(names))])
    return numbered.mapInArrow(lambda batches: task(batch.rename_columns(names) for batch in batches), schema)
