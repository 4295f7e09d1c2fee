"""Tests of protection from Python: it uses the session of a frame and does not stop it."""

import json
import logging

import duckdb
import pandas as pd
import polars
import pyarrow as pa
import pytest
from microguard.pipelines.audit.release import audit
from microguard.pipelines.intake.frames import write_frame
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.staging.folder import FolderStagingArea
from microguard.schemas.errors import GateRefused, InputRejected, SpecificationError

import microguard
from tests.pipelines.microdata import persons, published, specification

pytestmark = pytest.mark.spark


def areas_of(spec):
    return Areas.from_places(spec.folder / spec.publish.path, spec.folder / spec.publish.evidence)


@pytest.fixture
def table(spark, tmp_path_factory):
    """Return a table of a catalogue."""
    spark.sql(f"CREATE DATABASE census LOCATION '{tmp_path_factory.mktemp('warehouse')}'")
    spark.createDataFrame(persons()).write.saveAsTable("census.persons")
    yield "census.persons"
    spark.sql("DROP DATABASE census CASCADE")


FRAMES = {
    "pandas": lambda frame: frame.set_index(frame.index * 2),
    "polars": polars.from_pandas,
    "lazy polars": lambda frame: polars.from_pandas(frame).lazy(),
    "arrow": pa.Table.from_pandas,
    "duckdb": lambda frame: duckdb.sql("select * from frame"),
}


@pytest.mark.parametrize("library", FRAMES)
def test_write_frame_keeps_the_records_and_types_of_every_library(spark, library, tmp_path):
    staging = FolderStagingArea(tmp_path)
    written = write_frame(spark, FRAMES[library](persons()), specification(tmp_path), staging)
    expected = pa.Table.from_pandas(persons().drop(columns="name"), preserve_index=False).schema
    plain = {each.name: str(each.type).removeprefix("large_") for each in written.contract.schema}
    assert plain == {name: str(expected.field(name).type) for name in plain}
    assert not any("CANARY" in path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*.parquet"))
    assert sorted(row.income for row in written.frame.select("income").collect()) == sorted(persons().income)


def test_pandas_frame_is_protected_and_shown_without_values_of_the_agency(spark, tmp_path):
    spec = specification(tmp_path)
    result = microguard.Protection(spec).protect(persons())
    assert result.frame.count() == len(persons())
    assert areas_of(spec).unfinished() == [result.evidence.release.release_id]
    assert len(repr(result).splitlines()) == 3
    assert "<td>met</td>" in result._repr_html_()
    found = {str(each.found) for each in result.verdicts.rows if each.found not in (0.0, 1.0, None)}
    assert found
    assert not any(each in result._repr_html_() for each in found)


def test_protect_call_protects_a_frame_and_publishes_nothing(spark):
    columns = ["region", "sex", "age", "diagnosis"]
    roles = {"region": "region", "sex": "nominal", "age": "numeric", "diagnosis": {"role": "sensitive"}}
    result = microguard.protect(persons()[columns], roles, k=4, method={"effort": "fast"})
    assert result.frame.toPandas().groupby(["region", "sex", "age"]).size().min() >= 4
    with pytest.raises(SpecificationError, match=r"\[variables\] sex"):
        microguard.protect(persons()[columns], {**roles, "sex": "nominall"})


def test_object_of_another_type_is_refused_with_the_accepted_types(spark, tmp_path):
    protection = microguard.Protection(specification(tmp_path))
    for call in (protection.check, protection.protect):
        with pytest.raises(
            InputRejected, match=r"expected a DataFrame of Spark, pandas.*found a builtins dict"
        ):
            call({"sex": ["f"]})
    mixed = persons().astype({"note": object})
    mixed.loc[0, "note"] = 7
    with pytest.raises(InputRejected, match="found several types") as rejected:
        protection.check(mixed)
    assert "n1" not in str(rejected.value)
    with pytest.raises(InputRejected, match="publish: expected the result of protect"):
        protection.publish(persons())


def lineage(areas, release_id):
    return json.loads((areas.record(release_id) / "openlineage.json").read_text())


def test_table_of_a_catalogue_is_published_without_stopping_the_session(spark, table, tmp_path, sent):
    spec = specification(tmp_path)
    protection, areas = microguard.Protection(spec), areas_of(spec)
    frame = spark.table(table)
    settings, level = dict(spark.conf.getAll), logging.getLogger().level
    checked = protection.check(frame)
    assert checked.content["records"] == 70
    result = protection.protect(frame)
    assert not areas.public.folder.exists()
    assert result.verdicts.passed
    assert result.evidence.counts.published == 70
    assert lineage(areas, result.evidence.release.release_id)["eventType"] == "RUNNING"
    protected = result.frame.toPandas()
    assert protected.groupby(["region", "sex", "age", "income"]).size().min() >= 3
    outcome = protection.publish(result)
    assert areas.public.current() == outcome.content["release_id"]
    event = lineage(areas, areas.public.current())
    assert event["eventType"] == "COMPLETE"
    assert event["outputs"][0]["name"] == areas.public.name
    assert audit(areas.public.release(areas.public.current())).passed
    columns = list(protected.columns)
    pd.testing.assert_frame_equal(
        protected.sort_values(columns, ignore_index=True), published(areas), check_dtype=False
    )
    assert dict(spark.conf.getAll) == settings
    assert logging.getLogger().level == level
    assert spark.range(3).count() == 3
    assert {path.name for path in tmp_path.iterdir()} == {"lake", "evidence", "sent"}
    with pytest.raises(GateRefused, match="already"):
        protection.protect(frame)
    states = [each["eventType"] for each in sent()]
    assert states == ["START", "COMPLETE"] * 2 + ["START", "FAIL"]
    assert [len(each["outputs"]) for each in sent()] == [0, 0, 0, 1, 0, 0]


def test_spark_frame_is_computed_once_and_a_refused_result_can_be_inspected_only(spark, tmp_path):
    passes = spark.sparkContext.accumulator(0)

    def counted(batches):
        passes.add(1)
        yield from batches

    frame = spark.createDataFrame(persons()).coalesce(1)
    frame = frame.mapInArrow(counted, frame.schema)
    spec = specification(tmp_path, quality={"max_information_loss": 0.0})
    protection, areas = microguard.Protection(spec), areas_of(spec)
    result = protection.protect(frame)
    assert passes.value == 1
    assert not result.verdicts.passed
    assert result.frame.count() == 70
    with pytest.raises(GateRefused, match="information loss"):
        protection.publish(result)
    lenient = microguard.Protection(specification(tmp_path))
    with pytest.raises(SpecificationError, match="another specification"):
        lenient.publish(result)
    assert not areas.public.folder.exists()
    assert areas.unfinished() == []
    assert lineage(areas, result.evidence.release.release_id)["eventType"] == "FAIL"


def test_frame_without_a_declared_column_is_rejected_without_a_value(spark, tmp_path):
    spec = specification(tmp_path)
    with pytest.raises(InputRejected, match="income") as rejected:
        microguard.Protection(spec).check(spark.createDataFrame(persons().drop(columns="income")))
    assert "CANARY" not in str(rejected.value)


def test_register_is_not_published_as_a_single_release(tmp_path):
    spec = specification(tmp_path, release={"name": "persons", "k": 3}, publish={"series": "register"})
    with pytest.raises(SpecificationError, match="series"):
        microguard.Protection(spec)


def test_specification_may_be_given_by_its_path(tmp_path):
    path = tmp_path / "release.toml"
    variables = {"sex": {"role": "quasi_identifier", "kind": "nominal"}}
    lines = [f"{name} = {json.dumps(each).replace(':', ' =')}" for name, each in variables.items()]
    text = "\n".join(lines).replace('"role"', "role").replace('"kind"', "kind")
    path.write_text(
        f'[release]\nname = "p"\nk = 3\n[input]\npath = "x"\n[variables]\n{text}\n'
        '[publish]\npath = "lake"\nevidence = "evidence"\n'
    )
    assert microguard.Protection(path).specification.release.k == 3
