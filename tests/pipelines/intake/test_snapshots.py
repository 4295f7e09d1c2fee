"""Tests of snapshots of Delta and Iceberg tables: they have the records that another engine counts, or are
refused.
"""

import json
import os
import shutil

import deltalake
import duckdb
import pandas as pd
import pyarrow as pa
import pytest
from microguard.pipelines.intake.read import read
from microguard.pipelines.intake.snapshots import snapshot_of
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.staging.folder import FolderStagingArea
from microguard.schemas.errors import InputRejected, SpecificationError

from tests.pipelines.intake.lake_writers import (
    delta_with_deletion_vectors,
    iceberg_with_position_deletes,
    persons,
)
from tests.pipelines.microdata import quality, run, specification

ROLES = {
    "person_id": {"role": "identifier"},
    "region": {"role": "region"},
    "sex": {"role": "quasi_identifier", "kind": "nominal"},
    "income": {"role": "quasi_identifier", "kind": "numeric"},
}


def of(folder, **source):
    return specification(folder, ROLES, input={"path": "table", **source})


def current_metadata(folder):
    return max((folder / "metadata").glob("*.metadata.json"))


def ids(snapshot):
    return snapshot.batches(["person_id"]).read_all()["person_id"].to_pylist()


def test_snapshot_of_delta_applies_deletion_vectors_and_partition_values(tmp_path):
    expected = delta_with_deletion_vectors(tmp_path / "table")
    snapshot = snapshot_of(of(tmp_path))
    assert snapshot.name == "delta version 4"
    assert sorted(ids(snapshot)) == sorted(expected)
    records = snapshot.batches(["region", "sex", "income"]).read_all()
    by_region = duckdb.sql(
        "select region, count(*), sum(income) from records group by 1 order by 1"
    ).fetchall()
    frame = pd.concat([persons(0, 100, "north").to_pandas(), persons(100, 200, "south").to_pandas()])
    kept = frame[frame.person_id.isin(expected)].groupby("region").income
    assert by_region == [(name, len(each), each.sum()) for name, each in kept]
    assert records.schema.field("region").type == pa.string()


@pytest.mark.parametrize(("version", "expected"), [(0, 100), (1, 200), (2, 190), (3, 181)])
def test_snapshot_of_delta_reads_the_named_version(version, expected, tmp_path):
    delta_with_deletion_vectors(tmp_path / "table")
    assert len(ids(snapshot_of(of(tmp_path, version=version)))) == expected


def set_commit_times(table, in_log, of_files):
    """Set the times of the versions of a Delta table in hours since 2026-01-01, UTC."""
    start = pd.Timestamp("2026-01-01", tz="UTC").timestamp()
    for version, (hour, hour_of_file) in enumerate(zip(in_log, of_files, strict=True)):
        file = table / "_delta_log" / f"{version:020}.json"
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        for action in actions:
            if "commitInfo" in action:
                action["commitInfo"]["timestamp"] = int(start + 3600 * hour) * 1000
        file.write_text("\n".join(map(json.dumps, actions)))
        os.utime(file, (start + 3600 * hour_of_file,) * 2)


def test_snapshot_of_delta_reads_the_version_at_a_time(tmp_path):
    delta_with_deletion_vectors(tmp_path / "table")
    set_commit_times(tmp_path / "table", range(1, 6), range(1, 6))
    for hour, version in (("01:00", 0), ("02:30", 1), ("04:59", 3), ("23:00", 4)):
        snapshot = snapshot_of(of(tmp_path, timestamp=f"2026-01-01T{hour}:00"))
        assert snapshot.name == f"delta version {version}"
    assert snapshot_of(of(tmp_path, timestamp="2026-01-01T03:30:00+01:00")).name == "delta version 1"
    with pytest.raises(InputRejected, match=r"input\.timestamp names no existing snapshot"):
        snapshot_of(of(tmp_path, timestamp="2026-01-01T00:59:00"))


def test_snapshot_of_a_copied_delta_table_refuses_a_time_without_modification_times(tmp_path):
    delta_with_deletion_vectors(tmp_path / "table")
    set_commit_times(tmp_path / "table", range(1, 6), [30] * 5)
    with pytest.raises(InputRejected, match=r"Set input\.version"):
        snapshot_of(of(tmp_path, timestamp="2026-01-01T03:30:00"))


def test_snapshot_of_iceberg_reads_the_snapshot_at_a_time(tmp_path):
    folder, _, snapshots = iceberg_with_position_deletes(tmp_path / "warehouse")
    current = current_metadata(folder)
    metadata = json.loads(current.read_text())
    first, second = (each["timestamp-ms"] for each in metadata["snapshot-log"][:2])
    for moment in (first, second - 1):
        time = pd.Timestamp(moment, unit="ms", tz="UTC").isoformat()
        assert (
            snapshot_of(of(tmp_path, path=str(current), timestamp=time)).name
            == f"iceberg snapshot {snapshots[0]}"
        )
    before = pd.Timestamp(first - 1, unit="ms", tz="UTC").isoformat()
    with pytest.raises(InputRejected, match=r"input\.timestamp names no existing snapshot"):
        snapshot_of(of(tmp_path, path=str(current), timestamp=before))


def test_snapshot_of_iceberg_applies_position_deletes_and_renames(tmp_path):
    folder, expected, snapshots = iceberg_with_position_deletes(tmp_path / "warehouse")
    current = str(current_metadata(folder))
    snapshot = snapshot_of(of(tmp_path, path=current))
    assert snapshot.name == f"iceberg snapshot {snapshots[-1]}"
    assert sorted(ids(snapshot)) == sorted(expected)
    assert snapshot.schema.names == ["person_id", "region", "sex", "earnings"]
    earnings = snapshot.batches(["earnings", "person_id"]).read_all().to_pydict()
    assert earnings["earnings"] == [1000.0 + each for each in earnings["person_id"]]
    assert len(ids(snapshot_of(of(tmp_path, path=current, version=snapshots[0])))) == 100


def test_snapshot_of_iceberg_has_the_records_that_duckdb_recounts_from_its_files(tmp_path):
    pytest.importorskip("polars")
    from tests.pipelines.intake.iceberg_recount import recount_iceberg

    folder, _, snapshots = iceberg_with_position_deletes(tmp_path / "warehouse")
    current = current_metadata(folder)
    for snapshot_id, names in zip(snapshots, (["income"], ["earnings"], ["earnings"]), strict=True):
        snapshot = snapshot_of(of(tmp_path, path=str(current), version=snapshot_id))
        assert snapshot.schema.names == ["person_id", "region", "sex", *names]
        records = snapshot.batches(snapshot.schema.names).read_all().to_pydict()
        recounted = recount_iceberg(current, snapshot_id)
        assert sorted(zip(*records.values(), strict=True)) == recounted
    assert not [each for each in recounted if None in each]  # the renamed column has the values of both files
    # control: the records that the data files contain
    ignored = recount_iceberg(current, snapshots[-1], with_deletes=False)
    assert len(ignored) - len(recounted) == 10
    assert ignored == recount_iceberg(current, snapshots[1]) != recounted


def test_snapshot_of_iceberg_requires_the_metadata_file_unless_a_hint_or_a_single_file_names_it(tmp_path):
    folder, expected, _ = iceberg_with_position_deletes(tmp_path / "warehouse")
    (tmp_path / "table").symlink_to(folder)
    current = current_metadata(folder)
    orphan = current.with_name(f"{int(current.name[:5]) + 1:05}-orphan.metadata.json")
    shutil.copy(current, orphan)  # as a commit that failed leaves it
    with pytest.raises(InputRejected, match="only its catalogue knows"):
        snapshot_of(of(tmp_path))
    (folder / "metadata" / "version-hint.text").write_text(current.name)
    assert len(ids(snapshot_of(of(tmp_path)))) == len(expected)
    (folder / "metadata" / "version-hint.text").unlink()
    for other in set((folder / "metadata").glob("*.metadata.json")) - {current}:
        other.unlink()
    assert len(ids(snapshot_of(of(tmp_path)))) == len(expected)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_snapshot_of_refuses_a_version_that_does_not_exist(kind, tmp_path):
    if kind == "delta":
        delta_with_deletion_vectors(tmp_path / "table")
    path = "table"
    if kind == "iceberg":
        path = str(current_metadata(iceberg_with_position_deletes(tmp_path / "warehouse")[0]))
    with pytest.raises(InputRejected, match=r"input\.version names no existing snapshot"):
        snapshot_of(of(tmp_path, path=path, version=77))


def test_snapshot_of_refuses_a_damaged_table_without_naming_values(tmp_path):
    delta_with_deletion_vectors(tmp_path / "table")
    for file in (tmp_path / "table" / "_delta_log").iterdir():
        file.write_text("north income 1000")
    with pytest.raises(InputRejected, match="is a Delta table that cannot be read") as caught:
        snapshot_of(of(tmp_path))
    assert "north" not in str(caught.value)


def test_snapshot_of_refuses_a_version_of_plain_files(tmp_path):
    persons(0, 9, "north").to_pandas().to_parquet(tmp_path / "table")
    with pytest.raises(InputRejected, match="expected a Delta or Iceberg table"):
        snapshot_of(of(tmp_path, version=1))


@pytest.mark.parametrize(
    "source",
    [{"version": 1, "timestamp": "2026-01-01"}, {"timestamp": "yesterday"}, {"version": 1, "format": "csv"}],
)
def test_specification_refuses_invalid_keys_of_versions(source, tmp_path):
    with pytest.raises(SpecificationError, match=r"\[input\]"):
        of(tmp_path, **source)


@pytest.mark.spark
def test_protect_publishes_exactly_the_records_of_a_snapshot(spark, tmp_path):
    expected = delta_with_deletion_vectors(tmp_path / "table")
    spec = of(tmp_path)
    with Areas.from_places(spec.public_area, spec.evidence_area).session():
        _, areas = run(spark, spec, ())
    released = pd.concat(map(pd.read_parquet, (tmp_path / "lake").rglob("microdata/*.parquet")))
    assert len(released) == len(expected)
    assert not list((tmp_path / "evidence" / ".work").iterdir())
    assert quality(areas)["release"]["snapshot"] == "delta version 4"


@pytest.mark.spark
def test_read_of_a_changed_table_leaves_an_earlier_read_of_this_run_unchanged(spark, tmp_path):
    expected = delta_with_deletion_vectors(tmp_path / "table")
    staging = FolderStagingArea(tmp_path / "staging")
    first = read(spark, of(tmp_path), lambda: staging)
    deltalake.write_deltalake(tmp_path / "table", persons(200, 250, "north"), mode="append")
    second = read(spark, of(tmp_path), lambda: staging)
    assert (first.snapshot, first.frame.count()) == ("delta version 4", len(expected))
    assert (second.snapshot, second.frame.count()) == ("delta version 5", len(expected) + 50)


def test_snapshot_refuses_a_lost_file_while_records_are_read(tmp_path):
    delta_with_deletion_vectors(tmp_path / "table")
    for file in (tmp_path / "table").rglob("*.parquet"):
        file.unlink()
    with pytest.raises(InputRejected, match="is a Delta table that cannot be read"):
        ids(snapshot_of(of(tmp_path)))
