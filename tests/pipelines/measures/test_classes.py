"""Tests that statistics of classes from one pass over the records equal a count by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.intake.category_normalisation import with_category_code
from microguard.pipelines.measures.classes import Homogeneity, Risk, classes_of
from pyspark.sql import functions as f

from tests.pipelines.risk_by_record import individual_risk

pytestmark = pytest.mark.spark
KEYS, K = ["region", "income"], 3


def file(seed=4, n=400):
    random = np.random.default_rng(seed)
    income = random.choice([0.0, -0.0, 1.5, np.nan, 7.0], n)
    return pd.DataFrame(
        {
            "region": random.choice(["n", "s", None], n),
            "income": np.where(random.random(n) < 0.05, random.normal(size=n), income),
            "home": random.integers(0, 60, n),
            "weight": random.integers(1, 9, n) / 2.0,
            "note": random.integers(0, 40, n),
            "illness": random.choice(["a", "b", "c", None], n, p=[0.6, 0.2, 0.1, 0.1]),
        }
    )


def looked_at(spark, frame, parts, counted=None, weight=None, withholds=False, **asked):
    specification = SimpleNamespace(
        release=SimpleNamespace(k=K), counted=counted, weight=weight, withholds_values=withholds
    )
    records = spark.createDataFrame(frame).repartition(parts).where("weight < 100")
    return classes_of(records, KEYS, specification, len(frame), **asked)


def classes(frame):
    """Return classes as Spark groups them: -0.0 equals 0.0, and missing values form a group."""
    income = frame["income"].map(lambda value: "nan" if np.isnan(value) else str(value + 0.0))
    return (frame["region"].fillna("none") + " " + income).to_numpy()


@pytest.mark.parametrize("counted", [None, "home"])
def test_class_counts_equal_the_number_of_units(spark, counted):
    frame = file()
    units = frame.assign(one=classes(frame)).groupby("one")
    held = units.size() if counted is None else units["home"].nunique()
    rare = held < K
    risk = looked_at(spark, frame, 3, counted=counted).risk
    assert risk == Risk(
        len(frame), len(held), rare.sum(), units.size()[rare].sum(), (held == 1).sum(), held.min()
    )
    assert rare.any()


@pytest.mark.parametrize("weight", [None, "weight"])
def test_individual_risks_are_summed_over_classes(spark, weight):
    frame = file()
    codes = np.unique(classes(frame), return_inverse=True)[1]
    risk = individual_risk(codes, None if weight is None else frame["weight"].to_numpy())
    found = looked_at(spark, frame, 3, weight=weight)
    assert found.identified == pytest.approx(risk.sum(), rel=1e-12)
    assert found.most_exposed == pytest.approx(risk.max(), rel=1e-12)


def test_unique_records_are_counted_for_each_list_of_further_columns(spark):
    frame = file()
    further = [["note"], ["home"], ["note", "home"]]
    by_hand = tuple(
        int((frame.assign(one=classes(frame)).groupby(["one", *names]).size() == 1).sum())
        for names in further
    )
    assert looked_at(spark, frame, 3, further=further).alone == by_hand
    assert 0 < by_hand[0] < by_hand[2]


def test_records_of_one_unit_count_once_in_a_class(spark):
    frame = file()
    twice = pd.concat([frame, frame], ignore_index=True)
    groups = twice.assign(one=classes(twice)).groupby(["one", "note"])["home"]
    by_hand = groups.size()[groups.nunique() == 1].sum()
    assert looked_at(spark, twice, 3, counted="home", further=[["note"]]).alone == (by_hand,)
    assert looked_at(spark, twice, 3, further=[["note"]]).alone == (0,)
    assert by_hand > 0


def test_homogeneity_is_computed_for_every_sensitive_variable(spark):
    frame = file()
    found = looked_at(spark, frame, 3, sensitive=["illness", "home"]).homogeneity
    for name in ("illness", "home"):
        values = frame[name].astype(object).where(frame[name].notna(), "none")
        whole = values.value_counts(normalize=True)
        groups = [each.value_counts(normalize=True) for _, each in values.groupby(classes(frame))]
        sizes = [len(each) for _, each in values.groupby(classes(frame))]
        assert found[name] == Homogeneity(
            len(frame),
            sum(size for size, group in zip(sizes, groups, strict=True) if len(group) == 1),
            min(map(len, groups)),
            pytest.approx(min(np.exp(-(group * np.log(group)).sum()) for group in groups), abs=1e-8),
            pytest.approx(
                max((group - whole[group.index]).clip(lower=0).sum() for group in groups), abs=1e-8
            ),
            sum(round(size * group.max()) for size, group in zip(sizes, groups, strict=True)),
            frame[name].notna().sum(),
            frame[name].map(frame[name].value_counts()).eq(1).sum(),
            frame[name].nunique(),
        )


def test_values_of_one_unit_are_counted_with_all_of_its_records(spark):
    frame = file()
    twice = pd.concat([frame, frame], ignore_index=True).assign(
        text=lambda each: each["home"].map("t{}".format)
    )
    found = looked_at(spark, twice, 3, counted="home", sensitive=["text", "illness"]).homogeneity
    assert (found["text"].known, found["text"].once) == (len(twice), len(twice))
    assert found["text"].values == frame["home"].nunique()
    holders = twice.groupby("illness")["home"].nunique()
    assert found["illness"].once == twice["illness"].map(holders).eq(1).sum()
    assert looked_at(spark, twice, 3, sensitive=["text"]).homogeneity["text"].once == 0


def test_withheld_classes_are_not_homogeneous_and_leave_other_figures_unchanged(spark):
    frame = file().assign(illness=lambda each: each["illness"].fillna("d"))
    asked = {"sensitive": ["illness"], "weight": "weight"}
    plain = looked_at(spark, frame, 3, withholds=True, **asked).homogeneity["illness"]
    assert plain == looked_at(spark, frame, 3, **asked).homogeneity["illness"]
    held = frame.head(30).assign(income=99.0, illness=None)
    both = pd.concat([frame, held], ignore_index=True)
    counted, as_answers = (
        looked_at(spark, both, 3, withholds=each, **asked).homogeneity["illness"] for each in (True, False)
    )
    assert counted.homogeneous == plain.homogeneous == as_answers.homogeneous - 30
    assert counted.least_distinct == plain.least_distinct > as_answers.least_distinct == 0
    assert counted.guessed == plain.guessed == as_answers.guessed - 30


def test_close_numbers_make_a_class_homogeneous_and_different_dates_do_not(spark):
    frame = pd.DataFrame(
        {
            "region": np.repeat(["a", "b", "c", "d", "e"], 3),
            "income": 1.0,
            "weight": 1.0,
            "wage": [1000.01, 1000.0, 1003.0, 1000, 1500, 1000, 7, 7, 7, 1000, np.nan, 1000, 0, 0, 9e4],
            "born": [1980, 1985, 1990, *[1950] * 3, 1950, 2000, 1990, 1950, 1960, 1970, 1980, 1990, 2000],
        }
    )
    asked = {"sensitive": ["wage", "born"]}
    exactly = looked_at(spark, frame, 3, **asked).homogeneity
    # a missing value does not count as a value
    assert (exactly["wage"].homogeneous, exactly["born"].homogeneous) == (6, 3)
    numbers = {name: f.col(name).cast("double") for name in asked["sensitive"]}
    closely = looked_at(spark, frame, 3, **asked, numbers=numbers).homogeneity
    assert (closely["wage"].homogeneous, closely["born"].homogeneous) == (9, 3)
    nan = f.coalesce(f.col("wage"), f.lit(float("nan")))
    frame = spark.createDataFrame(frame).withColumn("wage", nan)
    assert with_category_code(frame, "wage", "category").where("category is null").count() == 1


def test_class_statistics_do_not_depend_on_partitions_and_are_empty_without_records(spark):
    frame, asked = file(), {"further": [["note"]], "sensitive": ["illness"], "weight": "weight"}
    first, other = (looked_at(spark, frame, parts, **asked) for parts in (1, 5))
    assert first == other
    nobody = looked_at(spark, frame.assign(weight=100.0), 1, **asked)
    assert nobody.risk == Risk(0, 0, 0, 0, 0, 0)
    assert (nobody.identified, nobody.alone) == (0.0, (0,))
