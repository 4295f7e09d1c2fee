"""Tests of corrected values: only whole classes get new values, and the updates determine no value."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.intake.unit_key import UNIT
from microguard.pipelines.joint_audit import audit_source
from microguard.pipelines.series.corrected_values import original_values, with_earlier_values
from microguard.pipelines.series.settings import ORIGIN, VERSION
from pyspark.sql import functions as f

from tests.pipelines.series.test_register import Series, population, rows

pytestmark = pytest.mark.spark


def clustered(spark, number, origin, before, published):
    """Return the incomes of the units 1, 2, ... of one class before protection, and their published mean."""
    frame = pd.DataFrame({"income": before})
    frame[UNIT] = [bytearray([unit + 1]) for unit in range(len(before))]
    frame = frame.assign(**{VERSION: number, ORIGIN: origin})
    records = spark.createDataFrame(
        frame[[UNIT, VERSION, ORIGIN, "income"]],
        f"{UNIT} binary, {VERSION} int, {ORIGIN} bigint, income double",
    )
    return records.select("*", *original_values(["income"])).withColumn("income", f.lit(published))


CASES = {
    "all new": ([4.0, 5.0, 9.0], 6.0),
    "none new": ([1.0, 2.0, 3.0], 2.0),
    "one new": ([1.0, 2.0, 9.0], 2.0),
    "one of them as long ago": ([0.0, 5.0, 9.0], 2.0),
}


@pytest.mark.parametrize("case", CASES)
def test_class_of_corrected_units_gets_new_values_only_if_all_units_have_new_values(spark, case):
    before, expected = CASES[case]
    nights = [clustered(spark, 0, 0, [0.0, 0.5, 0.7], 0.4), clustered(spark, 2, 7, [1.0, 2.0, 3.0], 2.0)]
    births = nights[0].unionByName(nights[1])
    tonight = clustered(spark, 3, 8, before, 6.0)
    others = clustered(spark, 0, 0, [1.0, 2.0, 3.0], 8.0).withColumn(UNIT, f.concat(UNIT, UNIT))
    found = with_earlier_values(tonight.unionByName(others), births, ["income"], ["income"])
    numbers = {(row[ORIGIN], row["income"]) for row in found.collect()}
    assert numbers == {(8, expected), (0, 8.0)}


def test_unknown_original_values_are_treated_as_possibly_equal(spark):
    births = clustered(spark, 0, 0, [1.0, 2.0, 3.0], 2.0)
    births = births.withColumn(births.columns[-1], f.lit(None).cast("bigint"))
    found = with_earlier_values(clustered(spark, 3, 8, [4.0, 5.0, 9.0], 6.0), births, ["income"], ["income"])
    assert {row["income"] for row in found.collect()} == {2.0}


def solved(nights, published):
    """Return the units whose income follows from the means of all updates, for a reader who follows every
    row.
    """
    incomes, equations = nights[0].set_index("person")["income"], []
    for night, release in zip(nights, published, strict=True):
        alike = release.merge(night[["person", "weight"]], on="weight").groupby(["region", "sex", "income"])
        for (_, _, mean), members in alike:
            row = pd.Series(0.0, incomes.index)
            row[members["person"]] = members["weight"].to_numpy() / members["weight"].sum()
            equations.append((row.to_numpy(), mean))
    matrix, means = np.array([row for row, _ in equations]), np.array([mean for _, mean in equations])
    found = np.linalg.lstsq(matrix, means, rcond=1e-6)[0]
    return (np.abs(found - incomes) <= 0.01 * incomes).sum()


@pytest.mark.long
def test_weights_that_change_at_every_update_disclose_no_income(spark, tmp_path):
    series, random = Series(spark, tmp_path, changes="republish"), np.random.default_rng(5)
    people, nights, published = population(30), [], []
    for night in range(4):
        weight = people["weight"] * random.uniform(0.8, 1.25, len(people)) if night else people["weight"]
        nights.append(people.assign(weight=weight))
        release_id = series.night(nights[-1])["release_id"]
        published.append(rows(series.areas.public.release(release_id)))
    assert published[0].merge(published[3], on="weight").empty
    assert len(published[3]) >= 26
    assert solved(nights[:1], published[:1]) >= solved(nights, published) - 2
    assert audit_source(series.spec).content["determined_values"] == 0
