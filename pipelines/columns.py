"""Names of columns as Spark must be told them: any character is allowed in a variable's name."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as f


def quoted(name: str) -> str:
    """The name in back-ticks, so that dots and quotes in it are part of the name."""
    return "`" + name.replace("`", "``") + "`"


def column(name: str) -> Column:
    """The column of this very name."""
    return f.col(quoted(name))
