"""Tests of recoding end to end: one level per variable, k on the written files, and an optimal search."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from microguard.pipelines.audit.release import audit
from microguard.pipelines.intake.recode import hierarchy_paths
from microguard.pipelines.method import record_method
from microguard.pipelines.methods.recoding import _report
from microguard.schemas.errors import InputRejected, SpecificationError
from microguard.schemas.specification.sections import Group
from microguard.sdc.recoding import Recoding
from microguard.sdc.recoding.search import MOST_NODES

from tests.contract.guarantees import oracle
from tests.pipelines.methods.test_local_suppression import suppressed
from tests.pipelines.microdata import published, quality, run, specification

ROLES = {
    "sex": {"role": "quasi_identifier", "kind": "nominal"},
    "place": {"role": "quasi_identifier", "kind": "hierarchical", "hierarchy": "places.csv"},
    "job": {"role": "quasi_identifier", "kind": "hierarchical", "hierarchy": "jobs.csv", "level": 2},
    "income": {"role": "sensitive"},
}
KEYS = ["sex", "place", "job"]
PLACES = {f"p{i}": (f"r{i // 3}", "n" if i < 6 else "s") for i in range(12)}


def persons(folder, n=150, seed=0):
    """Return persons of twelve places in four regions; jobs have two levels, and only the second is
    published.
    """
    rng = np.random.default_rng(seed)
    lines = [f"{place},{region},{half}" for place, (region, half) in PLACES.items()]
    (folder / "places.csv").write_text("\n".join(["place,region,half", *lines]))
    (folder / "jobs.csv").write_text("\n".join(["job,group,sector", "j1,a,x", "j2,a,x", "j3,b,x", "j4,c,y"]))
    return pd.DataFrame(
        {
            "sex": np.array(["f", "m"])[rng.integers(0, 2, n)],
            "place": [None if rng.random() < 0.02 else f"p{rng.integers(0, 12)}" for _ in range(n)],
            "job": [f"j{i}" for i in rng.integers(1, 5, n)],
            "income": np.arange(n) + 1000,
        }
    )


def spec_of(folder, roles=ROLES, **parameters):
    return specification(
        folder, roles, method={"name": "recoding", "effort": "standard", "parameters": parameters}
    )


@pytest.mark.spark
def test_recoding_publishes_one_level_of_each_variable_and_suppresses_few_records(spark, tmp_path):
    before = persons(tmp_path)
    before.to_parquet(tmp_path / "data")
    _, areas = run(spark, spec_of(tmp_path, max_suppressed=0.1), ("coarsening",))
    after = published(areas).sort_values("income", ignore_index=True)
    section = quality(areas)["coarsening"]
    levels = {each["name"]: each["level"] - 1 for each in section["variables"]}
    paths = {code: (code, *parents) for code, parents in PLACES.items()}
    jobs = {"j1": ("a", "x"), "j2": ("a", "x"), "j3": ("b", "x"), "j4": ("c", "y")}
    expected = pd.DataFrame(
        {
            "sex": [(each, None)[levels["sex"]] for each in before["sex"]],
            "place": [each and (*paths[each], None)[levels["place"]] for each in before["place"]],
            "job": [(*jobs[each], None)[levels["job"]] for each in before["job"]],
        }
    ).astype(object)
    found = after[KEYS].astype(object).where(after[KEYS].notna(), None)
    gone = found.isna().all(axis=1)
    assert 0 < gone.sum() <= 15
    assert found[~gone].equals(expected[~gone].where(expected.notna(), None))
    rows = found.to_dict("records")
    assert oracle.class_sizes(rows, KEYS)[0] >= 3
    assert section["gap"] == 0.0
    release = areas.public.release(areas.public.current())
    assert audit(release).passed
    assert (
        json.loads((release / "manifest.json").read_text())["guarantee"]["groups"][0]["smallest_class"] >= 3
    )


@pytest.mark.spark
def test_recoding_does_not_depend_on_order_or_partitions(spark, tmp_path):
    frame, spec = persons(tmp_path), spec_of(tmp_path, loss="discernibility")
    first = suppressed(spark, spec, spark.createDataFrame(frame).coalesce(1))
    other = suppressed(spark, spec, spark.createDataFrame(frame[::-1]).repartition(3))
    pd.testing.assert_frame_equal(first, other)
    numbers = ROLES | {"number": {"role": "quasi_identifier", "kind": "hierarchical", "hierarchy": "n.csv"}}
    (tmp_path / "n.csv").write_text("number,group\n1,a\n2,a\n")
    with pytest.raises(InputRejected, match=r"variables\.number: expected a column of text"):
        suppressed(spark, spec_of(tmp_path, numbers), spark.createDataFrame(frame.assign(number=1)))


@pytest.mark.spark
def test_plan_of_recoding_contains_codes_of_the_hierarchy_and_none_of_the_records(spark, tmp_path):
    """The Spark event log contains the plan, which must not reveal the codes that occur."""
    frame = spark.createDataFrame(persons(tmp_path).query("place < 'p5'")).drop("income")
    method = record_method(spec_of(tmp_path))
    gone = pa.table(
        {name: pa.array([text]) for name, text in zip(method.keys(), ["", "f", "p3", "b"], strict=True)}
    )
    paths = hierarchy_paths(method.specification)
    spark.conf.set("spark.sql.maxPlanStringLength", 10_000_000)
    texts = {}
    for levels in ((0, 1, 0), (0, 0, 0)):
        published = method._published(frame, gone, paths, levels)
        published.collect()
        texts[levels] = published._jdf.queryExecution().toString()
    shown = [{place for place in PLACES if re.search(rf"\b{place}\b", text)} for text in texts.values()]
    assert shown == [set(PLACES), set()]


@pytest.mark.spark
def test_recoding_that_suppresses_no_record_works_with_spark_connect(spark, tmp_path, monkeypatch):
    """Spark Connect refuses a table without rows and schema."""
    frame = spark.createDataFrame(persons(tmp_path, 10)).drop("income")
    method = record_method(spec_of(tmp_path))
    create = type(spark).createDataFrame

    def as_connect(session, data, schema=None, *rest, **named):
        assert schema is not None or len(data), "CANNOT_INFER_EMPTY_SCHEMA"
        return create(session, data, schema, *rest, **named)

    monkeypatch.setattr(type(spark), "createDataFrame", as_connect)
    keys = list(method.keys())
    gone = pa.table({name: pa.array([], pa.string()) for name in keys})
    paths = hierarchy_paths(method.specification)
    assert method._published(frame, gone, paths, (0, 0, 0)).count() == 10


def test_stopped_search_is_not_reported_as_a_descent():
    found = Recoding((0,), np.zeros(1, bool), 0, 1.0, 0.5, False, MOST_NODES, 20_000, 1)
    counts = pa.table({"__records": [3]})
    group = Group(name="all", variables=("sex",))
    for nodes, algorithm in ((MOST_NODES, "lattice search"), (MOST_NODES + 1, "descent")):
        reports = _report(replace(found, nodes=nodes), [[{}]], group, counts, 0.0)
        assert [each["algorithm"] for each in reports.blocks] == [algorithm]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "entropy"}, "loss"),
        ({"max_suppressed": 1.0}, "less than 1"),
        ({"missing": "any_value"}, "missing"),
    ],
)
def test_specification_refuses_invalid_parameters_of_recoding(parameters, message, tmp_path):
    with pytest.raises(SpecificationError, match=message):
        spec_of(tmp_path, **parameters)
