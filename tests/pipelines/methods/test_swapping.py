"""Tests of targeted record swapping: whole households move, only geography changes, no guarantee."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.audit.release import audit
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.intake.columns import is_number
from microguard.pipelines.intake.read import microdata_from_frame
from microguard.pipelines.intake.validate import validate
from microguard.pipelines.job import Job
from microguard.pipelines.measures.attribute_disclosure.determined_variables import DeterminedMeasure
from microguard.pipelines.measures.attribute_disclosure.functional_dependencies import dependencies
from microguard.pipelines.method import record_method
from microguard.pipelines.publication.areas import Areas
from microguard.schemas.errors import GateRefused, InputRejected, SpecificationError
from microguard.schemas.specification.sections import Variable
from pyspark.sql import functions as f

import microguard
from tests.pipelines.microdata import published, quality, run, specification

ROLES = {
    "home": {"role": "household"},
    "region": {"role": "quasi_identifier", "kind": "nominal"},
    "ward": {"role": "quasi_identifier", "kind": "nominal"},
    "sex": {"role": "quasi_identifier", "kind": "nominal"},
    "age": {"role": "quasi_identifier", "kind": "nominal"},
    "job": {"role": "quasi_identifier", "kind": "nominal"},
    "income": {"role": "other"},
}
PARAMETERS = {"geography": ["region", "ward"], "rate": 0.2}
METHOD = {"name": "swapping", "effort": "standard", "parameters": PARAMETERS}


def census(homes=300, seed=0):
    """Return households of one to four persons in three regions of four wards; income identifies a person."""
    rng = np.random.default_rng(seed)
    ward, size = rng.integers(0, 12, homes), rng.integers(1, 5, homes)
    home = np.repeat(np.arange(homes), size)
    n = len(home)
    return pd.DataFrame(
        {
            "home": home,
            "region": np.array(["north", "south", "west"])[ward[home] // 4],
            "ward": [f"w{each:02}" for each in ward[home]],
            "sex": np.array(["f", "m"])[rng.integers(0, 2, n)],
            "age": np.array(["0-17", "18-64", "65+"])[rng.integers(0, 3, n)],
            "job": np.array(list("abcdef"))[rng.integers(0, 6, n)],
            "income": np.arange(n) + 1000,
        }
    )


def spec_of(folder, roles=ROLES, **parameters):
    method = {"name": "swapping", "effort": "standard", "parameters": {**PARAMETERS, **parameters}}
    return specification(folder, roles, method=method)


def swapped(spark, spec, frame):
    """Return the protected records without the steps of a release."""
    areas = Areas.from_places(spec.public_area, spec.evidence_area)
    job = Job(spark, spec, areas, Progress(quiet=True))
    screened = validate(microdata_from_frame(frame, spec), spec)
    protected, _ = record_method(spec).protect(job, screened, screened.frame, "0" * 32)
    return protected.toPandas().sort_values("income", ignore_index=True)


@pytest.mark.spark
def test_swapping_exchanges_whole_households_and_publishes_its_measures(spark, tmp_path):
    before = census()
    before.to_parquet(tmp_path / "data")
    spec = spec_of(tmp_path)
    _, areas = run(spark, spec, ("exchanged_areas",))
    after = published(areas).sort_values("income", ignore_index=True)
    assert "home" not in after
    same = [name for name in after if name not in ("region", "ward")]
    pd.testing.assert_frame_equal(after[same], before[same], check_dtype=False)
    moved = (after["ward"] != before["ward"]).groupby(before["home"])
    assert (moved.nunique() == 1).all()
    assert moved.first().mean() >= 0.2
    homes = before["home"].to_numpy()
    for file in (after, before):
        file["homes"] = file.assign(home=homes).groupby("ward")["home"].transform("nunique")
    assert (after.groupby("ward")["homes"].first() == before.groupby("ward")["homes"].first()).all()
    assert (
        after["ward"].map(before.drop_duplicates("ward").set_index("ward")["region"]) == after["region"]
    ).all()
    finest = quality(areas)["exchanged_areas"]["levels"][-1]
    keys = ["region", "ward", "sex", "age", "job"]
    counts = before.groupby(keys)["income"].transform("size")
    assert finest["at_risk"] == (counts < 3).sum()
    unique = after.groupby(keys).filter(lambda each: len(each) == 1)
    assert finest["uniques"] == len(unique)
    known = set(map(tuple, before[keys].to_numpy()))
    assert finest["right"] == sum(tuple(row) in known for row in unique[keys].to_numpy())
    release = areas.public.release(areas.public.current())
    assert audit(release).passed
    manifest = json.loads((release / "manifest.json").read_text())
    assert manifest["guarantee"]["name"] == "measured only"


@pytest.mark.spark
def test_swapping_does_not_depend_on_order_or_partitions(spark, tmp_path):
    spec, frame = spec_of(tmp_path), census(120)
    first = swapped(spark, spec, spark.createDataFrame(frame).coalesce(1))
    shuffled = frame.sample(frac=1, random_state=1)
    for partitions in (2, 4):
        other = swapped(spark, spec, spark.createDataFrame(shuffled).repartition(partitions))
        pd.testing.assert_frame_equal(first, other)
    roles = {name: role for name, role in ROLES.items() if name != "home"}
    records = spec_of(tmp_path, roles, geography=["ward"])
    frame = frame.drop(columns="home").assign(income=0, region="x")
    frame.loc[frame.index[:5], "ward"] = None
    once = [swapped(spark, records, spark.createDataFrame(each)) for each in (frame, frame[::-1])]
    columns = sorted(once[0])
    pd.testing.assert_frame_equal(*(each[columns].sort_values(columns, ignore_index=True) for each in once))
    assert once[0]["ward"].isna().sum() == 5


@pytest.mark.spark
def test_swapping_plans_do_not_contain_the_key_of_unit_numbers(spark, tmp_path):
    key, frame = b"a key of the area", spark.createDataFrame(census(10))
    as_literal = frame.select(f.sha2(f.concat(f.lit(key.hex()), "ward"), 256))
    assert key.hex() in as_literal._jdf.queryExecution().toString()
    plan = record_method(spec_of(tmp_path))._with_units(frame, key)._jdf.queryExecution().toString()
    assert "__unit" in plan
    assert key.hex() not in plan
    assert key.decode() not in plan


@pytest.mark.spark
def test_protected_records_remain_valid_after_the_input_of_a_python_call_is_removed(spark, tmp_path):
    frame = census(20)
    result = microguard.Protection(spec_of(tmp_path)).protect(frame)
    assert result.frame.count() == len(frame)
    assert "No formal promise" in result.evidence.release.promise


@pytest.mark.spark
def test_published_household_size_is_a_profile_variable(spark, tmp_path):
    """Without a household variable, persons are exchanged within their published household size."""
    roles = {name: role for name, role in ROLES.items() if name not in ("home", "region")}
    frame = census(120).drop(columns=["home", "region"])
    frame["household_size"] = np.arange(len(frame)) % 4
    spec = spec_of(
        tmp_path,
        roles | {"household_size": {"role": "other"}},
        geography=["ward"],
        similar=[["household_size"]],
    )
    after = swapped(spark, spec, spark.createDataFrame(frame))
    moved = after["ward"] != frame["ward"].to_numpy()
    assert moved.any()
    by_size = ["household_size", "ward"]
    pd.testing.assert_series_equal(after.groupby(by_size).size(), frame.groupby(by_size).size())


@pytest.mark.spark
def test_exchanged_units_follow_from_levels_that_do_not_nest_and_supplied_risks(spark, tmp_path):
    """School districts cross wards within a region; medical districts cross regions. Units of risk 0.5 are
    exchanged.
    """
    frame = census(300)
    rng = np.random.default_rng(7)
    home = frame["home"].to_numpy()
    frame["school"] = frame["region"] + np.array(["1", "2"])[rng.integers(0, 2, home.max() + 1)[home]]
    frame["doctor"] = np.array(["x", "y", "z"])[rng.integers(0, 3, home.max() + 1)[home]]
    frame["chance"] = np.where(rng.random(len(frame)) < 0.03, 0.7, 0.1)
    frame.loc[frame.index[:1], "chance"] = None
    area = {"role": "quasi_identifier", "kind": "nominal"}
    roles = ROLES | {"school": area, "doctor": area, "chance": {"role": "risk"}}
    spec = spec_of(
        tmp_path, roles, hierarchies=[["region", "school"], ["doctor"]], risk_values=["chance"],
        risk_threshold=0.5, rate=0.0,
    )  # fmt: skip
    after = swapped(spark, spec, spark.createDataFrame(frame))
    areas = ["region", "ward", "school", "doctor"]
    moved = (after[areas].to_numpy() != frame[areas].to_numpy()).any(axis=1)
    at_risk = (~(frame["chance"] < 0.5)).groupby(home).any()
    assert moved[at_risk.to_numpy()[home]].all()
    assert pd.Series(moved).groupby(home).first().sum() <= 2 * at_risk.sum()
    whole = [tuple(row) for row in frame[areas].drop_duplicates().to_numpy()]
    assert set(map(tuple, after[areas].to_numpy())) <= set(whole), (
        "a household receives all areas of one other household"
    )
    again = swapped(spark, spec, spark.createDataFrame(frame[::-1]).repartition(4))
    pd.testing.assert_frame_equal(after, again)

    records = {name: role for name, role in roles.items() if name not in ("home", "doctor", "chance")}
    spec = spec_of(tmp_path, records, hierarchies=[["region", "school"]], rate=0.3)
    frame = frame.drop(columns=["home", "doctor", "chance"])
    after = swapped(spark, spec, spark.createDataFrame(frame))
    by_region = ["region", "sex", "age", "job"]
    unique = frame.groupby(by_region)["income"].transform("size") < 3
    kept = ~unique & (after["region"] == frame["region"])
    assert kept.sum() > 100
    assert (after["school"].str[:-1] == after["region"]).all()
    assert (after["school"] != frame["school"])[kept].any()


@pytest.mark.spark
def test_swapping_without_an_exchange_is_refused_unless_no_unit_is_at_risk(spark, tmp_path):
    frame = census(60)
    one_area = frame.assign(region="north", ward="w00")
    with pytest.raises(GateRefused, match=r"none that moved, and [1-9][0-9]* at risk"):
        swapped(spark, spec_of(tmp_path, rate=0.0), spark.createDataFrame(one_area))
    roles = ROLES | {"chance": {"role": "risk"}}
    too_high = {"risk_values": ["chance"], "risk_threshold": 5.0, "rate": 0.0}
    with pytest.raises(GateRefused, match=r"none that moved, and 0 at risk.*risk_threshold"):
        swapped(spark, spec_of(tmp_path, roles, **too_high), spark.createDataFrame(frame.assign(chance=0.7)))
    alike = frame.assign(sex="f", age="65+", job="a")
    again = swapped(spark, spec_of(tmp_path, rate=0.0), spark.createDataFrame(alike))
    assert (again["ward"] == alike["ward"]).all()


@pytest.mark.spark
def test_supplied_risks_are_counted_in_the_evidence_and_in_no_public_file(spark, tmp_path):
    frame = census(120)
    frame["chance"] = np.where(np.arange(len(frame)) % 40 == 0, 0.875, 0.125)
    frame.to_parquet(tmp_path / "data")
    roles = ROLES | {"chance": {"role": "risk"}}
    spec = spec_of(tmp_path, roles, risk_values=["chance"], risk_threshold=0.5)
    _, areas = run(spark, spec, ("exchanged_areas",))
    levels = quality(areas)["exchanged_areas"]["levels"]
    assert {level["at_risk"] for level in levels} == {(frame["chance"] >= 0.5).sum()}
    assert set(published(areas).columns) == set(ROLES) - {"home"}
    release = areas.public.release(areas.public.current())
    for path in (each for each in release.rglob("*") if each.is_file()):
        content = path.read_bytes()
        assert b"chance" not in content, path.name
        assert b"0.875" not in content, path.name


def test_supplied_risks_must_be_numbers(tmp_path):
    assert is_number(Variable(role="risk"))
    with pytest.raises(SpecificationError, match="a risk is a number"):
        spec_of(tmp_path, ROLES | {"chance": {"role": "risk", "kind": "nominal"}},
                risk_values=["chance"], risk_threshold=1.0)  # fmt: skip


def test_variables_of_role_risk_are_accepted_only_for_swapping(tmp_path):
    roles = ROLES | {"chance": {"role": "risk"}}
    with pytest.raises(SpecificationError, match="every variable of role risk: chance"):
        spec_of(tmp_path, roles)
    with pytest.raises(SpecificationError, match="one for each level of geography"):
        spec_of(tmp_path, roles | {"other": {"role": "risk"}, "more": {"role": "risk"}},
                risk_values=["chance", "other", "more"], risk_threshold=1.0)  # fmt: skip
    with pytest.raises(SpecificationError, match="no variable of role risk with method microaggregation"):
        specification(tmp_path, roles | {"ward": {"role": "region"}}, method={"name": "microaggregation"})


@pytest.mark.spark
def test_swapping_refuses_a_household_in_two_areas(spark, tmp_path):
    frame = census(30)
    frame.loc[frame.index[frame["home"].duplicated()][:1], "ward"] = "w99"
    with pytest.raises(InputRejected, match=r"1 household\(s\) have records in several areas"):
        swapped(spark, spec_of(tmp_path), spark.createDataFrame(frame))


@pytest.mark.spark
@pytest.mark.parametrize("role", [{"role": "quasi_identifier", "kind": "nominal"}, {"role": "other"}])
def test_unchanged_variable_that_determines_an_exchanged_area_is_found(role, spark, tmp_path):
    """A reader who sees the true climate of every record undoes the exchange; the control is not related."""
    frame = census()
    climate = frame["region"].map({"north": "cold", "south": "hot", "west": "wet"})
    roles = ROLES | {"climate": role}
    spec = spec_of(tmp_path, roles)
    told = dependencies(spark.createDataFrame(frame.assign(climate=climate)), spec, len(frame))
    assert [(each.column, each.determines) for each in told] == [("climate", "region")]
    limited = [each.key.variable for each in DeterminedMeasure().limits(spec)]
    assert "climate" in limited
    assert "ward" not in limited
    mixed = climate.sample(frac=1, random_state=1).to_numpy()
    assert not dependencies(spark.createDataFrame(frame.assign(climate=mixed)), spec, len(frame))
    accepting = specification(tmp_path, roles, method=METHOD, publish={"accept_dependencies": ["climate"]})
    assert "climate" not in [each.key.variable for each in DeterminedMeasure().limits(accepting)]


def test_specification_refuses_a_region_next_to_an_exchanged_area(tmp_path):
    roles = ROLES | {"region": {"role": "region"}}
    with pytest.raises(SpecificationError, match=r"geography: .*region first, as a quasi_identifier"):
        spec_of(tmp_path, roles, geography=["ward"])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"geography": []}, "one or more quasi-identifiers"),
        ({"geography": ["income"]}, "quasi-identifiers of kind nominal"),
        ({"risk": ["ward"]}, "outside geography"),
        ({"similar": [["home"]]}, "published variables"),
        ({"similar": ["sex"]}, "list in brackets"),
        ({"geography": 3}, "list in brackets"),
        ({"rate": 1.5}, "rate"),
        ({"rates": 0.1}, "rates"),
        ({"hierarchies": [["region"]]}, "and then further quasi-identifiers"),
        ({"hierarchies": [["sex", "age"]]}, "and then further quasi-identifiers"),
        ({"hierarchies": [[]]}, "and then further quasi-identifiers"),
        ({"hierarchies": [["region", "ward"]]}, "no level of geography"),
        ({"hierarchies": [["region", "income"]]}, "quasi-identifiers of kind nominal"),
        ({"risk_values": ["income"], "risk_threshold": 1.0}, "variables of role risk"),
        ({"risk_threshold": 1.0}, "with risk_values"),
    ],
)
def test_specification_refuses_invalid_parameters_of_swapping(parameters, message, tmp_path):
    with pytest.raises(SpecificationError, match=message):
        spec_of(tmp_path, **parameters)
