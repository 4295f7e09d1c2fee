"""Tests of k-map: population frequencies of key combinations, against counts in pandas."""

from datetime import date, datetime
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.check import risk_of
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.intake.population import population
from microguard.pipelines.intake.read import read
from microguard.pipelines.job import Job
from microguard.pipelines.measures.k_map import Held, KMap, KMapMeasure, held
from microguard.pipelines.publication.areas import Areas
from microguard.schemas.errors import InputRejected, SpecificationError

from tests.pipelines.microdata import ROLES, specification

KEY = ["region", "sex", "age"]
VARIABLES = {
    "region": ROLES["region"],
    "sex": ROLES["sex"],
    "age": {"role": "quasi_identifier", "kind": "nominal"},
    "income": ROLES["income"],
}
COUNTED = {"path": "counts.csv", "format": "csv", "count": "people", "delimiter": ";"}


def records(n, seed):
    rng = np.random.default_rng(seed)
    age = pd.array(rng.integers(18, 24, n), "Int16")
    age[rng.random(n) < 0.1] = pd.NA
    sex = rng.choice(["f", "m", None], n, p=[0.5, 0.4, 0.1])
    return pd.DataFrame({"region": rng.choice(["n", "s"], n), "sex": sex, "age": age, "income": 1.0})


def as_text(frame):
    """Return the key of each record; missing values are equal to each other."""
    return frame[KEY].astype(object).fillna("missing").astype(str).agg("/".join, axis=1)


def held_by_hand(frame, counts, k):
    """Count records with 1 to k - 1 population units, and with none; sum the reciprocal frequencies."""
    holders = counts["people"].groupby(as_text(counts)).sum().to_dict()
    of_records = np.array([holders.get(key, 0) for key in as_text(frame)])
    there = of_records[of_records > 0]
    return ((there < k).sum(), (of_records == 0).sum(), (1 / np.maximum(there, 1)).sum())


@pytest.mark.spark
def test_records_are_counted_by_the_population_frequency_of_their_combination(spark, tmp_path):
    before, after = records(200, 1), records(150, 2)
    after["sex"] = after["sex"].replace({"m": "x"}).where(after["age"].fillna(0) != 20, "m")
    lines = pd.concat([before, before.sample(60, random_state=1)])[KEY].drop_duplicates().iloc[2:]
    counts = pd.concat([lines, lines[:5]]).assign(
        people=lambda lines: np.arange(len(lines)) % 5, age_group="z"
    )
    counts.to_csv(tmp_path / "counts.csv", sep=";", index=False)
    spec = specification(tmp_path, VARIABLES, population=COUNTED)
    types = "region string, sex string, age smallint, income double"
    old, new = (
        spark.createDataFrame(each.astype(object).where(each.notna(), None).values.tolist(), types)
        for each in (before, after)
    )
    screened = SimpleNamespace(frame=old, population=population(old, spec))
    comparison = SimpleNamespace(specification=spec, screened=screened, protected=new)
    section = KMapMeasure().compute(comparison)
    assert section.variables == ("region", "sex", "age")
    for counted, frame in ((section.before, before), (section.after, after)):
        rare, absent, expected = held_by_hand(frame, counts, 3)
        assert (counted.records, counted.rare, counted.absent) == (len(frame), rare, absent)
        assert counted.expected == pytest.approx(expected, rel=1e-8)
        assert rare > 0
        assert absent > 0
    (share,) = KMapMeasure().metrics(section, comparison).values()
    assert share == (section.after.rare + section.after.absent) / len(after)


@pytest.mark.spark
def test_check_reports_the_least_population_frequency_of_a_combination(spark, tmp_path):
    frame = records(200, 4)
    (tmp_path / "data").mkdir()
    frame.to_parquet(tmp_path / "data" / "0.parquet", index=False)
    counts = frame[KEY].drop_duplicates().iloc[3:]
    counts = counts.assign(people=np.arange(len(counts)) % 6)
    counts.to_csv(tmp_path / "counts.csv", sep=";", index=False)
    spec = specification(tmp_path, VARIABLES, population=COUNTED, release={"k": 4})
    areas = Areas.from_places(spec.public_area, spec.evidence_area)
    answer = risk_of(Job(spark, spec, areas, Progress(quiet=True)), read(spark, spec))
    rare, absent, expected = held_by_hand(frame, counts, 4)
    told = answer.content["k_map"]
    assert told.pop("expected") == pytest.approx(expected, rel=1e-8)
    holders = set(as_text(counts[counts["people"] > 0]))
    lacking = sum("missing" in key and key not in holders for key in as_text(frame))
    assert told == {"variables": KEY, "records": 200, "rare": rare, "absent": absent, "missing": lacking}
    assert lacking > 0
    assert rare > 0
    assert absent > 0
    line = f"{rare} records have a combination that fewer than k = 4 of the population have, {absent} a comb"
    assert line in answer.text
    assert "k_map" not in without_population(spark, tmp_path, areas)


def without_population(spark, folder, areas):
    spec = specification(folder, VARIABLES)
    return risk_of(Job(spark, spec, areas, Progress(quiet=True)), read(spark, spec)).content


@pytest.mark.spark
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("region;sex;people\nn;f;3\n", "lacks the declared column"),
        ("region;sex;age;people\nn;f;18;3\nn;f;19;\nn;f;20;many\nn;f;21;-1\n", "found 3 line"),
    ],
    ids=["missing age", "missing counts"],
)
def test_invalid_population_counts_reject_the_input_without_their_values(text, fault, spark, tmp_path):
    (tmp_path / "counts.csv").write_text(text)
    old = spark.createDataFrame([("n", "f", 18)], "region string, sex string, age smallint")
    with pytest.raises(InputRejected, match=fault) as rejected:
        population(old, specification(tmp_path, VARIABLES, population=COUNTED))
    assert "many" not in str(rejected.value)


def typed(values, kind):
    return pa.table({"age": pa.array(values, kind)})


@pytest.mark.spark
@pytest.mark.parametrize(
    ("ages", "of_population", "rare"),
    [
        (typed([1, 2], pa.int32()), typed([1.0, 1.4, 1.6, 2.0, 2.0, 2.0], pa.float64()), 1),
        (typed([True], pa.bool_()), typed([1, 2, 2], pa.int32()), 1),
        (
            typed([Decimal("1.5")], pa.decimal128(5, 1)),
            typed([Decimal("1.50"), Decimal("1.54"), Decimal("1.46")], None),
            1,
        ),
        (
            typed([date(2000, 1, 1)], pa.date32()),
            typed([datetime(2000, 1, 1, hour) for hour in range(3)], None),
            1,
        ),
        (typed([date(2000, 1, 1)], pa.date32()), typed(["300000-01-01", "2000-1-1"], pa.string()), 1),
        (typed([1, 2], pa.int32()), typed(["01", "1", " 1", "2"], pa.string()), 1),
        (typed([2, 3_000_000], pa.int32()), typed([2.0, 3e6], pa.float32()), 2),
        (typed([0.1], pa.float32()), typed([0.1, 0.1, 0.1], pa.float64()), 0),
        (typed([1.5], pa.float64()), typed([Decimal("1.50")] * 3, None), 0),
    ],
    ids=[
        "fractions",
        "codes",
        "decimals",
        "times",
        "far days",
        "text",
        "whole floats",
        "floats",
        "decimal",
    ],
)
def test_persons_with_another_value_than_the_records_are_not_counted_for_it(
    ages, of_population, rare, spark, tmp_path
):
    """The control is a cast: it merges 1.4 with 1, the code 2 with true, and times with their day."""
    pq.write_table(ages, tmp_path / "records.parquet")
    people = pa.array([1] * len(of_population), pa.int64())
    pq.write_table(of_population.append_column("people", people), tmp_path / "counts.parquet")
    people_file = {"path": "counts.parquet", "count": "people"}
    spec = specification(tmp_path, {"age": VARIABLES["age"]}, population=people_file)
    frame = spark.read.parquet(str(tmp_path / "records.parquet"))
    (found,) = held([frame], population(frame, spec), spec)
    assert (found.rare, found.absent) == (rare, 0)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("ages", "of_population"),
    [
        (typed([2**24], pa.int32()), typed(np.arange(2**24 - 1, 2**24 + 2).astype("f4"), pa.float32())),
        (
            typed([Decimal("200000.01")], pa.decimal128(9, 2)),
            typed(np.arange(200_000, 200_000.05, 0.01).astype("f4"), pa.float32()),
        ),
        (typed([2**53], pa.int64()), typed([2.0**53] * 3, pa.float64())),
    ],
    ids=["whole numbers", "decimals", "doubles"],
)
def test_persons_whose_value_a_float_merges_with_others_are_not_counted(ages, of_population, spark, tmp_path):
    """Control: the register holds at least three persons whose float is cast to the record's value."""
    pq.write_table(ages, tmp_path / "records.parquet")
    people = pa.array([2] * len(of_population), pa.int64())
    pq.write_table(of_population.append_column("people", people), tmp_path / "counts.parquet")
    people_file = {"path": "counts.parquet", "count": "people"}
    spec = specification(tmp_path, {"age": VARIABLES["age"]}, population=people_file)
    frame = spark.read.parquet(str(tmp_path / "records.parquet"))
    (found,) = held([frame], population(frame, spec), spec)
    assert (found.rare, found.absent) == (0, 1)


@pytest.mark.spark
def test_population_of_a_type_that_the_records_cannot_have_is_rejected_by_name(spark, tmp_path):
    counts = typed([date(2000, 1, 1)], pa.date32()).append_column("people", pa.array([9]))
    pq.write_table(counts, tmp_path / "counts.parquet")
    people_file = {"path": "counts.parquet", "count": "people"}
    spec = specification(tmp_path, {"age": VARIABLES["age"]}, population=people_file)
    with pytest.raises(InputRejected, match=r"age: expected values of type int .* found date"):
        population(spark.createDataFrame([(2000,)], "age int"), spec)


def test_register_written_by_other_codes_does_not_count_as_safe():
    section = KMap(("sex",), Held(100, 0, 100, 0.0), Held(100, 0, 100, 0.0))
    ((share, sentence),) = KMapMeasure().attacks(section, 3)
    assert share == 1.0
    assert "not in [population]" in sentence
    incomplete = KMap(("sex",), Held(100, 0, 100, 0.0, missing=30), Held(100, 0, 100, 0.0))
    ((_, sentence),) = KMapMeasure().attacks(incomplete, 3)
    assert "100 original records, 30 of them with a missing value, are not in [population]" in sentence
    suppressed = KMap(("sex",), Held(100, 10, 0, 5.0), Held(100, 0, 10, 1.0))
    ((share, sentence),) = KMapMeasure().attacks(suppressed, 3)
    assert share == 0.0
    assert "not in [population]" not in sentence


@pytest.mark.parametrize(
    "sections",
    [
        {"quality": {"max_below_k_in_population": 0.1}},
        {"population": COUNTED | {"variables": ["region", "income"]}},
        {"population": COUNTED | {"variables": ["sex", "sex"]}},
        {"population": COUNTED | {"count": "sex"}},
    ],
    ids=["a limit without population", "a number", "a variable twice", "the count column as key"],
)
def test_population_section_that_cannot_be_counted_is_refused(sections, tmp_path):
    with pytest.raises(SpecificationError, match="population"):
        specification(tmp_path, VARIABLES, **sections)


def test_population_frequency_is_limited_only_if_specified(tmp_path):
    limited = {"max_below_k_in_population": 0.1}
    (limit,) = KMapMeasure().limits(specification(tmp_path, VARIABLES, population=COUNTED, quality=limited))
    assert (limit.key.metric, limit.at_most) == ("below_k_in_population", 0.1)
    assert not list(KMapMeasure().limits(specification(tmp_path, VARIABLES, population=COUNTED)))
