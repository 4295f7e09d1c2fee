"""Unweighted and weighted totals of numeric variables by region, from which means are computed."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import pyarrow as pa
from microguard.pipelines.engine.column_names import column
from pyspark.sql import Column
from pyspark.sql import functions as f


def total_sums(names: Sequence[str], weights: Sequence[str]) -> list[Column]:
    """Return the aggregates of the values that are not missing: their number and their sum.

    The columns are ``ni`` and ``si`` for variable i, and ``wjni`` and ``wjsi`` with weight j.
    """
    sums = []
    for i, name in enumerate(names):
        x = column(name).cast("double")
        sums += [f.count(x).cast("double").alias(f"n{i}"), f.sum(x).alias(f"s{i}")]
        for j, weight in enumerate(weights):
            w = column(weight).cast("double")
            sums += [f.sum(f.when(x.isNotNull(), w)).alias(f"w{j}n{i}"), f.sum(w * x).alias(f"w{j}s{i}")]
    return sums


def totals_from_sums(
    parts: pa.Table, region: str, names: Sequence[str], weights: Sequence[str]
) -> pd.DataFrame:
    """Sum the `total_sums` of the parts of a file by region, in the order of the parts.

    Parameters
    ----------
    parts : pyarrow.Table
        One row of `total_sums` for each part.
    region : str
        Name of the region column; if `parts` lacks it, the whole file is one region.

    Returns
    -------
    pandas.DataFrame
        One row for each region.
    """
    weighted = ("", *(f"w{j}" for j in range(len(weights))))
    sums = [f"{prefix}{sum_}{i}" for i in range(len(names)) for prefix in weighted for sum_ in "ns"]
    values = parts.select([*(name for name in parts.column_names if name == region), *sums]).to_pandas()
    by_region = values[region] if region in values else pd.Series("", index=values.index)
    return values[sums].groupby(by_region, dropna=False).sum(min_count=1)
