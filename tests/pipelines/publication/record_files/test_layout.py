"""Tests of partitioned and CSV layouts: what readers get, and which changes the audit detects."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import frictionless
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.audit.release import audit
from microguard.pipelines.check import risk_of
from microguard.pipelines.engine.files import checksum
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.intake.read import read
from microguard.pipelines.job import Job
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.ledger import Ledger
from microguard.pipelines.publication.record_files.csv_file import CSV
from microguard.pipelines.records import product
from microguard.pipelines.verify import verify
from microguard.pipelines.withdraw import withdraw
from microguard.schemas.errors import InputRejected, ProtectionFailed

from tests.pipelines.microdata import persons, run, specification
from tests.pipelines.releases import contents

pytestmark = pytest.mark.spark
REGIONS = {"north": "Noord/West", "south": "Köln 50%", "west": "a=b+c"}
FOLDERS = {"Noord/West": "Noord%2FWest", "Köln 50%": "Köln%2050%25", "a=b+c": "a%3Db%2Bc"}
NOTES = ("=1+1", "", "two\r\nlines", 'a "quote"', "comma, dot", None, " blank ")
LAYOUT = {"partition_by": "region", "csv": True}
FAST = {"effort": "fast"}


def wild() -> pd.DataFrame:
    """Return regions whose names are invalid as folder names, and texts that CSV must escape."""
    frame = persons()
    notes = frame["note"].map(lambda note: NOTES[int(note[1])])
    return frame.assign(region=frame["region"].map(REGIONS), note=notes)


@pytest.fixture(scope="module")
def areas(spark, tmp_path_factory) -> Areas:
    # a folder name that looks like a partition and is no partition
    folder = tmp_path_factory.mktemp("layout") / "env=test"
    folder.mkdir()
    wild().to_parquet(folder / "data", index=False)
    return run(spark, specification(folder, method=FAST, publish=LAYOUT), ())[1]


@pytest.fixture(scope="module")
def release(areas) -> Path:
    return areas.public.release(areas.public.current())


@pytest.fixture
def copy(release, tmp_path) -> Path:
    """Return a copy of the release that an attacker can change."""
    return shutil.copytree(release, tmp_path / release.name)


def manifest_of(folder: Path) -> dict:
    return json.loads((folder / "manifest.json").read_text())


def ordered(frame: pd.DataFrame) -> pd.DataFrame:
    """Return records in a canonical order, with equal missing values and types common to all readers."""
    frame = frame[["region", "sex", "age", "income", "diagnosis", "weight", "note"]]
    frame = frame.astype({"age": "int64", "weight": "float64"})
    texts = {name: frame[name].astype(object) for name in ("region", "sex", "diagnosis", "note")}
    frame = frame.assign(**texts)
    frame = frame.where(frame.notna(), None)
    return frame.sort_values(list(frame.columns), ignore_index=True, key=lambda column: column.map(repr))


def by_pandas(folder: Path) -> pd.DataFrame:
    return pd.read_parquet(folder / "microdata")


def by_arrow(folder: Path) -> pd.DataFrame:
    return ds.dataset(folder / "microdata", partitioning="hive").to_table().to_pandas()


def by_duckdb(folder: Path) -> pd.DataFrame:
    files = f"{folder}/microdata/*/*.parquet"
    return duckdb.sql(f"FROM read_parquet('{files}', hive_partitioning = true)").df()


def by_polars(folder: Path) -> pd.DataFrame:
    polars = pytest.importorskip("polars")
    return pd.DataFrame(polars.read_parquet(folder / "microdata").to_dict(as_series=False))


def csv_by_duckdb(folder: Path) -> pd.DataFrame:
    return duckdb.sql(f"FROM read_csv('{folder / CSV}', allow_quoted_nulls = false)").df()


@pytest.mark.parametrize("read", [by_pandas, by_arrow, by_duckdb, by_polars, csv_by_duckdb])
def test_readers_of_partitioned_files_get_the_records_with_their_region(
    read: Callable[[Path], pd.DataFrame], release
):
    expected = pd.concat(
        [
            pq.ParquetFile(path).read().to_pandas().assign(region=region)
            for region, name in zip(
                REGIONS.values(), ("Noord%2FWest", "Köln%2050%25", "a%3Db%2Bc"), strict=True
            )
            for path in (release / "microdata" / f"region={name}").glob("*.parquet")
        ]
    )
    assert len(expected) == len(persons())
    pd.testing.assert_frame_equal(ordered(read(release)), ordered(expected), check_dtype=False)


def test_spark_reads_partitioned_files_with_and_without_type_inference(spark, release):
    key = "spark.sql.sources.partitionColumnTypeInference.enabled"
    before = spark.conf.get(key)
    try:
        for guessing in ("true", "false"):
            spark.conf.set(key, guessing)
            frame = spark.read.parquet(str(release / "microdata"))
            assert dict(frame.dtypes)["region"] == "string"
            assert {row.region for row in frame.select("region").distinct().collect()} == set(
                REGIONS.values()
            )
        spark.sql(f"CREATE TABLE partitioned USING parquet LOCATION '{release / 'microdata'}'")
        spark.sql("MSCK REPAIR TABLE partitioned")
        assert spark.table("partitioned").where("region = 'a=b+c'").count() > 0
        assert spark.table("partitioned").count() == len(persons())
    finally:
        spark.sql("DROP TABLE IF EXISTS partitioned")
        spark.conf.set(key, before)


def test_published_expectation_suite_has_the_columns_that_readers_get(spark, areas, release):
    suite = json.loads((areas.record(release.name) / "expectations" / "published.suite.json").read_text())
    (listed,) = [each["kwargs"] for each in suite["expectations"] if "column_list" in each["kwargs"]]
    assert listed["column_list"] == spark.read.parquet(str(release / "microdata")).columns


def test_csv_contains_the_records_of_the_parquet_files_in_their_order(release):
    lines = pd.read_csv(release / CSV, keep_default_na=False, na_values={"note": []}).drop(columns="note")
    files = sorted((release / "microdata").rglob("*.parquet"))
    rows = pd.concat([pq.ParquetFile(path).read().to_pandas() for path in files], ignore_index=True)
    pd.testing.assert_frame_equal(lines.drop(columns="region"), rows.drop(columns="note"), check_dtype=False)
    text = (release / CSV).read_bytes().decode("utf-8")
    assert text.startswith('"region","sex","age","income","diagnosis","weight","note"\r\n')
    assert '"two\r\nlines"\r\n' in text
    assert ',""\r\n' in text  # an empty text
    assert ",\r\n" in text  # a missing value


def test_order_of_published_records_is_independent_of_the_input_order(spark, tmp_path, release):
    wild().sample(frac=1, random_state=5).to_parquet(tmp_path / "data", index=False)
    _, shuffled = run(spark, specification(tmp_path, method=FAST, publish=LAYOUT), ())
    other = shuffled.public.release(shuffled.public.current())
    names = [name for name in manifest_of(release)["files"] if name.endswith((".parquet", ".csv"))]
    assert {name: checksum(release / name) for name in names} == {
        name: checksum(other / name) for name in names
    }


def test_manifest_page_and_descriptor_describe_the_layout(release, monkeypatch):
    manifest, page = manifest_of(release), (release / "report.html").read_text()
    assert manifest["partitioned_by"] == "region"
    assert manifest["csv"]["file"] == CSV
    assert {each["name"]: each["type"] for each in manifest["columns"]}["region"] == "string"
    assert "import these columns as text" in manifest["limits"][-1]
    assert "unchanged, in note:" in manifest["limits"][-1]
    assert "microdata.csv" in page
    assert "microdata/region=value" in page
    monkeypatch.chdir(release)  # frictionless accepts no path outside its folder
    package = frictionless.Package("datapackage.json")
    assert package.validate().flatten(["type", "note"]) == []
    assert len(package.get_resource(CSV).read_rows()) == manifest["records"]
    content = json.loads(Path("datapackage.json").read_text())
    assert content["partitionedBy"]["statistics"]["values"] == manifest["records"]
    regions = [each["partition"]["region"] for each in content["resources"] if "partition" in each]
    assert sorted(regions) == sorted(REGIONS.values())


def test_partitioned_release_is_verified_from_its_files_alone(areas):
    text = verify(str(areas.public.folder)).text
    assert "partitions: in each of them every combination has at least k = 3 records" in text
    assert "CSV: 0 records differ" in text


def sealed(folder: Path) -> Path:
    """Rewrite manifest and descriptor so that they match the current files."""
    manifest = manifest_of(folder)
    package = json.loads((folder / "datapackage.json").read_text())
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != "manifest.json"]
    names = {path.relative_to(folder).as_posix(): path for path in paths}
    package["resources"] = [each for each in package["resources"] if each["path"] in names]
    for each in package["resources"]:
        path = names[each["path"]]
        each["hash"] = f"sha256:{checksum(path)}"
        if "bytes" in each:
            each["bytes"] = path.stat().st_size
        if path.suffix == ".parquet":
            each["rows"] = pq.read_metadata(path).num_rows
    (folder / "datapackage.json").write_text(json.dumps(package))
    files = {name: {"sha256": checksum(path), "bytes": path.stat().st_size} for name, path in names.items()}
    (folder / "manifest.json").write_text(json.dumps(manifest | {"files": files}))
    return folder


def failed(folder: Path) -> set[str]:
    return {finding.check for finding in audit(folder).findings if not finding.passed}


def test_audit_passes_a_copy_with_new_checksums(copy):
    assert failed(sealed(copy)) == set()


def test_audit_detects_a_file_in_the_folder_of_another_region(copy):
    one, other, _ = sorted((copy / "microdata").iterdir())
    (one / "part-00000.parquet").rename(other / "part-00001.parquet")
    assert failed(copy) == {"checksums"}
    package = json.loads((copy / "datapackage.json").read_text())
    for each in package["resources"]:
        if each["path"] == f"microdata/{one.name}/part-00000.parquet":
            each["path"] = f"microdata/{other.name}/part-00001.parquet"
    (copy / "datapackage.json").write_text(json.dumps(package))
    assert failed(sealed(copy)) == {"description"}
    for each in package["resources"]:
        if each["path"] == f"microdata/{other.name}/part-00001.parquet":
            each["partition"] = next(
                more["partition"]
                for more in package["resources"]
                if more["path"] == f"microdata/{other.name}/part-00000.parquet"
            )
    (copy / "datapackage.json").write_text(json.dumps(package))
    assert {"tables", "CSV"} <= failed(sealed(copy))


def test_audit_detects_a_record_that_left_its_class(copy):
    folder = min((copy / "microdata").iterdir())
    table = pq.ParquetFile(folder / "part-00000.parquet").read()
    ages = table["age"].to_pylist()
    position, kind = table.schema.get_field_index("age"), table.schema.field("age").type
    pq.write_table(
        table.set_column(position, "age", pa.array([ages[0] + 60, *ages[1:]], kind)),
        folder / "part-00000.parquet",
    )
    found = {finding.check: finding for finding in audit(sealed(copy)).findings}
    assert not found["partitions"].passed
    assert found["partitions"].detail == "1 folders have a combination of all with fewer than 3 records"
    assert not found["CSV"].passed


@pytest.mark.parametrize("name", ["district=a%3Db%2Bc", "a%3Db%2Bc", "region=a%3db%2Bc"])
def test_audit_detects_a_folder_without_a_region(name, copy):
    folder = copy / "microdata" / "region=a%3Db%2Bc"
    if name.startswith("region="):  # the folder of a region in another spelling
        shutil.copytree(folder, copy / "microdata" / name)
    else:
        folder.rename(copy / "microdata" / name)
    package = json.loads((copy / "datapackage.json").read_text())
    for each in [*package["resources"]]:
        if each["path"].startswith("microdata/region=a%3Db%2Bc"):
            moved = each | {"path": f"microdata/{name}/part-00000.parquet", "name": "moved"}
            package["resources"].append(moved)
    (copy / "datapackage.json").write_text(json.dumps(package))
    assert failed(sealed(copy)) & {"partitions", "description"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b",\r\n", b',""\r\n'),
        (b',""\r\n', b",\r\n"),
        (b'"=1+1"', b'"=1+2"'),
        (b'" blank "', b'"blank"'),
        (b'"region"', b'"Region"'),
    ],
    ids=["missing", "empty text", "value", "blanks", "name of a column"],
)
def test_audit_detects_a_csv_with_other_values(old, new, copy):
    content = (copy / CSV).read_bytes()
    assert old in content
    (copy / CSV).write_bytes(content.replace(old, new, 1))
    assert failed(copy) == {"checksums"}
    assert failed(sealed(copy)) == {"CSV"}


@pytest.mark.parametrize("change", ["a line less", "a line more", "other order", "not UTF-8", "no text"])
def test_audit_detects_a_csv_with_other_lines(change, copy):
    header, *lines = (copy / CSV).read_bytes().split(b'\r\n"')
    if change == "a line less":
        lines = lines[:-1]
    elif change == "a line more":
        lines.append(lines[0])
    elif change == "other order":
        lines[0], lines[-1] = lines[-1].removesuffix(b"\r\n"), lines[0] + b"\r\n"
    elif change == "not UTF-8":
        lines[0] = lines[0].replace(b",", b"\xff,", 1)
    content = b"" if change == "no text" else b'\r\n"'.join([header, *lines])
    (copy / CSV).write_bytes(content)
    assert "CSV" in failed(sealed(copy))


def test_region_that_no_folder_name_can_represent_is_refused_before_protection(spark, tmp_path):
    codes = {"north": "007", "south": "7", "west": "west"}
    frame = persons()
    frame.assign(region=frame["region"].map(codes)).to_parquet(tmp_path / "data", index=False)
    spec = specification(tmp_path, method=FAST, publish=LAYOUT)
    areas = Areas.from_places(spec.public_area, spec.evidence_area)
    checked = Job(spark, spec, areas, Progress(quiet=True))
    for verb in (lambda: run(spark, spec), lambda: risk_of(checked, read(spark, spec))):
        with pytest.raises(InputRejected, match="2 of 3 values of region would be misread") as refused:
            verb()
        assert "north" not in str(refused.value).replace('"north"', "")
    assert not (tmp_path / "lake").exists()


def exchange_regions(folder: Path) -> None:
    """Exchange the names of the folders of two regions; a second call restores the names."""
    one, other, _ = sorted((folder / "microdata").iterdir())
    for source, target in ((one, "aside"), (other, one.name), (one.with_name("aside"), other.name)):
        source.rename(source.with_name(target))


def test_partitioned_release_altered_in_staging_is_refused(spark, tmp_path, monkeypatch):
    """The comparison detects a file in the folder of another region, and a changed value in the CSV."""
    wild().to_parquet(tmp_path / "data", index=False)
    read_back = product.Records.read_back

    def altering(self, job, protected, staged):
        exchange_regions(staged.folder)
        assert not read_back(self, job, protected, staged).as_staged
        exchange_regions(staged.folder)
        assert read_back(self, job, protected, staged).as_staged
        content = (staged.folder / CSV).read_bytes()
        (staged.folder / CSV).write_bytes(content.replace(b'"=1+1"', b'"=1+2"', 1))
        return read_back(self, job, protected, staged)

    monkeypatch.setattr(product.Records, "read_back", altering)
    with pytest.raises(ProtectionFailed, match="the files contain the protected values"):
        run(spark, specification(tmp_path, method=FAST, publish=LAYOUT), ())
    assert not (tmp_path / "lake" / "current.json").exists()


def test_delta_release_can_also_have_a_csv(spark, tmp_path):
    wild().to_parquet(tmp_path / "data", index=False)
    _, areas = run(
        spark, specification(tmp_path, method=FAST, publish={"csv": True, "format": "iceberg"}), ()
    )
    folder = areas.public.release(areas.public.current())
    assert {"CSV", "Iceberg table"} <= {finding.check for finding in audit(folder).findings}
    assert audit(folder).passed
    withdraw(str(folder))
    assert contents(areas) == set()


def test_withdraw_removes_partition_folders_and_csv(spark, tmp_path):
    numbers = {"north": 1, "south": -2, "west": 30}
    frame = persons()
    regions = frame["region"].map(numbers).astype(np.int8)
    frame.assign(region=regions).to_parquet(tmp_path / "data", index=False)
    _, areas = run(spark, specification(tmp_path, method=FAST, publish=LAYOUT), ())
    folder = areas.public.release(areas.public.current())
    assert {path.name for path in (folder / "microdata").iterdir()} == {"region=1", "region=-2", "region=30"}
    assert audit(folder).passed
    assert set(by_pandas(folder)["region"]) == {1, -2, 30}
    withdraw(str(folder))
    assert contents(areas) == set()
    assert Ledger(areas).published() == []
