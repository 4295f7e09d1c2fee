"""Tests of a pending update: after approval the series continues from this update and never forks."""

import json
import shutil

import pytest
from microguard.pipelines.approval import approve, reject
from microguard.pipelines.evidence.joint import JOINT
from microguard.pipelines.publication import publish
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.ledger import Entry, Ledger
from microguard.pipelines.publication.pending_approval import (
    PendingRelease,
    refuse_beside_pending,
    submit_for_approval,
)
from microguard.pipelines.publication.public_area import PublicArea
from microguard.pipelines.publication.withdrawal import withdraw_release
from microguard.pipelines.series.generations import UNITS, generations_of
from microguard.pipelines.series.membership import MEMBERS
from microguard.schemas.errors import GateRefused

from tests.pipelines.releases import Killed, kill, manifest, staged
from tests.pipelines.series.test_generations import sealed

A, B, C = (letter * 32 for letter in "abc")
NAME = "persons"


def entry(release_id, kind="register", name=NAME):
    identity = {"series": kind, "specification": {"release": {"source": "register"}}}
    return Entry("intended", release_id, name, "2026-01-01T00:00:00+00:00", identity)


def made(areas, release_id, kind="register", nights=()):
    """Return an update as a run leaves it before publication: staged, with its map and sealed generation."""
    folder = areas.record(release_id)
    (folder / MEMBERS).mkdir(parents=True)
    (folder / MEMBERS / "members.json").write_text("{}")
    (folder / "quality.json").write_text(json.dumps({"release": {"public_area": areas.public.name}}))
    if kind == "register":
        sealed(areas.evidence / "series" / NAME, generations_of(areas, NAME)._published, release_id)
    series = {"kind": kind, "releases": [*nights, release_id]} if kind == "append" else {"kind": kind}
    night = entry(release_id, kind)
    return PendingRelease(
        staged(areas, release_id), manifest(release_id, series=series), night, accepted=True
    )


def published(areas, night):
    publish.publish(night.staged, night.manifest, areas, night.entry, accepted=True)


def latest(areas):
    return generations_of(areas, NAME).latest().release_id


@pytest.fixture
def areas(tmp_path, monkeypatch):
    """Return a register whose first update is published and whose second update is pending."""
    monkeypatch.setattr("microguard.pipelines.approval.rebuild_reports", lambda areas, each: None)
    monkeypatch.setattr(publish, "refuse_joint_exposure", lambda *_: None)  # the maps of units are empty
    register_areas = Areas.from_places(tmp_path / "lake", tmp_path / "evidence")
    published(register_areas, made(register_areas, A))
    submit_for_approval(made(register_areas, B), register_areas)
    return register_areas


def test_pending_update_is_not_the_latest_state_before_its_approval(areas):
    assert (areas.public.current(), latest(areas)) == (A, A)
    approve(str(areas.record(B)), by="A. Steward")
    assert (areas.public.current(), latest(areas)) == (B, B)
    refuse_beside_pending(areas, NAME, C)


def test_approve_returns_the_counts_of_the_pending_update(areas):
    counts = {"units": 9, "comers": 2, "leavers": 1, "matched": 6}
    (areas.record(B) / JOINT).write_text(json.dumps({"night": counts}))
    answer = approve(str(areas.record(B)), by="A. Steward")
    assert answer.summary().startswith("Update: 9 units, 2 entrants, 1 exits\n")
    assert answer.as_json()["night"] == counts


def test_register_refuses_an_update_while_another_is_pending(areas):
    with pytest.raises(GateRefused, match=rf"Release {B} .*microguard approve .*{B} --by NAME"):
        refuse_beside_pending(areas, NAME, C)
    refuse_beside_pending(areas, NAME, B)
    refuse_beside_pending(areas, "another", C)


def test_reject_leaves_the_state_of_the_series_unchanged(areas):
    reject(str(areas.record(B)), by="A. Steward")
    refuse_beside_pending(areas, NAME, C)
    assert latest(areas) == A
    assert [path.name for path in (areas.evidence / "series" / NAME).iterdir()] == [f"000001-{A}"]
    published(areas, made(areas, C))
    assert latest(areas) == C


@pytest.mark.parametrize(
    ("module", "step"),
    [
        (PublicArea, "put"),
        (publish, "_commit"),
        (PublicArea, "set_current"),
        (publish, "remove_release"),
    ],
)
def test_killed_approval_is_complete_or_pending_again_and_never_forks_the_series(
    areas, monkeypatch, module, step
):
    with monkeypatch.context() as patched:
        patched.setattr(module, step, kill)
        # the run is killed again while it removes the remains of the first killed run
        if step == "remove_release":
            patched.setattr(publish, "_commit", kill)
        with pytest.raises(Killed):
            approve(str(areas.record(B)), by="A. Steward")
        if step == "remove_release":
            with pytest.raises(Killed):
                publish.finish_what_died(areas)
    with areas.lock():
        publish.finish_what_died(areas)
    if step == "set_current":
        assert (areas.public.current(), latest(areas)) == (B, B)
        assert publish.published_already(areas, B)
    else:
        assert (areas.public.current(), areas.public.releases(), latest(areas)) == (A, [A], A)
        with pytest.raises(GateRefused, match="has been pending approval"):
            refuse_beside_pending(areas, NAME, C)
        approve(str(areas.record(B)), by="A. Steward", note="again")
        assert Ledger(areas).status(B).note == "again"
    assert (areas.public.current(), latest(areas)) == (B, B)
    assert "is published already" in approve(str(areas.record(B)), by="A. Steward").text


@pytest.mark.parametrize("damage", ["lost", "changed", "map"])
def test_approve_refuses_an_update_whose_state_changed(areas, damage):
    folder = areas.evidence / "series" / NAME / f"000002-{B}"
    if damage == "lost":
        shutil.rmtree(folder)
    elif damage == "changed":
        (folder / UNITS / "part.parquet").write_text("another")
    else:
        shutil.rmtree(areas.record(B) / MEMBERS)
    with pytest.raises(GateRefused, match="run the job again" if damage == "map" else "back-up"):
        approve(str(areas.record(B)), by="A. Steward")
    assert areas.public.releases() == [A]


@pytest.mark.parametrize("name", [NAME, "another of the source"])
def test_approve_refuses_if_other_releases_of_the_source_were_published_since(areas, name):
    Ledger(areas).append(entry(C, name=name))
    published_elsewhere = Entry(**{**vars(entry(C, name=name)), "event": "published"})
    Ledger(areas).append(published_elsewhere)
    with pytest.raises(GateRefused, match=rf"1 other release.*{C}.*Reject the release"):
        approve(str(areas.record(B)), by="A. Steward")
    assert areas.public.releases() == [A]


def test_approve_refuses_if_another_evidence_area_published_meanwhile(tmp_path):
    one, other = (Areas.from_places(tmp_path / "lake", tmp_path / evidence) for evidence in ("one", "other"))
    submit_for_approval(made(one, A), one)
    published(other, made(other, B))
    with pytest.raises(GateRefused, match=rf"1 release\(s\) that are not in the ledger \({B}\)"):
        approve(str(one.record(A)), by="A. Steward")
    assert (other.public.current(), other.public.releases()) == (B, [B])


def test_reject_accepts_a_release_whose_approval_was_killed(areas, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(publish, "_commit", kill)
        with pytest.raises(Killed):
            approve(str(areas.record(B)), by="A. Steward")
    reject(str(areas.record(B)), by="A. Steward")
    assert (areas.public.releases(), latest(areas), Ledger(areas).status(B).event) == ([A], A, "rejected")


def test_approve_refuses_an_appended_update_if_an_update_that_it_names_was_withdrawn(tmp_path):
    areas = Areas.from_places(tmp_path / "lake", tmp_path / "evidence")
    published(areas, made(areas, A, "append"))
    submit_for_approval(made(areas, B, "append", [A]), areas)
    with areas.public.lock():
        withdraw_release(entry(A, "append"), areas)
    with pytest.raises(GateRefused, match=rf"1 update.*{A}.*run the job again"):
        approve(str(areas.record(B)), by="A. Steward")
    assert areas.public.releases() == []
