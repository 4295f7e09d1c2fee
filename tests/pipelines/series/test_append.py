"""Tests of appended updates of events: published records never change, and no unit is published twice."""

from __future__ import annotations

import json

import pandas as pd
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.audit.release import audit
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.history import history
from microguard.pipelines.job import Job
from microguard.pipelines.joint_audit import audit_source
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.publish import finish_what_died
from microguard.pipelines.release import run
from microguard.pipelines.withdraw import withdraw
from microguard.schemas.errors import GateRefused, InputRejected
from pyiceberg.table import StaticTable

from tests.pipelines.microdata import records, specification
from tests.pipelines.series.test_register import ROLES, population

pytestmark = pytest.mark.spark


class Stream:
    """Return a specification whose input is replaced at every update; no measures are computed."""

    def __init__(self, spark, folder, roles=ROLES, table="parquet", **sections):
        self.spark, self.folder, self.roles, self.sections = spark, folder, roles, sections
        self.table = table
        self.areas = Areas.from_places(folder / "lake", folder / "evidence")

    def spec(self, **missing):
        return specification(
            self.folder,
            self.roles,
            publish={"series": "append", "format": self.table},
            input={"path": "events.parquet"},
            missing=missing,
            **self.sections,
        )

    def night(self, frame, **missing):
        frame.to_parquet(self.folder / "events.parquet", index=False)
        spec = self.spec(**missing)
        with self.areas.lock():
            finish_what_died(self.areas)
            return run(records(spec, ()), Job(self.spark, spec, self.areas, Progress(quiet=True))).content

    def manifest(self, release_id):
        return json.loads((self.areas.public.release(release_id) / "manifest.json").read_text())

    def rows(self, release_id):
        return ds.dataset(self.areas.public.release(release_id) / "microdata").to_table().to_pandas()


@pytest.fixture(scope="module")
def stream(spark, tmp_path_factory):
    """Run two updates: 60 events, then 60 new events and five that were published before."""
    append = Stream(spark, tmp_path_factory.mktemp("append"), table="iceberg")
    everybody = population()
    append.first = append.night(everybody.iloc[:60])["release_id"]
    append.before = append.rows(append.first)
    append.second = append.night(everybody.iloc[55:120], max_rejected=5)["release_id"]
    return append


def test_appended_update_publishes_its_own_records_and_keeps_earlier_records(stream):
    assert len(stream.rows(stream.first)) == len(stream.rows(stream.second)) == 60
    pd.testing.assert_frame_equal(stream.rows(stream.first), stream.before)
    weights = pd.concat([stream.rows(stream.first), stream.rows(stream.second)])["weight"]
    assert weights.is_unique
    for release_id in (stream.first, stream.second):
        assert audit(stream.areas.public.release(release_id)).passed


def test_appended_update_becomes_current_and_its_manifest_names_all_updates(stream):
    assert stream.areas.public.current() == stream.second
    night = stream.manifest(stream.second)["series"]
    assert night["kind"] == "append"
    assert night["night"] == 2
    assert night["releases"] == [stream.first, stream.second]


def nights_of_the_table(stream):
    """Return the rows that each snapshot of the table contains, oldest snapshot first."""
    table = StaticTable.from_metadata(str(stream.areas.public.folder / "iceberg"))
    shown = [table.scan(snapshot_id=each.snapshot_id).to_pandas() for each in table.snapshots()]
    return [sorted(each["weight"]) for each in shown]


def test_table_snapshot_contains_the_updates_up_to_its_time(stream):
    first, second = (list(stream.rows(each)["weight"]) for each in (stream.first, stream.second))
    assert nights_of_the_table(stream) == [sorted(first), sorted(first + second)]


def test_append_rejects_a_unit_that_was_published_before_with_that_reason(stream):
    quality = json.loads((stream.areas.record(stream.second) / "quality.json").read_text())
    assert quality["counts"]["rejected"] == {"unit published before": 5}
    with pytest.raises(InputRejected, match="unit published before: 80"):
        stream.night(population().iloc[:80])
    # other tools convert integers to floating point if a value is missing
    in_floats = population().iloc[:80].astype({"person": "float64"})
    with pytest.raises(InputRejected, match="unit published before: 80"):
        stream.night(in_floats)


def test_append_returns_the_existing_release_if_the_same_update_runs_again(stream):
    assert stream.night(population().iloc[55:120], max_rejected=5)["release_id"] == stream.second


def test_history_has_a_line_for_each_update_and_audit_finds_no_disclosure(stream):
    rows = history(stream.spec()).content["releases"]
    assert [(row["units"], row["published"], row["below k"]) for row in rows] == [(60, 60, 0), (65, 60, 0)]
    exposure = audit_source(stream.spec()).content
    assert exposure["units"] == 120
    assert exposure["smallest_history"] >= 3


def test_appended_update_stores_no_identifier(stream):
    for path in (path for path in stream.areas.evidence.rglob("*.parquet") if path.is_file()):
        assert "person" not in pq.read_schema(path).names


def test_append_rejects_units_of_a_withdrawn_update_and_refuses_lost_evidence(stream, tmp_path):
    withdraw(str(stream.areas.record(stream.second)))
    assert nights_of_the_table(stream) == [sorted(stream.before["weight"])]
    with pytest.raises(InputRejected, match="unit published before: 65"):
        stream.night(population().iloc[40:105].assign(weight=1.0), max_rejected=4)
    members = stream.areas.record(stream.second) / "members"
    members.rename(tmp_path / "members")
    with pytest.raises(GateRefused, match="lost"):
        stream.night(population().iloc[40:105])
    (tmp_path / "members").rename(members)
