"""Tests that Spark plans, which the event log and the user interface show, contain nothing computed from
values.
"""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import functions as f

from tests.pipelines import turnover
from tests.pipelines.event_log import planned
from tests.pipelines.microdata import run, specification

pytestmark = pytest.mark.spark
VARIABLES = {
    "person": {"role": "unit"},
    "name": {"role": "identifier"},
    "home": {"role": "household"},
    "region": {"role": "region"},
    "sex": {"role": "quasi_identifier", "kind": "nominal"},
    "job": {"role": "quasi_identifier", "kind": "nominal"},
    "age": {"role": "quasi_identifier", "kind": "numeric"},
    "income": {"role": "quasi_identifier", "kind": "numeric"},
    "debt": {"role": "sensitive", "kind": "numeric"},
    "illness": {"role": "sensitive", "kind": "nominal"},
    "weight": {"role": "weight"},
    "hours": {"role": "other"},
    "partial": {"role": "quasi_identifier", "kind": "numeric"},
    "place": {"role": "region"},
}
NUMBERS = {"age": int, "income": float, "debt": float, "hours": int, "weight": float, "partial": "Int64"}


def persons(other: bool) -> pd.DataFrame:
    """Return records in three regions; the `other` records differ in every value and in no count."""
    rng = np.random.default_rng(3)
    n = 120
    frame = pd.DataFrame(
        {
            "person": [f"p{i}" for i in range(n)],
            "name": [f"n{i}" for i in range(n)],
            "home": np.arange(n) // 3,
            "region": np.array(["north", "south", "west"])[np.arange(n) // 3 % 3],
            "sex": np.array(["f", "m"])[rng.integers(0, 2, n)],
            "job": np.array(["a", "b", "c"])[rng.integers(0, 3, n)],
            "age": rng.integers(18, 90, n),
            "income": np.round(rng.lognormal(7, 1, n), 2),
            "debt": np.round(rng.lognormal(5, 1, n), 2),
            "illness": np.array(["x", "y", "z", "w"])[rng.integers(0, 4, n)],
            "weight": np.round(rng.uniform(1, 5, n), 1),
            "hours": rng.integers(10, 40, n),
            "partial": pd.Series(rng.integers(10, 99, n), dtype="Int64").where(np.arange(n) % 3 > 0),
            "place": np.where(np.arange(n) < 2, "islet", np.array(["east", "far"])[np.arange(n) % 2]),
        }
    )
    if other:
        for name, kind in NUMBERS.items():
            frame[name] = (frame[name] * 16 + 7).round(2).astype(kind)
        for name in frame.columns.difference([*NUMBERS, "home"]):
            frame[name] = "o" + frame[name]
        frame["home"] += 5000
    return frame


def variables(*names: str, **changed: dict) -> dict:
    return {name: VARIABLES[name] | changed.get(name, {}) for name in names}


def method(name: str, effort: str = "standard", **parameters) -> dict:
    chosen = {"parameters": parameters} if parameters else {}
    return {"method": {"name": name, "effort": effort, **chosen}}


MIXED = (
    variables(*[name for name in VARIABLES if name not in ("place", "partial")]),
    {"method": {"effort": "fast", "min_diversity": 2}, "publish": {"partition_by": "region"}},
)
NOMINAL = variables("sex", "job", "illness", "hours")
NUMERIC = variables("age", "income", "hours")
GEOGRAPHY = variables("home", "region", "sex", "job", "hours", region=VARIABLES["job"])
#: Kinds of runs with their variables and sections.
KINDS = {
    "numeric without regions": (NUMERIC | variables("weight"), {}),
    "safe": (NOMINAL, method("safe", "fast")),
    "correlated noise": (NUMERIC, method("correlated_noise")),
    "rank swapping": (NUMERIC, method("rank_swapping")),
    "pram": (NOMINAL, method("pram")),
    "local suppression": (NOMINAL, method("local_suppression")),
    "swapping": (GEOGRAPHY, method("swapping", geography=["region"], rate=0.2)),
    "recoding": (variables("sex", "hours"), method("recoding")),
    "households": (
        variables("home", "region", "sex", "age", "weight", "illness"),
        {"method": {"effort": "fast", "unit": "household"}},
    ),
    "missing numbers": (
        NUMERIC | variables("partial"),
        {"method": {"effort": "fast"}, "missing": {"numeric": "own_cluster"}},
    ),
    "a suppressed region": (
        NUMERIC | variables("place"),
        {"method": {"effort": "fast"}, "blocking": {"small_regions": "suppress"}},
    ),
    "groups": (
        variables("sex", "job", "age", "hours"),
        {"groups": [{"name": "one", "variables": ["sex", "job"]}, {"name": "two", "variables": ["age"]}]},
    ),
}
SERIES = {
    "append": {"publish": {"series": "append"}},
    "register": {"publish": {"series": "register", "changes": "republish"}, "method": {"min_diversity": 2}},
}
COUNTS = dict.fromkeys(("value", "dominance", "decimals", "effort"))
TABLES = {
    "adjustment": {},
    "suppression": {"method": "suppression"},
    "cell keys": COUNTS | {"kind": "frequency", "method": "cell_key", "quality": {"max_posterior": 0.9}},
    "rounding": COUNTS | {"kind": "frequency", "method": "rounding", "base": 5},
    "code widths": {
        "tables": [["code", "region"]],
        "hierarchies": None,
        "code_widths": {"code": [1]},
        "method": "suppression",
    },
    "holdings": {"method": "suppression", "holding": "firm"},
}


def emptied(folder: Path) -> Path:
    """Return an empty folder, so that both runs have the same paths."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def words_of_runs(spark, folder, monkeypatch, chosen: dict, sections: dict) -> list[set[str]]:
    """Return the words of plans of two runs whose values differ; trees of blocks are built from a sample."""
    for name, value in (("blocks.LEAST_SAMPLED", 20), ("blocks.SAMPLED_PER_BLOCK", 10)):
        monkeypatch.setattr(f"microguard.pipelines.records.{name}", value)
    monkeypatch.setattr("microguard.pipelines.publication.stage.RECORDS_PER_FILE", 15)
    found = []
    for other in (False, True):
        place = emptied(folder / "run")
        persons(other)[list(chosen)].to_parquet(place / "data", index=False)
        blocking = {"max_records": 12} | sections.get("blocking", {})
        spec = specification(place, chosen, **(sections | {"blocking": blocking}))
        with planned(spark) as words:
            _, areas = run(spark, spec)
        assert areas.public.current() is not None
        found.append(words)
    return found


def test_collected_plan_words_include_a_literal_of_the_query(spark):
    with planned(spark) as words:
        spark.range(4).select(f.col("id") * f.lit(7015.625)).collect()
    assert "7015.625" in words


def test_plans_of_a_mixed_run_do_not_depend_on_values(spark, tmp_path, monkeypatch):
    first, second = words_of_runs(spark, tmp_path, monkeypatch, *MIXED)
    assert first ^ second == set()


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_plans_of_a_run_do_not_depend_on_values(spark, tmp_path, monkeypatch, kind):
    first, second = words_of_runs(spark, tmp_path, monkeypatch, *KINDS[kind])
    assert first ^ second == set()


@pytest.mark.long
@pytest.mark.parametrize("kind", SERIES)
def test_plans_of_an_update_do_not_depend_on_values(spark, tmp_path, kind):
    found = []
    for other in (False, True):
        place = emptied(tmp_path / "run")
        chosen = variables("person", "region", "sex", "age", "income", "illness")
        spec = specification(place, chosen, **SERIES[kind])
        records = persons(other)[list(chosen)]
        first = records.iloc[:90]
        second = records.iloc[90:] if kind == "append" else records.iloc[5:]
        words: set[str] = set()
        for update in (first, second):
            update.to_parquet(place / "data", index=False)
            with planned(spark) as of_update:
                run(spark, spec)
            words |= of_update
        found.append(words)
    assert found[0] ^ found[1] == set()


@pytest.mark.long
@pytest.mark.parametrize("kind", TABLES)
def test_plans_of_a_table_do_not_depend_on_values(spark, tmp_path, adjusted, kind):
    found = []
    for other in (False, True):
        place = emptied(tmp_path / "run")
        firms = turnover.records(count=300).assign(person=[f"p{i}" for i in range(300)])
        codes = dict(zip("ABCDE", (81, 82, 71, 72, 73) if other else (11, 12, 21, 22, 23), strict=True))
        firms["code"] = firms["a21"].map(codes).astype(str)
        if other:
            firms["turnover"] = (firms["turnover"] * 16 + 7).round(3)
            for name in ("a10", "a21", "region", "firm"):
                firms[name] = "o" + firms[name]
        units = {"code": {"role": "other"}, "firm": {"role": "other"}}
        units |= {"person": {"role": "unit"}} if kind in ("cell keys", "holdings") else {}
        chosen = turnover.specification(place, firms, units, **TABLES[kind])
        with planned(spark) as words:
            adjusted(chosen)
        found.append(words)
    assert found[0] ^ found[1] == set()
