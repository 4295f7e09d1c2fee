"""Totals of numeric variables by region, weighted or not: what means and their changes are computed from."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import pyarrow as pa
from microguard.pipelines.engine.column_names import column
from pyspark.sql import Column
from pyspark.sql import functions as f


def total_sums(names: Sequence[str], weights: Sequence[str]) -> list[Column]:
    """Numbers and sums of the values that are there.

    ``ni``, ``si`` of the variable at i; ``wjni``, ``wjsi`` by the weight at j.
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
    """The `total_sums` of each region, from those of the parts of a file, a row each, in order.

    Parameters
    ----------
    region : str
        The column of `parts` that holds it; where there is none, the file is one region.
    """
    values = parts.to_pandas()
    by_region = values[region] if region in values else pd.Series("", index=values.index)
    weighted = ("", *(f"w{j}" for j in range(len(weights))))
    sums = [f"{prefix}{sum_}{i}" for i in range(len(names)) for prefix in weighted for sum_ in "ns"]
    return values[sums].groupby(by_region, dropna=False).sum(min_count=1)
