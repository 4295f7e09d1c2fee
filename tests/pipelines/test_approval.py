"""Tests of approval: a verified release is pending until a person publishes or rejects it."""

import shutil
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from microguard.pipelines.approval import approve, pending, reject
from microguard.pipelines.audit.release import audit
from microguard.pipelines.publication.ledger import Ledger
from microguard.schemas.errors import GateRefused, ProtectionFailed, SpecificationError

from tests.pipelines.microdata import persons, run, specification

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def verified(spark, tmp_path_factory):
    """Return a specification whose release is pending, its areas and evidence, and a copy of its folder."""
    folder = tmp_path_factory.mktemp("verified") / "run"
    folder.mkdir()
    persons().to_parquet(folder / "data", index=False)
    spec = specification(folder, publish={"approval": "required"})
    outcome, areas = run(spark, spec, ())
    assert "pending approval" in outcome.text
    assert len(outcome.text.splitlines()) == 5
    assert "microguard approve" in outcome.brief
    assert f"microguard approve {areas.record(outcome.content['release_id'])} --by NAME" in outcome.text
    assert outcome.content["waiting"] == str(areas.record(outcome.content["release_id"]))
    assert outcome.content["release"] not in outcome.text  # the release folder does not exist yet
    assert not areas.public.folder.exists()
    copy = shutil.copytree(folder, folder.with_name("copy"))
    return spec, areas, areas.record(outcome.content["release_id"]), copy


@pytest.fixture
def waiting(verified):
    """Return the same pending release before any decision."""
    spec, areas, record, copy = verified
    shutil.rmtree(spec.folder)
    shutil.copytree(copy, spec.folder)
    return spec, areas, record


def test_approve_publishes_the_release_and_records_the_person_in_the_ledger(spark, waiting, sent):
    spec, areas, record = waiting
    assert [row["release_id"] for row in pending(spec).content["pending"]] == [record.name]
    assert "<strong>Waiting for approval</strong>" in (record / "report.html").read_text()
    assert "already" in run(spark, spec, ())[0].text
    before = len(sent())
    approve(str(record), by="A. Steward", note="as last year")
    assert areas.public.current() == record.name
    start, complete = sent()[before:]
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert start["job"]["name"] == spec.release.name
    assert [each["name"] for each in complete["outputs"]] == [areas.public.name]
    assert audit(areas.public.release(record.name)).passed
    entry = Ledger(areas).status(record.name)
    assert (entry.event, entry.by, entry.note) == ("published", "A. Steward", "as last year")
    assert "approved by A. Steward" in (record / "report.html").read_text()
    assert pending(spec).content["pending"] == []
    assert areas.unfinished() == []


def test_approve_refuses_a_release_whose_manifest_omits_a_later_published_release(waiting):
    _, areas, record = waiting
    ledger = Ledger(areas)
    status = ledger.status(record.name)
    for event in ("intended", "published", "withdrawing", "withdrawn"):
        ledger.append(replace(status, release_id="f" * 32, event=event))
    with pytest.raises(GateRefused, match="does not state that differences of the two can be computed"):
        approve(str(record), by="A. Steward")
    assert ledger.published() == []
    assert ledger.status(record.name).event == "waiting"


def test_reject_keeps_only_the_evidence_of_the_release(waiting):
    spec, areas, record = waiting
    reject(str(record), by="A. Steward", note="too much loss")
    assert not areas.public.folder.exists()
    assert areas.unfinished() == []
    assert "<strong>Rejected</strong>" in (record / "report.html").read_text()
    assert Ledger(areas).ever_published(spec.release.name) == []
    with pytest.raises(SpecificationError, match="expected a release that is pending approval"):
        approve(str(record), by="A. Steward")


def test_damaged_release_that_is_recreated_for_approval_is_removed_until_it_is_approved(spark, waiting):
    spec, areas, record = waiting
    approve(str(record), by="A. Steward")
    (file,) = (areas.public.release(record.name) / "microdata").glob("*.parquet")
    file.write_bytes(file.read_bytes()[:100])
    outcome, _ = run(spark, spec, ())
    assert "its damaged files were removed from the public area; the release is not public" in outcome.text
    assert (areas.public.current(), areas.public.releases()) == (None, [])
    approve(str(record), by="A. Steward")
    assert audit(areas.public.release(record.name)).passed


def test_approve_refuses_a_release_that_changed_while_it_was_pending(waiting):
    _, areas, record = waiting
    (file,) = (areas.work(record.name, "staging") / "microdata").glob("*.parquet")
    pq.write_table(pq.read_table(file).slice(1), file)
    with pytest.raises(ProtectionFailed, match="run the job again"):
        approve(str(record), by="A. Steward")
    assert areas.public.current() is None
    assert not areas.public.release(record.name).exists()
