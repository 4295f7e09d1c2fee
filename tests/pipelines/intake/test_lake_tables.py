"""Tests that Delta, Iceberg and Hudi tables are refused as inputs in every form of path; plain files are
accepted.
"""

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
#: Paths by which a user may name the table of `written` or a part of it, relative to its parent folder.
PATH_FORMS = {
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
    """Write a table of persons to `folder`/table, with files below data/region=north and links to it."""
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


def _path(form, folder):
    named = PATH_FORMS[form].replace("{folder}", str(folder))
    return named if "://" in named else str(folder / named)


@pytest.mark.parametrize("kind", TABLES)
def test_refuse_lake_tables_names_the_format_for_every_form_of_path(kind, tmp_path):
    written(tmp_path, kind)
    for form in PATH_FORMS:
        if form not in (
            "a glob with braces",
            "a folder of links",
        ):  # the refusal follows after Spark has listed the files
            with pytest.raises(InputRejected, match=f"^The input is {TABLES[kind]}, .*Export") as caught:
                refuse_lake_tables([_path(form, tmp_path)], "The input")
            assert caught.value.exit_code == 3, form


def test_refuse_lake_tables_accepts_plain_files_next_to_a_table(tmp_path):
    written(tmp_path / "lake", "delta")
    (tmp_path / "lake" / "plain" / "metadata").mkdir(parents=True)
    (tmp_path / "lake" / "plain" / "metadata" / "codes.json").touch()
    (tmp_path / "lake" / "plain" / ".hoodie").mkdir()
    (tmp_path / "lake" / "plain" / "_delta_logs").mkdir()
    for path in ("lake", "lake/plain", "lake/plain/*.parquet", "absent/[a-"):
        refuse_lake_tables([str(tmp_path / path)], "The input")


def test_draft_refuses_a_lake_table_and_a_file_in_it(tmp_path):
    written(tmp_path, "delta")
    for form in ("the folder", "a file", "a glob into it", "a link to a file", "a folder of links"):
        with pytest.raises(InputRejected, match="is a Delta table"):
            sniff(_path(form, tmp_path))


@pytest.mark.spark
def test_read_refuses_a_delta_table_with_deleted_rows(spark, tmp_path):
    deltalake.write_deltalake(tmp_path / "table", persons(), partition_by=["region"])
    deltalake.DeltaTable(tmp_path / "table").delete("age > 24")
    file = next((tmp_path / "table").rglob("*.parquet"))
    for path in ("{table,none}", f"{file.parent.relative_to(tmp_path)}", f"{file}"):
        with pytest.raises(InputRejected, match="is a Delta table"):
            read(spark, specification(tmp_path, input={"path": path}))


@pytest.mark.spark
def test_read_checks_input_and_population_for_lake_tables(spark, tmp_path):
    frame = written(tmp_path, "iceberg")
    for form in ("a glob with braces", "a folder of links", "a file"):
        with pytest.raises(InputRejected, match="is an Iceberg table"):
            read(spark, specification(tmp_path, input={"path": PATH_FORMS[form]}))
    with pytest.raises(InputRejected, match="is an Iceberg table"):
        read(spark, specification(tmp_path, input={"path": "table", "format": "csv"}))
    frame.to_parquet(tmp_path / "data", index=False)
    counts = {"path": "table", "count": "people", "variables": ["sex", "region"]}
    with pytest.raises(InputRejected, match=r"\[population\].* is an Iceberg table"):
        population(read(spark, specification(tmp_path)).frame, specification(tmp_path, population=counts))


@pytest.mark.spark
def test_refuse_lake_tables_lists_folders_of_other_file_systems(spark, tmp_path):
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
