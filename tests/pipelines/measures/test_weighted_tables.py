"""Tests of errors of weighted control tables, against groups and sums in pandas."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.weighted_tables import WeightedTablesMeasure

from tests.pipelines.microdata import ROLES, specification

VARIABLES = {
    "region": ROLES["region"],
    "sex": ROLES["sex"],
    "age": {"role": "quasi_identifier", "kind": "nominal"},
    "weight": {"role": "weight"},
    "second": {"role": "weight"},
}
TYPES = "region string, sex string, age smallint, weight double, second double"


def records(n, seed):
    """Return records with categories and second weights, some of them missing or zero."""
    rng = np.random.default_rng(seed)
    age = pd.array(rng.integers(18, 22, n), "Int16")
    age[rng.random(n) < 0.1] = pd.NA
    second = np.where(rng.random(n) < 0.3, 0.0, rng.gamma(2.0, 3.0, n))
    return pd.DataFrame(
        {
            "region": rng.choice(["n", "s", "w"], n),
            "sex": rng.choice(["f", "m", None], n, p=[0.5, 0.4, 0.1]),
            "age": age,
            "weight": rng.gamma(2.0, 50.0, n),
            "second": np.where(rng.random(n) < 0.1, np.nan, second),
        }
    )


def moved(before):
    """Return the same records, some with another category; a record that moves keeps its weights."""
    after = before.copy()
    after.loc[::7, "sex"] = "f"
    after.loc[(after["age"] == 21).fillna(False), "age"] = 20
    return after


def errors_by_hand(before, after, tables, weight):
    """Return the largest and mean absolute and relative errors over all cells of some tables."""
    errors, relative = [], []
    for table in tables:
        old, new = (
            each.assign(one=1.0).groupby(list(table), dropna=False)[weight].sum() for each in (before, after)
        )
        both = pd.concat([old.rename("old"), new.rename("new")], axis=1).fillna(0.0)
        error = (both["new"] - both["old"]).abs()
        errors += error.tolist()
        relative += (error / both["old"])[both["old"] > 0].tolist()
    return max(errors), np.mean(errors), max(relative), np.mean(relative), len(errors)


def compared(spark, before, after, folder):
    spec = specification(folder, VARIABLES, method={"weight": "weight"})
    old, new = (
        spark.createDataFrame(each.astype(object).where(each.notna(), None).values.tolist(), TYPES)
        for each in (before, after)
    )
    return Comparison(spec, SimpleNamespace(frame=old), None, new.repartition(3), len(after), {}, {})


@pytest.mark.spark
def test_errors_of_weighted_counts_equal_pandas(spark, tmp_path):
    before = records(300, 5)
    after = moved(before)
    section = WeightedTablesMeasure().compute(compared(spark, before, after, tmp_path))
    families = {
        "1": [("sex",), ("age",)],
        "2": [("sex", "age")],
        "1 by region": [("region", "sex"), ("region", "age")],
    }
    assert list(section) == list(families)
    for name, tables in families.items():
        part = section[name]
        assert (part.tables, part.by_region) == (len(tables), "region" in name)
        by = {"one": part.unweighted, **part.weighted}
        assert list(by) == ["one", "weight", "second"]
        for weight, errors in by.items():
            *figures, cells = errors_by_hand(before, after, tables, weight)
            assert (errors.largest, errors.mean, errors.largest_relative, errors.mean_relative) == (
                pytest.approx(tuple(figures), rel=5.1e-3)
            )
            assert part.cells == cells
            assert errors.largest > 0
    (sentence, *_) = WeightedTablesMeasure().headline(section, 3)
    assert sentence.startswith(
        "Weighted by weight, the error of a cell in a table of dimension 1 is at most "
    )


@pytest.mark.spark
def test_unchanged_variables_have_no_error_in_any_order_of_records(spark, tmp_path):
    before = records(400, 6)
    shuffled = before.sample(frac=1, random_state=1)
    for part in WeightedTablesMeasure().compute(compared(spark, before, shuffled, tmp_path)).values():
        for errors in (part.unweighted, *part.weighted.values()):
            assert (errors.largest, errors.mean, errors.largest_relative, errors.mean_relative) == (
                0,
                0,
                0,
                0,
            )


def test_files_without_weights_have_no_weighted_tables(tmp_path):
    without = {name: role for name, role in VARIABLES.items() if role["role"] != "weight"}
    spec = specification(tmp_path, without)
    assert WeightedTablesMeasure().compute(SimpleNamespace(specification=spec)) is None


@pytest.mark.spark
def test_weighted_release_reports_the_errors_of_its_weighted_tables(mixed_release):
    release = mixed_release
    section = release.found["weighted_tables"]
    assert list(section) == ["1", "1 by region"]
    for name, table in (("1", ("sex",)), ("1 by region", ("region", "sex"))):
        for weight, errors in (
            ("one", section[name]["unweighted"]),
            ("weight", section[name]["weighted"]["weight"]),
        ):
            *figures, cells = errors_by_hand(release.original, release.frame, [table], weight)
            named = ("largest", "mean", "largest_relative", "mean_relative")
            assert [errors[each] for each in named] == pytest.approx(figures, rel=5.1e-3)
            assert section[name]["cells"] == cells
    assert "<h3>Weighted tables</h3>" in (release.record / "report.html").read_text()
    published_columns = pq.read_schema(next((release.folder / "tables").glob("*.parquet"))).names
    assert published_columns[-1] == "frequency"
    assert not any(name.startswith("__") for name in published_columns)
