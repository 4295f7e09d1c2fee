"""Column names quoted for Spark, because the name of a variable may contain any character."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType


def quoted(name: str) -> str:
    """Quote a name in back-ticks, so that dots and quotes are parts of the name."""
    return "`" + name.replace("`", "``") + "`"


def column(name: str) -> Column:
    """Return the column that has exactly this name."""
    return f.col(quoted(name))


def map_in_arrow(
    frame: DataFrame, task: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: StructType
) -> DataFrame:
    """Call `DataFrame.mapInArrow` with numbered column names, because Spark parses names as expressions."""
    names = frame.columns
    numbered = frame.toDF(*[f"c{position}" for position in range(len(names))])
    return numbered.mapInArrow(lambda batches: task(batch.rename_columns(names) for batch in batches), schema)
