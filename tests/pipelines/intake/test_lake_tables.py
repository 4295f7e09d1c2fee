"""A Delta, Iceberg or Hudi table is refused however its files are named; plain files near it are not."""

import shutil

import deltalake
import pandas as pd
import pytest
from microguard.pipelines.drafting.sniff import sniff
from microguard.pipelines.intake.lake_tables import refuse_lake_tables
from microguard.pipelines.intake.population import population
from microguard.pipelines.intake.read import read
from microguard.schemas.errors import InputRejected

from tests.pipelines.microdata import persons, specification

TABLES = {"delta": "a Delta table", "iceberg": "an Iceberg table", "hudi": "a Hudi table"}
#: How a user may name a table of `written`, all of it or a part, relative to the folder above it.
WAYS = {
    "the folder": "table",
    "the folder with a slash": "table/",
    "a glob over folders": "ta*",
    "a glob into it": "table/data/*/*.parquet",
    "a glob with braces": "{table,none}",
    "a folder of a partition": "table/data/region=north",
    "a folder of its files": "table/data",
    "a file": "table/data/region=north/0.parquet",
    "a link to the folder": "link",
    "a link to a file": "files/file.parquet",
    "a folder of links": "files",
    "an address": "file://{folder}/table",
}


def written(folder, kind):
    """A table of persons in `folder`/table, with files below data/region=north, and links to it."""
    data = folder / "table" / "data" / "region=north"
    data.mkdir(parents=True)
    frame = persons()
    frame.to_parquet(data / "0.parquet", index=False)
    if kind == "delta":
        (folder / "table" / "_delta_log").mkdir()
        (folder / "table" / "_delta_log" / "00000000000000000000.json").touch()
    elif kind == "iceberg":
        (folder / "table" / "metadata").mkdir()
        (folder / "table" / "metadata" / "00000-1.metadata.json").touch()
    else:
        (folder / "table" / ".hoodie").mkdir()
        (folder / "table" / ".hoodie" / "hoodie.properties").touch()
    (folder / "link").symlink_to(folder / "table")
    (folder / "files").mkdir()
    (folder / "files" / "file.parquet").symlink_to(data / "0.parquet")
    return frame


def _path(way, folder):
    named = WAYS[way].replace("{folder}", str(folder))
    return named if "://" in named else str(folder / named)


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_is_refused_with_its_format_and_what_to_do_however_it_is_named(kind, tmp_path):
    written(tmp_path, kind)
    for way in WAYS:
        if way not in ("a glob with braces", "a folder of links"):  # known once Spark has listed the files
            with pytest.raises(InputRejected, match=f"^The input is {TABLES[kind]}, .*Export") as caught:
                refuse_lake_tables([_path(way, tmp_path)], "The input")
            assert caught.value.exit_code == 3, way


def test_plain_files_beside_a_table_and_folders_named_alike_are_no_table(tmp_path):
    written(tmp_path / "lake", "delta")
    (tmp_path / "lake" / "plain" / "metadata").mkdir(parents=True)
    (tmp_path / "lake" / "plain" / "metadata" / "codes.json").touch()
    (tmp_path / "lake" / "plain" / ".hoodie").mkdir()
    (tmp_path / "lake" / "plain" / "_delta_logs").mkdir()
    for path in ("lake", "lake/plain", "lake/plain/*.parquet", "absent/[a-"):
        refuse_lake_tables([str(tmp_path / path)], "The input")


def test_a_draft_of_a_table_or_of_a_file_in_it_is_refused(tmp_path):
    written(tmp_path, "delta")
    for way in ("the folder", "a file", "a glob into it", "a link to a file", "a folder of links"):
        with pytest.raises(InputRejected, match="is a Delta table"):
            sniff(_path(way, tmp_path))


@pytest.mark.spark
def test_rows_deleted_from_a_delta_table_are_not_read(spark, tmp_path):
    deltalake.write_deltalake(tmp_path / "table", persons(), partition_by=["region"])
    deltalake.DeltaTable(tmp_path / "table").delete("age > 24")
    file = next((tmp_path / "table").rglob("*.parquet"))
    for path in ("table", "{table,none}", f"{file.parent.relative_to(tmp_path)}", f"{file}"):
        with pytest.raises(InputRejected, match="is a Delta table"):
            read(spark, specification(tmp_path, input={"path": path}))


@pytest.mark.spark
def test_every_input_that_spark_lists_is_checked(spark, tmp_path):
    frame = written(tmp_path, "iceberg")
    for way in ("a glob with braces", "a folder of links", "a file"):
        with pytest.raises(InputRejected, match="is an Iceberg table"):
            read(spark, specification(tmp_path, input={"path": WAYS[way]}))
    with pytest.raises(InputRejected, match="is an Iceberg table"):
        read(spark, specification(tmp_path, input={"path": "table", "format": "csv"}))
    frame.to_parquet(tmp_path / "data", index=False)
    counts = {"path": "table", "count": "people", "variables": ["sex", "region"]}
    with pytest.raises(InputRejected, match=r"\[population\].* is an Iceberg table"):
        population(read(spark, specification(tmp_path)).frame, specification(tmp_path, population=counts))


@pytest.mark.spark
def test_a_table_on_another_file_system_is_found_by_listing(spark, tmp_path):
    written(tmp_path, "hudi")
    (tmp_path / "plain").mkdir()
    shutil.copy(tmp_path / "table" / "data" / "region=north" / "0.parquet", tmp_path / "plain")
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set("fs.viewfs.mounttable.test.link./lake", tmp_path.as_uri())
    for path in ("table", "table/data/*", "table/data/region=north/0.parquet"):
        with pytest.raises(InputRejected, match="is a Hudi table"):
            read(spark, specification(tmp_path, input={"path": f"viewfs://test/lake/{path}"}))
    plain = read(spark, specification(tmp_path, input={"path": "viewfs://test/lake/plain"}))
    assert plain.frame.count() == len(pd.read_parquet(tmp_path / "plain"))
