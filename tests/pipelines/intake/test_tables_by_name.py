"""Tests of inputs named as catalogue tables, drafts for a table, and object stores without a connector."""

from __future__ import annotations

import os
import shutil

import pytest
from deltalake import write_deltalake
from microguard.pipelines.draft import draft
from microguard.pipelines.engine.catalogs import CatalogFailed
from microguard.pipelines.intake.lake_tables import table_format
from microguard.pipelines.intake.read import read
from microguard.pipelines.intake.snapshots import snapshot_of
from microguard.pipelines.publication.staging.folder import FolderStagingArea
from microguard.schemas.errors import InputRejected, SpecificationError
from microguard.schemas.specification.read import build_specification
from pyiceberg.catalog.sql import SqlCatalog

from tests.pipelines.intake.lake_writers import delta_with_deletion_vectors, persons
from tests.pipelines.intake.test_snapshots import ROLES
from tests.pipelines.microdata import content, quality, run, specification
from tests.pipelines.publication.storage.servers import S3


def of(folder, **source):
    return build_specification(content(ROLES) | {"input": source}, folder)


@pytest.fixture
def catalog(tmp_path):
    """Return a catalogue whose table has 20 persons, of which the first snapshot has 10."""
    made = SqlCatalog("default", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "lake"))
    made.create_namespace("statistics")
    table = made.create_table("statistics.persons", persons(0, 1, "north").schema)
    table.append(persons(0, 10, "north"))
    table.append(persons(10, 20, "south"))
    return table


def test_snapshot_of_a_catalogue_table_is_the_current_or_the_named_one(catalog, tmp_path):
    named = {"catalog": "sqlite:///catalog.db", "table": "statistics.persons"}
    snapshot = snapshot_of(of(tmp_path, **named))
    assert snapshot.name == f"iceberg snapshot {catalog.current_snapshot().snapshot_id}"
    assert sorted(snapshot.batches(["person_id"]).read_all()["person_id"].to_pylist()) == list(range(20))
    first = catalog.snapshots()[0].snapshot_id
    earlier = snapshot_of(of(tmp_path, **named, version=first))
    assert earlier.batches(["person_id"]).read_all().num_rows == 10


def test_missing_table_and_failing_catalogue_are_refused_without_the_error_text(tmp_path, catalog):
    with pytest.raises(InputRejected, match=r"'statistics\.firms' does not exist in the catalogue"):
        snapshot_of(of(tmp_path, catalog="sqlite:///catalog.db", table="statistics.firms"))
    with pytest.raises(CatalogFailed, match=r"\[input\] catalog = .*pip install"):
        snapshot_of(of(tmp_path, catalog="sqlite:///no/such/folder.db", table="statistics.persons"))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({}, r"\[input\] path: found nothing"),
        ({"path": "a", "table": "b.c"}, "not applicable next to input.path"),
        ({"path": "a", "catalog": "lake"}, "not applicable without input.table"),
        ({"table": "b.c", "format": "csv"}, "not applicable to a table"),
        ({"table": "b.c", "catalog": "https://me:CANARY@host"}, "without user, password"),
    ],
)
def test_input_is_a_path_or_a_table(source, message, tmp_path):
    with pytest.raises(SpecificationError, match=message) as refused:
        of(tmp_path, **source)
    assert "CANARY" not in str(refused.value)


def test_draft_of_the_folder_of_a_delta_table_reads_its_current_records(tmp_path):
    ids = delta_with_deletion_vectors(tmp_path / "table")
    drafted = draft(str(tmp_path / "table")).content
    assert drafted["records"] == len(ids)
    assert drafted["variables"]["region"]["role"] == "region"
    with pytest.raises(InputRejected, match="is a Delta table, or a part of one"):
        draft(str(next((tmp_path / "table").glob("region=*"))))


def test_run_reads_a_table_of_the_spark_catalogue_once_and_names_it_in_the_evidence(spark, tmp_path):
    frame = spark.createDataFrame(persons(0, 200, "north").to_pandas())
    spark.sql("CREATE DATABASE IF NOT EXISTS office")
    frame.write.mode("overwrite").option("path", str(tmp_path / "stored")).saveAsTable("office.persons")
    try:
        spec = of(tmp_path, table="office.persons")
        staging = FolderStagingArea(tmp_path / "private")
        microdata = read(spark, spec, lambda: staging)
        shutil.rmtree(tmp_path / "stored")  # after the first read, the run does not need the table any more
        assert microdata.frame.count() == 200
        assert "person_id" not in microdata.raw.columns
        frame.write.mode("overwrite").option("path", str(tmp_path / "stored")).saveAsTable("office.persons")
        _, areas = run(spark, spec, ())
        assert quality(areas)["release"]["snapshot"] == "table office.persons of Spark's catalogue"
        with pytest.raises(InputRejected, match="does not exist in the catalogue of Spark"):
            read(spark, of(tmp_path, table="office.firms"), lambda: staging)
    finally:
        spark.sql("DROP DATABASE office CASCADE")


@pytest.mark.parametrize("scheme", ["s3", "s3a", "gs", "abfss"])
def test_refusal_of_an_object_store_names_the_missing_connector(spark, scheme, tmp_path):
    spec = specification(tmp_path, ROLES, input={"path": f"{scheme}://bucket@host/persons"})
    with pytest.raises(
        InputRejected, match=f"expected a Spark with the connector for {scheme}://"
    ) as refused:
        read(spark, spec, lambda: FolderStagingArea(tmp_path / "private"))
    assert {"s3": "hadoop-aws", "gs": "gcs-connector", "ab": "hadoop-azure"}[scheme[:2]] in str(refused.value)


def test_snapshot_of_a_table_in_an_object_store_needs_no_connector_of_spark(tmp_path, monkeypatch):
    for name in [each for each in os.environ if each.startswith("AWS_")]:
        monkeypatch.delenv(name)
    with S3.started() as server:
        for name, value in S3.settings(server).items():
            monkeypatch.setenv(name, value)
        bucket = S3.make(server, "lake-of-inputs")
        write_deltalake(f"{bucket}/delta", persons(0, 10, "north"))
        write_deltalake(f"{bucket}/delta", persons(10, 30, "south"), mode="append")
        store = {"s3.endpoint": server, "s3.region": "us-east-1"}
        made = SqlCatalog("other", uri=f"sqlite:///{tmp_path}/other.db", warehouse=bucket, **store)
        made.create_namespace("office")
        table = made.create_table("office.persons", persons(0, 1, "north").schema)
        table.append(persons(0, 10, "north"))
        for source, records in (({"path": f"{bucket}/delta"}, 30), ({"path": table.metadata_location}, 10)):
            assert snapshot_of(of(tmp_path, **source)).batches(["region"]).read_all().num_rows == records
        assert table_format(table.location()) == "iceberg"
        assert table_format(f"{bucket}/delta/region=north") is None
