"""Tests of perturbations end to end: draws follow from key and content, and no guarantee is stated."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from microguard.pipelines.audit.release import audit
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.intake.contract import Contract
from microguard.pipelines.intake.read import microdata_from_frame
from microguard.pipelines.intake.validate import validate
from microguard.pipelines.job import Job
from microguard.pipelines.measures.pairs import ORIGINAL, SAMPLED, with_originals
from microguard.pipelines.method import record_method
from microguard.pipelines.methods import correlated_noise, rank_swapping
from microguard.pipelines.methods.perturbation import uniforms
from microguard.pipelines.publication.areas import Areas
from microguard.schemas.errors import GateRefused, InputRejected, SpecificationError
from microguard.sdc.perturbation.pram import move
from pyspark.sql import functions as f

from tests.pipelines.microdata import published, quality, run, specification

KINDS = {"pram": "nominal", "rank_swapping": "numeric", "correlated_noise": "numeric"}
NAMES = {"nominal": ("sex", "job"), "numeric": ("age", "income", "wealth")}
RECORDS = 400


def population(seed=0):
    """Return records with two nominal and three numeric variables; `note` identifies the first half of the
    records.
    """
    rng = np.random.default_rng(seed)
    size = rng.lognormal(3, 1, RECORDS)
    return pd.DataFrame(
        {
            "sex": np.array(["f", "m"])[rng.integers(0, 2, RECORDS)],
            "job": np.array(list("aaaabbc"))[rng.integers(0, 7, RECORDS)],
            "age": rng.integers(18, 40, RECORDS),
            "income": np.round(size * 100, 2),
            "wealth": np.round(size * rng.lognormal(2, 0.5, RECORDS), 2),
            "note": np.minimum(np.arange(RECORDS), RECORDS // 2),
        }
    )


def chosen(folder, method, **parameters):
    kind = KINDS[method]
    roles = {name: {"role": "quasi_identifier", "kind": kind} for name in NAMES[kind]}
    roles["note"] = {"role": "other"}
    chosen = {"name": method, "effort": "standard", "parameters": parameters}
    return specification(folder, roles, method=chosen, missing={"numeric": "own_cluster"})


def perturbed(spark, spec, frame):
    """Return the protected records without the steps of a release."""
    job = Job(spark, spec, Areas.from_places(spec.public_area, spec.evidence_area), Progress(quiet=True))
    screened = validate(microdata_from_frame(frame, spec), spec)
    protected, _ = record_method(spec).protect(job, screened, screened.frame, "0" * 32)
    names = [name for name in spec.variables if name in protected.columns]
    return protected.select(*names).toPandas().sort_values(names[::-1], ignore_index=True)


@pytest.mark.spark
def test_pram_keeps_numbers_that_are_none_as_it_keeps_missing_values(spark, tmp_path):
    """Pandas has one mark for both: a frame of Spark has NaN and null."""
    frame = population().assign(sex=lambda each: each["age"] % 3.0)
    frame.loc[frame.index % 4 == 0, "sex"] = np.nan
    spec = chosen(tmp_path, "pram")
    given = spark.createDataFrame(frame[list(spec.variables)].fillna({"sex": -1.0}))
    number = f.when(f.col("sex") < 0, float("nan")).otherwise(f.col("sex"))
    given = given.withColumn("sex", f.when(f.col("note") != 5, number))
    assert given.where("isnan(sex)").count() > 90
    after = perturbed(spark, spec, given)
    alone = frame.index[: RECORDS // 2]
    missing = frame["sex"].isna() | (frame["note"] == 5)
    assert (after.loc[alone, "sex"].isna() == missing[alone]).all()
    assert (after.loc[alone, "sex"] != frame.loc[alone, "sex"])[~missing[alone]].any()


@pytest.mark.spark
@pytest.mark.parametrize("method", KINDS)
def test_perturbation_does_not_depend_on_order_or_partitions(spark, tmp_path, method):
    spec = chosen(tmp_path, method)
    frame = population()[list(spec.variables)]
    files = [
        spark.createDataFrame(frame).coalesce(1),
        spark.createDataFrame(frame.sample(frac=1, random_state=1)).repartition(4),
    ]
    first, other = [perturbed(spark, spec, each) for each in files]
    pd.testing.assert_frame_equal(first, other)
    assert (first["note"].to_numpy() == frame["note"].to_numpy()).all()
    alone = frame.index[: RECORDS // 2]
    assert all((first.loc[alone, name] != frame.loc[alone, name]).any() for name in spec.quasi_identifiers)


@pytest.mark.spark
def test_pram_release_reports_only_the_changed_shares(spark, tmp_path):
    frame = population()[["sex", "job", "note"]].assign(note=np.arange(RECORDS))
    frame.loc[:9, "job"] = None
    frame.to_parquet(tmp_path / "data")
    spec = chosen(tmp_path, "pram", stay=0.6, transitions=[["sex", "f", "m", 0.5]])
    _, areas = run(spark, spec)
    after = published(areas).sort_values("note", ignore_index=True)
    assert (after.loc[frame["sex"] == "m", "sex"] == "m").all()
    assert 0.4 < (after.loc[frame["sex"] == "f", "sex"] == "m").mean() < 0.6
    assert (after["job"].isna() == frame["job"].isna()).all()
    changed = (after[["sex", "job"]].fillna("") != frame[["sex", "job"]].fillna("")).any(axis=1)
    assert quality(areas)["changed"]["records"] == pytest.approx(changed.mean())
    assert quality(areas)["record_linkage"]["linked"] < 1
    release = areas.public.release(areas.public.current())
    assert audit(release).passed
    manifest = json.loads((release / "manifest.json").read_text())
    assert manifest["guarantee"]["name"] == "measured only"
    assert any("less dependent than in the original records" in limit for limit in manifest["limits"])
    for folder in (release, areas.record(areas.public.current())):
        assert "No formal promise" in (folder / "report.html").read_text()


@pytest.mark.spark
def test_rank_swapping_keeps_every_value_and_moves_none_beyond_its_window(spark, tmp_path, monkeypatch):
    spec, frame = chosen(tmp_path, "rank_swapping", window=0.1), population().assign(note=np.arange(RECORDS))
    frame = frame[list(spec.variables)].astype({"age": float})
    frame.loc[:7, "age"] = None
    after = perturbed(spark, spec, spark.createDataFrame(frame))
    for name in spec.quasi_identifiers:
        before, present = frame[name].dropna().to_numpy(), frame[name].notna().to_numpy()
        assert (after[name].notna().to_numpy() == present).all()
        values = after[name].dropna().to_numpy()
        np.testing.assert_array_equal(np.sort(values), np.sort(before))
        order = np.sort(before)
        below = np.searchsorted(order, values, "left") - (np.searchsorted(order, before, "right") - 1)
        above = np.searchsorted(order, before, "left") - (np.searchsorted(order, values, "right") - 1)
        assert max(below.max(), above.max()) <= 0.1 * len(before) + 1e-9
        assert (values != before).mean() > 0.7
    monkeypatch.setattr(rank_swapping, "RANGE_RECORDS", 60)  # the size of ranges has no effect on the result
    pd.testing.assert_frame_equal(after, perturbed(spark, spec, spark.createDataFrame(frame)))


@pytest.mark.spark
def test_limits_of_rank_ranges_are_absent_from_the_spark_plan(spark):
    tall = spark.createDataFrame([(0, 3.25), (1, 3.25), (0, 7.0), (0, 7.5)], "i int, x double")
    limit = f.lit(7.015625)
    # control: a literal is found in the plan
    assert "7.015625" in tall.select(f.col("x") < limit)._jdf.queryExecution().toString()
    limits = {0: np.array([3.25, 7.015625]), 1: np.array([1.0])}
    placed = rank_swapping._in_ranges(tall, limits)
    assert [row["range"] for row in placed.sort("i", "x").collect()] == [0, 1, 2, 1]
    assert "7.015625" not in placed._jdf.queryExecution().toString()


@pytest.mark.spark
def test_exchanges_of_one_file_do_not_reveal_the_exchanges_of_another(spark, tmp_path):
    def exchanges(frame):
        """Return the partner of each rank, for an attacker with the original records."""
        spec = chosen(tmp_path, "rank_swapping", window=0.1)
        frame = frame.assign(wealth=frame["wealth"] + np.arange(RECORDS) * 1e-3, note=np.arange(RECORDS))
        after = perturbed(spark, spec, spark.createDataFrame(frame[list(spec.variables)]))
        ranks = {value: rank for rank, value in enumerate(np.sort(frame["wealth"]))}
        before = frame.set_index("note")["wealth"].sort_values()
        return np.array([ranks[value] for value in after.set_index("note")["wealth"][before.index]])

    last, now = population(0), population(1)
    known = exchanges(last)
    assert (exchanges(last) == known).all()  # control: the same file has the same exchanges
    assert (exchanges(now) == known).mean() < 0.1


@pytest.mark.spark
def test_correlated_noise_release_reports_only_its_information_loss(spark, tmp_path):
    frame = population().assign(note=np.arange(RECORDS))[["age", "income", "wealth", "note"]]
    frame["age"] = frame["age"].astype(np.int16)
    frame.to_parquet(tmp_path / "data")
    _, areas = run(spark, chosen(tmp_path, "correlated_noise", share=0.25))
    after = published(areas).sort_values("note", ignore_index=True)
    names = ["age", "income", "wealth"]
    assert after["age"].dtype == np.int16
    noise = after[names] - frame[names]
    assert noise.var().to_numpy() == pytest.approx(0.25 * frame[names].var().to_numpy(), rel=0.3)
    np.testing.assert_allclose(noise.corr(), frame[names].corr(), atol=0.2)
    found = quality(areas)
    loss = (noise**2).sum() / ((frame[names] - frame[names].mean()) ** 2).sum()
    assert found["loss"]["all"]["sampled"] == RECORDS
    for name in names:
        assert found["loss"]["all"]["by_variable"][name] == pytest.approx(loss[name])
        assert found["moments"][name]["variance_after"] == pytest.approx(after[name].var())
    assert 0 < found["record_linkage"]["linked"] < 1
    release = areas.public.release(areas.public.current())
    assert audit(release).passed
    manifest = json.loads((release / "manifest.json").read_text())
    assert manifest["guarantee"] == {
        "name": "measured only",
        "statement": manifest["guarantee"]["statement"],
        "variables": names,
    }


@pytest.mark.spark
def test_two_releases_with_different_noise_do_not_disclose_values(spark, tmp_path):
    """Control: with equal draws, x follows from x + z and x + 2 z, and the estimate errs only by rounding."""
    frame = population().assign(note=np.arange(RECORDS))[["age", "income", "wealth", "note"]]
    first, second = (
        perturbed(spark, chosen(tmp_path, "correlated_noise", share=share), spark.createDataFrame(frame))
        for share in (0.1, 0.4)
    )
    before, spread = frame["income"], frame["income"].std()
    noise = (first["income"] - before).to_numpy()
    control = 2 * (before + noise) - (before + 2 * noise)
    assert (control - before).std() < 1e-6 * spread
    assert (2 * first["income"] - second["income"] - before).std() > 0.5 * spread
    assert abs(np.corrcoef(noise, second["income"] - before)[0, 1]) < 0.3


@pytest.mark.spark
def test_noise_does_not_depend_on_the_last_bit_and_fits_the_type_of_its_column(spark, tmp_path, monkeypatch):
    frame = population().assign(note=np.arange(RECORDS), age=0.35)[["age", "income", "wealth", "note"]]
    frame["wealth"] = np.round(990 + 9 * np.random.default_rng(0).random(RECORDS), 2)
    given = spark.createDataFrame(frame).withColumn("wealth", f.col("wealth").cast("decimal(5,2)"))
    spec = chosen(tmp_path, "correlated_noise", share=4.0)
    first = perturbed(spark, spec, given)
    assert (first["age"] == 0.35).all()
    assert first["wealth"].notna().all()
    assert float(first["wealth"].max()) == 999.99
    whole = correlated_noise.factor
    monkeypatch.setattr(correlated_noise, "factor", lambda matrix: np.nextafter(whole(matrix), 2.0))
    other = perturbed(spark, spec, given)
    assert (first["income"] == other["income"]).mean() > 0.99


@pytest.mark.spark
def test_sample_of_a_perturbed_file_with_few_distinct_records_has_the_standard_size(spark, tmp_path):
    frame = population()[["sex", "job", "note"]].assign(sex="f", note=1)
    frame["job"] = np.array(["a", "b"])[np.arange(RECORDS) % 2]
    frame = pd.concat([frame] * 15, ignore_index=True)
    spec = chosen(tmp_path, "pram")
    job = Job(spark, spec, Areas.from_places(spec.public_area, spec.evidence_area), Progress(quiet=True))
    screened = validate(microdata_from_frame(spark.createDataFrame(frame), spec), spec)
    given = with_originals(screened.frame, spec, len(frame))
    protected, _ = record_method(spec).protect(job, screened, given, "0" * 32)
    drawn = protected.where(f.col(ORIGINAL).isNotNull()).toPandas()
    assert 0.9 * SAMPLED < len(drawn) < 1.1 * SAMPLED
    assert 0.1 < np.mean([row.job != row[ORIGINAL]["v1"] for _, row in drawn.iterrows()]) < 0.3


def test_largest_is_a_number_that_the_type_can_represent():
    from pyspark.sql.types import DecimalType, DoubleType, ShortType

    assert correlated_noise.largest(DecimalType(5, 2)) == 999.99
    assert 1e38 > correlated_noise.largest(DecimalType(38, 0)) > 0.99e38
    assert correlated_noise.largest(DecimalType(18, 2)) < 1e16
    assert correlated_noise.largest(ShortType()) == 32767
    assert correlated_noise.largest(DoubleType()) == np.inf


def test_noise_refuses_unsigned_numbers_by_name(tmp_path):
    frame = population().astype({"age": np.uint8})[["age", "income", "wealth", "note"]]
    spec = chosen(tmp_path, "correlated_noise", share=0.5)
    with pytest.raises(InputRejected, match=r"unsigned numbers: age\. Expected signed ones"):
        record_method(spec).accept(Contract(pa.Schema.from_pandas(frame, preserve_index=False)))


@pytest.mark.spark
def test_two_releases_of_pram_with_other_parameters_have_other_draws(spark, tmp_path):
    frame = population().assign(note=np.arange(RECORDS))[["sex", "job", "note"]]

    def moved(stay):
        spec = chosen(tmp_path, "pram", stay=stay, matrix="uniform")
        after = perturbed(spark, spec, spark.createDataFrame(frame)).sort_values("note")
        return after["job"].to_numpy() != frame["job"].to_numpy()

    seldom, often = moved(0.7), moved(0.5)
    assert (moved(0.7) == seldom).all()
    assert often[seldom].mean() < 0.8  # with equal draws the mean would be 1


@pytest.mark.spark
def test_perturbation_that_leaves_a_variable_unchanged_is_refused(spark, tmp_path):
    frame = population()[["age", "income", "wealth", "note"]].assign(note=np.arange(RECORDS))
    frame.to_parquet(tmp_path / "data")
    with pytest.raises(GateRefused, match="without a change in any compared record: age") as refused:
        run(spark, chosen(tmp_path, "correlated_noise", share=1e-7))
    assert "income" not in str(refused.value)


@pytest.mark.spark
def test_pram_refuses_a_transition_to_a_category_that_does_not_occur(spark, tmp_path):
    frame = spark.createDataFrame(population()[["sex", "job", "note"]])
    with pytest.raises(InputRejected, match=r"transitions of sex: expected categories that occur"):
        perturbed(spark, chosen(tmp_path, "pram", transitions=[["sex", "f", "x", 0.5]]), frame)


def test_attacker_without_the_key_of_pram_learns_only_the_probabilities_of_the_matrix():
    """Draws of a guessed key exclude no category; draws of the correct key identify most categories."""
    n, counts = 21_000, np.full(3, 7_000)
    codes = np.repeat(np.arange(3), counts)
    records = pa.array([int(i).to_bytes(16, "big") for i in range(n)], pa.binary())
    matrix = 0.4 * np.eye(3) + 0.6 * np.roll(np.eye(3), 1, axis=1)
    after = move(codes, matrix, uniforms(records, b"the right key", "sex"))
    joint = counts[:, None] * matrix

    def right(key):
        """Return the share of records whose likeliest category, given the draws of a key, is the original
        category.
        """
        draws = uniforms(records, key, "sex")
        possible = np.column_stack([move(np.full(n, code), matrix, draws) == after for code in range(3)])
        odds = np.where(possible | ~possible.any(axis=1, keepdims=True), joint[:, after].T, 0)
        return float((odds.argmax(axis=1) == codes).mean())

    by_matrix = joint.max(axis=0).sum() / n
    error = 4 * np.sqrt(0.25 / n)
    assert (joint.argmax(axis=0)[after] == codes).mean() == pytest.approx(by_matrix, abs=error)
    assert right(b"another key") <= by_matrix + error
    assert right(b"the right key") > by_matrix + 0.1


@pytest.mark.parametrize(
    ("method", "parameters", "message"),
    [
        ("pram", {"stay": 1.5}, "stay"),
        ("pram", {"stay": 1.0}, "stay"),
        ("rank_swapping", {"window": 0.0}, "window"),
        ("correlated_noise", {"share": 0.0}, "share"),
        ("pram", {"matrix": "free"}, "matrix"),
        ("pram", {"transitions": [["sex", "f", "m"]]}, "transitions"),
        ("pram", {"transitions": [["note", "f", "m", 0.5]]}, "a quasi-identifier: sex, job"),
        ("pram", {"transitions": [["sex", "f", "f", 0.5]]}, "two different categories"),
        ("pram", {"transitions": [["sex", "f", "m", 0.7], ["sex", "f", "x", 0.7]]}, "at most 1"),
    ],
)
def test_specification_refuses_invalid_parameters_of_a_perturbation(method, parameters, message, tmp_path):
    with pytest.raises(SpecificationError, match=message):
        chosen(tmp_path, method, **parameters)


def test_specification_refuses_groups_and_kinds_that_a_perturbation_does_not_support(tmp_path):
    roles = {"sex": {"role": "quasi_identifier", "kind": "nominal"}, "age": {"role": "quasi_identifier"}}
    method = {"name": "pram", "effort": "standard"}
    with pytest.raises(SpecificationError, match="no groups with method pram"):
        specification(
            tmp_path,
            roles | {"age": roles["sex"]},
            method=method,
            groups=[{"name": "a", "variables": ["sex"]}],
        )
    with pytest.raises(SpecificationError, match=r"max_of_one_value: .*which has no clusters"):
        specification(
            tmp_path, roles | {"age": roles["sex"]}, method=method, quality={"max_of_one_value": 0.1}
        )
    with pytest.raises(SpecificationError, match="allowed: nominal, ordinal, hierarchical with method pram"):
        specification(tmp_path, roles | {"age": roles["age"] | {"kind": "numeric"}}, method=method)
