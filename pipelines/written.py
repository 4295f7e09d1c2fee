"""Verify the promise on the files as they were written, by a count that shares nothing with the method."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from pipelines.columns import column
from pipelines.publish import Staged, content
from schemas.specification import Specification


@dataclass(frozen=True)
class Written:
    """What the files of a staged release say.

    Attributes
    ----------
    records : int
    smallest_class, classes : dict of clustering name to int
        Least number of records that share a combination of its quasi-identifiers and the region; number
        of such combinations.
    as_staged : bool
        Whether the files hold exactly the records that were handed to the stage.
    as_declared : bool
        Whether every file has exactly the columns and types of the contract.
    """

    records: int
    smallest_class: dict[str, int]
    classes: dict[str, int]
    as_staged: bool
    as_declared: bool

    def metrics(self) -> pd.DataFrame:
        """One row per metric: metric, variable (name of the clustering), dimension, value."""
        rows: list[tuple[str, str | None, float]] = [
            ("records_published", None, self.records),
            ("content_as_staged", None, float(self.as_staged)),
            ("columns_as_declared", None, float(self.as_declared)),
        ]
        for name, size in self.smallest_class.items():
            rows.append(("smallest_class", name, size))
            rows.append(("classes", name, self.classes[name]))
        frame = pd.DataFrame(rows, columns=["metric", "variable", "value"]).astype({"value": float})
        frame["dimension"] = pd.Series(pd.NA, index=frame.index, dtype="Int64")
        return frame[["metric", "variable", "dimension", "value"]]


def verify_written(spark: SparkSession, staged: Staged, specification: Specification) -> Written:
    """Read the staged files back and count.

    NULL, NaN and -0.0 are counted as Spark groups them (each its own value; -0.0 is 0.0); texts are
    compared byte by byte, so that two Unicode forms of a text are two values here as in the method.
    """
    frame = spark.read.parquet(str(staged.folder / "microdata")).select(
        [column(name) for name in staged.contract.names]
    )
    smallest, classes = {}, {}
    for clustering in specification.clusterings:
        keys = [column(name) for name in clustering.variables]
        if specification.region is not None:
            keys.append(column(specification.region))
        row = (
            frame.groupBy(*keys)
            .agg(f.count(f.lit(1)).alias("records"))
            .agg(f.min("records").alias("smallest"), f.count(f.lit(1)).alias("classes"))
            .first()
        )
        assert row is not None
        smallest[clustering.name] = int(row["smallest"] or 0)
        classes[clustering.name] = int(row["classes"])
    found = content(frame)
    declared = [(entry.name, entry.type) for entry in staged.contract.schema]
    as_declared = all(
        [(entry.name, entry.type) for entry in pq.read_schema(path)] == declared for path in staged.microdata
    )
    return Written(
        found[0], smallest, classes, found == staged.content, as_declared and bool(staged.microdata)
    )
