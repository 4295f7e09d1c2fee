"""Tests of columns that determine a protected variable, for all records or all but some miscoded ones."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.measures.attribute_disclosure import compared_columns
from microguard.pipelines.measures.attribute_disclosure.functional_dependencies import dependencies
from microguard.schemas.errors import GateRefused

from tests.pipelines.microdata import run, specification

pytestmark = pytest.mark.spark
SPECIFICATION = SimpleNamespace(
    published_as_it_is=("region", "branch", "miscoded", "born", "size", "year", "amount"),
    quasi_identifiers=("section", "age", "then"),
    nominal=("section",),
    region="region",
    numeric=("age", "then"),
    swapped=False,
    input=SimpleNamespace(thousands=None, decimal="."),
    variables=defaultdict(lambda: SimpleNamespace(kind=None)),
)


def file(n=600, wrong=4):
    random = np.random.default_rng(2)
    branch, born = random.integers(0, 40, n), random.integers(1950, 1970, n)
    miscoded = np.where(np.arange(n) < wrong, random.integers(0, 40, n), branch)
    return pd.DataFrame(
        {
            "region": np.where(random.random(n) < 0.01, "s", np.array(["n", "s"])[branch // 10 % 2]),
            "branch": branch,
            "miscoded": miscoded,
            "born": born,
            "size": random.integers(0, 3, n),
            "year": random.integers(2020, 2023, n),
            "amount": np.arange(n) * 1.5,
            "section": np.array(["a", "b", "c", "d"])[branch // 10],
            "age": 2026 - born,
        }
    ).assign(then=lambda frame: (frame["year"] - frame["born"]) // 2)


@pytest.mark.parametrize("glance", [20_000, 200])
def test_dependency_with_few_exceptions_is_found(spark, monkeypatch, glance):
    monkeypatch.setattr(compared_columns, "GLANCE", glance)
    frame = file()
    found = dependencies(spark.createDataFrame(frame).repartition(3), SPECIFICATION, len(frame))
    assert [(each.column, each.determines, each.beside) for each in found if each.column != "born"] == [
        ("branch", "section", ()),
        ("miscoded", "section", ()),
    ]
    born = [str(each) for each in found if each.column == "born"]
    assert born[0] == "born is published unmodified and determines the protected age"
    if glance > len(frame):
        assert born[1:] == [
            "born and year are published unmodified and together determine the protected then"
        ]


def test_dependency_with_many_exceptions_is_not_found(spark):
    frame = file(wrong=60)
    found = dependencies(spark.createDataFrame(frame), SPECIFICATION, len(frame))
    assert "miscoded" not in [each.column for each in found if not each.beside]


def test_unprotected_amounts_that_determine_a_protected_amount_are_refused(spark, tmp_path):
    """Control: the published terms disclose every income to the last digit."""
    random = np.random.default_rng(1)
    frame = pd.DataFrame({"age": random.integers(18, 80, 300), "income": random.integers(100, 90_000, 300)})
    frame["wage"] = (frame["income"] * random.random(300)).astype(int)
    frame["profit"] = frame["income"] - frame["wage"]
    frame.to_parquet(tmp_path / "data", index=False)
    protected, sensitive = {"role": "quasi_identifier", "kind": "numeric"}, {"role": "sensitive"}
    roles = {"age": protected, "income": protected, "wage": sensitive, "profit": sensitive}
    with pytest.raises(GateRefused, match=r"(?s)that wage determines +1 .*that profit determines +1 "):
        run(spark, specification(tmp_path, roles), ("determined",))
    accepted = {"accept_dependencies": ["wage"]}
    run(spark, specification(tmp_path, roles, publish=accepted), ("determined",))


NUMBER, CATEGORY = ({"role": "quasi_identifier", "kind": kind} for kind in ("numeric", "nominal"))
SENSITIVE = {"role": "sensitive"}


def persons(n=300):
    """Return protected variables and columns that determine one of them, by name of the case."""
    random = np.random.default_rng(3)
    branch, income = random.integers(0, 60, n), np.round(random.lognormal(10, 0.6, n))
    born = pd.Timestamp("1940-01-01") + pd.to_timedelta(random.integers(0, 365 * 60, n), "D")
    protected = pd.DataFrame(
        {"age": (pd.Timestamp("2026-01-01") - born).days // 365, "income": income, "section": branch // 10}
    ).astype({"section": str})
    columns = {
        "amount in a text": [f"EUR {each:,.0f}" for each in income],
        "bytes": [f"{each:.0f}".encode() for each in income],
        "said to be codes": (0.7 * income).round(),
        "date in a text": born.strftime("%Y-%m-%d"),
        "day first": born.strftime("%d.%m.%Y"),
        "file number": [f"{b:02d}/{i:05d}" for i, b in enumerate(branch)],
        "lacking for some": np.where(random.random(n) < 0.15, None, [f"b{each}" for each in branch]),
        "unknown for some": np.where(random.random(n) < 0.15, "?", [f"b{each}" for each in branch]),
    }
    harmless = [f"{'abcdef'[i % 6]}-{number}" for i, number in enumerate(random.integers(0, 99, n))]
    return protected, {**columns, "harmless": harmless}


@pytest.mark.parametrize("case", persons()[1])
def test_dependency_on_a_text_or_on_most_values_of_a_column_is_found(spark, tmp_path, case):
    protected, columns = persons()
    told = SENSITIVE | ({"kind": "nominal"} if case == "said to be codes" else {})
    release = specification(tmp_path, {"age": NUMBER, "income": NUMBER, "section": CATEGORY, "told": told})
    frame = spark.createDataFrame(protected.assign(told=columns[case]))
    found = dependencies(frame, release, len(protected))
    assert ["told"] * (case != "harmless") == [each.column for each in found]


def test_sampled_file_has_the_dependencies_of_the_whole_file(spark, monkeypatch):
    frame = file().assign(
        miscoded=lambda each: np.where(np.arange(len(each)) % 8 == 0, "?", each["branch"].astype(str))
    )
    few = dependencies(spark.createDataFrame(frame), SPECIFICATION, len(frame))
    monkeypatch.setattr(compared_columns, "GLANCE", 300)
    whole = dependencies(spark.createDataFrame(frame), SPECIFICATION, len(frame))
    for found in (few, whole):
        assert ("miscoded", "section", ()) in [(each.column, each.determines, each.beside) for each in found]


def test_multiple_of_a_protected_amount_is_found_despite_missing_value_marks(spark):
    n = 300
    income = np.round(np.random.default_rng(4).lognormal(8, 1, n), 2)
    gross = pd.Series(np.round(1.25 * income, 4)).map("{:g}".format).where(np.arange(n) % 10 > 0, "NA")
    spec = SimpleNamespace(
        published_as_it_is=("gross",),
        quasi_identifiers=("income",),
        nominal=(),
        region=None,
        numeric=("income",),
        swapped=False,
        input=SimpleNamespace(thousands=None, decimal="."),
        variables=defaultdict(lambda: SimpleNamespace(kind=None)),
    )
    found = dependencies(spark.createDataFrame(pd.DataFrame({"gross": gross, "income": income})), spec, n)
    assert [(each.column, each.determines) for each in found] == [("gross", "income")]
