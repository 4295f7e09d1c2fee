"""Protection from Python: the frames of a host's session, which goes on as it was."""

import json
import logging

import pandas as pd
import pytest
from microguard.pipelines.audit.release import audit
from microguard.pipelines.publication.areas import Areas
from microguard.schemas.errors import GateRefused, InputRejected, SpecificationError

import microguard
from tests.pipelines.microdata import persons, published, specification

pytestmark = pytest.mark.spark


def areas_of(spec):
    return Areas.from_places(spec.folder / spec.publish.path, spec.folder / spec.publish.evidence)


@pytest.fixture
def table(spark, tmp_path_factory):
    """A table of a catalogue."""
    spark.sql(f"CREATE DATABASE census LOCATION '{tmp_path_factory.mktemp('warehouse')}'")
    spark.createDataFrame(persons()).write.saveAsTable("census.persons")
    yield "census.persons"
    spark.sql("DROP DATABASE census CASCADE")


def test_a_frame_of_pandas_is_refused_with_the_way_to_one_of_spark(tmp_path):
    protection = microguard.Protection(specification(tmp_path))
    for call in (protection.check, protection.protect):
        with pytest.raises(InputRejected, match=r"pandas DataFrame: .* spark.createDataFrame"):
            call(persons())
    with pytest.raises(InputRejected, match="publish takes what protect answered"):
        protection.publish(persons())


def lineage(areas, release_id):
    return json.loads((areas.record(release_id) / "openlineage.json").read_text())


def test_a_table_of_a_catalogue_is_checked_protected_and_published_on_a_session_that_goes_on(
    spark, table, tmp_path
):
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
    assert {path.name for path in tmp_path.iterdir()} == {"lake", "evidence"}
    with pytest.raises(GateRefused, match="already"):
        protection.protect(frame)


def test_a_result_that_the_gate_refuses_is_there_to_look_at_and_is_not_published(spark, tmp_path):
    spec = specification(tmp_path, quality={"max_information_loss": 0.0})
    protection, areas = microguard.Protection(spec), areas_of(spec)
    result = protection.protect(spark.createDataFrame(persons()))
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


def test_a_frame_without_a_declared_column_is_rejected_without_a_value(spark, tmp_path):
    spec = specification(tmp_path)
    with pytest.raises(InputRejected, match="income") as rejected:
        microguard.Protection(spec).check(spark.createDataFrame(persons().drop(columns="income")))
    assert "CANARY" not in str(rejected.value)


def test_a_register_is_not_published_as_if_it_stood_alone(tmp_path):
    spec = specification(tmp_path, release={"name": "persons", "k": 3}, publish={"series": "register"})
    with pytest.raises(SpecificationError, match="series"):
        microguard.Protection(spec)


def test_a_specification_may_be_named_by_its_path(tmp_path):
    path = tmp_path / "release.toml"
    variables = {"sex": {"role": "quasi_identifier", "kind": "nominal"}}
    lines = [f"{name} = {json.dumps(each).replace(':', ' =')}" for name, each in variables.items()]
    text = "\n".join(lines).replace('"role"', "role").replace('"kind"', "kind")
    path.write_text(
        f'[release]\nname = "p"\nk = 3\n[input]\npath = "x"\n[variables]\n{text}\n'
        '[publish]\npath = "lake"\nevidence = "evidence"\n'
    )
    assert microguard.Protection(path).specification.release.k == 3
