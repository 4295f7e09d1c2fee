"""Tests of batches without sensitive values: batches that lack values, that waited for values, and drawn
ones.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.series.settings import ORIGIN, PATTERN, REGION
from microguard.pipelines.series.withheld_values import batches_of

from tests.pipelines.microdata import specification

pytestmark = pytest.mark.spark
ROLES = {
    "person": {"role": "unit"},
    "region": {"role": "region"},
    "income": {"role": "quasi_identifier", "kind": "numeric"},
    "diagnosis": {"role": "sensitive"},
    "wage": {"role": "sensitive"},
}
#: Regions with diagnoses and wages: one diagnosis in two spellings, wages within 1 %, many values of both.
BATCHES = {
    "one diagnosis": (["flu", " FLU"] * 8, range(1_000, 17_000, 1_000)),
    "close wages": (["flu", "gout", "burn", "none"] * 4, range(10_000, 10_016)),
    "waited": (["flu", "gout", "burn", "none"] * 4, range(1_000, 17_000, 1_000)),
    "enough": (["flu", "gout", "burn", "none"] * 4, range(1_000, 17_000, 1_000)),
    None: (["flu", "gout", "burn", "none"] * 4, range(1_000, 17_000, 1_000)),
}


def arrivals() -> pd.DataFrame:
    parts = [
        pd.DataFrame({"region": region, "diagnosis": diagnoses, "wage": np.array(wages, float)})
        for region, (diagnoses, wages) in BATCHES.items()
    ]
    return pd.concat(parts, ignore_index=True).assign(**{PATTERN: 0})


@pytest.fixture
def spec(tmp_path):
    return specification(
        tmp_path, ROLES, method={"min_diversity": 2}, publish={"series": "register"},
        input={"path": "persons.parquet"},
    )  # fmt: skip


@pytest.fixture
def frame(spark):
    return spark.createDataFrame(
        arrivals(), f"region string, diagnosis string, wage double, {PATTERN} bigint"
    )


def test_withheld_batches_lack_sensitive_values_or_waited_for_them(spark, spec, frame):
    published = frame.select("region", "diagnosis", "wage").where("region = 'enough' or region is null")
    waited = spark.createDataFrame([("waited", 0, 0)], f"{REGION} string, {PATTERN} bigint, {ORIGIN} bigint")
    batches = batches_of(frame, published, waited, spec, b"secret")
    held = {row["__stratum_region"] for row in batches.held.to_pylist()}
    assert held == {"one diagnosis", "close wages", "waited"}
    assert batches.withheld == 48
    after = batches.without_values(frame).toPandas()
    withheld = after["region"].isin(held)
    assert after.loc[withheld, ["diagnosis", "wage"]].isna().all(axis=None)
    assert after.loc[~withheld, ["diagnosis", "wage"]].notna().all(axis=None)
    assert len(after) == len(frame.toPandas())


def test_withheld_batches_are_drawn_independently_of_values_if_one_value_prevails(spec, frame):
    uniform = frame.selectExpr("region", "'flu' AS diagnosis", "wage")
    batches = batches_of(frame, uniform, None, spec, b"secret")
    assert batches.withheld == 5 * 16
