"""Tests of unmodified columns that follow from a changed variable and show which records were changed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.measures.attribute_disclosure import compared_columns
from microguard.pipelines.measures.attribute_disclosure.contradicted_columns import ContradictedMeasure
from microguard.pipelines.measures.attribute_disclosure.contradictions import contradictions
from microguard.schemas.errors import GateRefused

from tests.pipelines.microdata import published, run, specification

pytestmark = pytest.mark.spark
CATEGORY, NUMBER = ({"role": "quasi_identifier", "kind": kind} for kind in ("nominal", "numeric"))
OTHER = {"role": "other"}


def file(n=900, seed=1):
    """Return records in three regions of six wards, and columns that follow from others."""
    random = np.random.default_rng(seed)
    place, branch = random.integers(0, 18, n), random.integers(0, 30, n)
    income, age = np.round(random.lognormal(10, 0.6, n), 2), random.integers(18, 90, n)
    return pd.DataFrame(
        {
            "region": np.array(["north", "south", "west"])[place // 6],
            "ward": [f"w{each}" for each in place],
            "number": [f"w{each}" for each in place % 6],
            "district": [f"d{each}" for each in place // 2],
            "branch": [f"b{each:02}" for each in branch],
            "section": np.array(list("ABCDE"))[branch // 6],
            "age": age,
            "minor": age < 25,
            "income": income,
            "class": pd.cut(income, [0, 15_000, 20_000, 30_000, np.inf], labels=list("wxyz")).astype(str),
            "thousands": (income / 1000).round(),
            "distance": np.abs(income - 22_000).round(2),
            "mood": random.integers(0, 3, n),
            "spent": np.round(income * random.random(n), 2),
        }
    )


def swapping(*geography):
    return {
        "name": "swapping",
        "effort": "standard",
        "parameters": {"geography": list(geography), "rate": 0.1},
    }


def plain(name):
    return {"name": name, "effort": "standard"}


CASES = {
    "region of a ward": (swapping("ward"), {"ward": CATEGORY, "branch": CATEGORY}, "region", ("ward",)),
    "kept quasi-identifier": (swapping("ward"), {"ward": CATEGORY, "region": CATEGORY}, "region", ("ward",)),
    "repeated codes of wards": (
        swapping("region", "number"),
        {"region": CATEGORY, "number": CATEGORY, "branch": CATEGORY},
        "district",
        ("region", "number"),
    ),
    "section of a branch": (plain("pram"), {"branch": CATEGORY, "ward": CATEGORY}, "section", ("branch",)),
    "age band": (plain("rank_swapping"), {"age": NUMBER, "income": NUMBER}, "minor", ("age",)),
    "income class": (plain("correlated_noise"), {"age": NUMBER, "income": NUMBER}, "class", ("income",)),
    "rounded": (plain("correlated_noise"), {"age": NUMBER, "income": NUMBER}, "thousands", ("income",)),
    "deviation": (plain("correlated_noise"), {"age": NUMBER, "income": NUMBER}, "distance", ("income",)),
}


@pytest.mark.parametrize("case", CASES)
def test_column_that_follows_from_a_changed_variable_is_found(case, spark, tmp_path, monkeypatch):
    method, roles, column, changed = CASES[case]
    roles = roles | {name: OTHER for name in ("mood", "spent", column) if name not in roles}
    spec = specification(tmp_path, roles, method=method)
    frame = file()[list(roles)]
    for glance in (20_000, 600):
        monkeypatch.setattr(compared_columns, "GLANCE", glance)
        found = contradictions(spark.createDataFrame(frame), spec, len(frame))
        assert [(each.column, each.changed) for each in found] == [(column, changed)]


@pytest.mark.parametrize("method", [plain("pram"), swapping("ward")])
def test_column_that_nearly_all_records_have_in_common_contradicts_nothing(
    method, spark, tmp_path, monkeypatch
):
    """In a larger file, too: of the few records with another value, none may be in a frequent ward."""
    frame = file()[["ward", "branch"]].assign(same="x", empty=None, flag=0)
    frame.loc[:2, ["ward", "branch", "flag"]] = [[f"island {i}", f"fishing {i}", 1] for i in range(3)]
    frame["empty"] = frame["empty"].astype("string")
    frame.to_parquet(tmp_path / "data", index=False)
    roles = {"ward": CATEGORY, "branch": CATEGORY} | dict.fromkeys(("same", "empty", "flag"), OTHER)
    spec = specification(tmp_path, roles, method=method)
    for glance in (20_000, 600):
        monkeypatch.setattr(compared_columns, "GLANCE", glance)
        assert not contradictions(spark.read.parquet(str(tmp_path / "data")), spec, len(frame))


def test_of_nested_sets_of_variables_the_smallest_is_named(spark, tmp_path):
    roles = {"region": OTHER, "ward": CATEGORY, "district": CATEGORY, "mood": CATEGORY}
    spec = specification(tmp_path, roles, method=swapping("district", "ward"))
    found = contradictions(spark.createDataFrame(file()), spec, 900)
    assert [each.changed for each in found] == [("district",)]


def test_columns_that_a_method_changes_in_the_open_are_not_examined(spark, tmp_path):
    roles = {"age": NUMBER, "income": NUMBER, "class": OTHER}
    spec = specification(tmp_path, roles)
    assert not contradictions(spark.createDataFrame(file()), spec, 900)


def test_swapping_beside_an_unchanged_region_is_refused_and_would_show_exchanged_records(spark, tmp_path):
    """Control: who accepts the column publishes which records were exchanged between regions."""
    frame = file()[["ward", "branch", "region"]]
    frame.to_parquet(tmp_path / "data", index=False)
    roles = {"ward": CATEGORY, "branch": CATEGORY, "region": OTHER}
    with pytest.raises(
        GateRefused, match=r"(?s)that determine the unmodified region.*exchange the column too"
    ):
        run(spark, specification(tmp_path, roles, method=swapping("ward")), ("contradicted",))
    accepting = {"accept_dependencies": ["region"]}
    _, areas = run(
        spark, specification(tmp_path, roles, method=swapping("ward"), publish=accepting), ("contradicted",)
    )
    after = published(areas)
    usual = after.groupby("ward")["region"].agg(lambda each: each.mode()[0])
    assert (after["ward"].map(usual) != after["region"]).sum() > 0.05 * len(frame)
    both = {"region": CATEGORY, "ward": CATEGORY, "branch": CATEGORY}
    mended = specification(
        tmp_path, both, method=swapping("region", "ward"), publish={"successive": "accept"}
    )
    run(spark, mended, ("contradicted",))


def test_limit_of_contradictions_names_the_columns_that_a_steward_did_not_accept(tmp_path):
    roles = {"ward": CATEGORY, "branch": CATEGORY, "region": OTHER, "mood": OTHER}
    spec = specification(tmp_path, roles, method=swapping("ward"), publish={"accept_dependencies": ["mood"]})
    assert [each.key.variable for each in ContradictedMeasure().limits(spec)] == ["region", "branch"]
