"""Adjust the tables of random jobs in a long-lived session, and read the published tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from microguard.pipelines import run as the_run
from microguard.pipelines.adjust import adjust
from microguard.pipelines.engine.progress import Progress
from microguard.schemas.specification.read import build_specification
from microguard.schemas.specification.tau_argus import described
from pyspark.sql import SparkSession


def adjusted(spark: SparkSession, content: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Adjust the job's table, and return the result with the paths of release and report."""

    @contextmanager
    def shared(*_: object, **__: object) -> Iterator[SparkSession]:
        yield spark

    with patch.object(the_run, "session", shared):
        specification = build_specification(described(dict(content), folder), folder)
        return adjust(specification, progress=Progress(quiet=True)).content


def published_tables(answer: Mapping[str, Any]) -> list[pd.DataFrame]:
    """Return each table of a release: its codes, and its values in the last column."""
    return [pq.read_table(path).to_pandas() for path in sorted(Path(answer["release"]).rglob("*.parquet"))]


def cells_in_evidence(answer: Mapping[str, Any]) -> pd.DataFrame:
    """Return the original and published value of each cell as floats."""
    cells = pq.read_table(Path(answer["report"]).parent / "cells.parquet").to_pandas()
    names = {"original", "published", "lower_protection", "upper_protection"} & set(cells)
    return cells.astype(dict.fromkeys(names, np.float64))


def too_near(answer: Mapping[str, Any]) -> int:
    """Count the sensitive cells whose deviation is below their protection level."""
    cells = cells_in_evidence(answer)
    sensitive = cells[cells["sensitive"]]
    change = sensitive["published"] - sensitive["original"]
    slack = 1e-9 * sensitive["original"].abs()
    far = change + slack >= sensitive["upper_protection"]
    far |= -change + slack >= sensitive["lower_protection"]
    return int((~far).sum())


def adds_up(frame: pd.DataFrame, levels: list[str], value: str, total: str = "Total") -> bool:
    """Return whether every total of a dimension is exactly the sum of its parts."""
    exact = frame.assign(**{value: [Decimal(str(each)) for each in frame[value]]})
    others = [name for name in frame.columns if name not in (*levels, value)]
    for depth, level in enumerate(levels):
        summed = (exact[levels[depth + 1 :]] == total).all(axis=1)
        keys = [*others, *levels[:depth]]
        of_parts = exact[(exact[level] != total) & summed].assign(all="")
        of_totals = exact[(exact[level] == total) & summed].assign(all="").set_index(["all", *keys])[value]
        sums = of_parts.groupby(["all", *keys])[value].agg(lambda each: sum(each, Decimal(0)))
        if not of_totals.reindex(sums.index).equals(sums):
            return False
    return True
