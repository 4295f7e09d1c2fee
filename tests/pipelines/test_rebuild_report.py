"""Tests that report pages agree with the ledger, also for replaced releases."""

from __future__ import annotations

import errno
import json
import stat
from dataclasses import replace

import pytest
from microguard.pipelines.evidence.index import index_of
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.public_area import PublicArea
from microguard.pipelines.publication.publish import publish
from microguard.pipelines.rebuild_report import at_work, rebuild_reports
from microguard.pipelines.withdraw import withdraw
from microguard.schemas.errors import GateRefused

from tests.pipelines.evidence.test_page import QUALITY
from tests.pipelines.publication.test_publish import ID, entry, manifest, staged
from tests.pipelines.releases import Killed, kill


def test_page_of_a_withdrawn_release_states_the_withdrawal(tmp_path):
    areas, release_id = Areas.from_places(tmp_path / "lake" / "persons", tmp_path / "evidence"), ID
    publish(staged(areas), manifest(), areas, entry())
    record = areas.record(release_id)
    record.mkdir(parents=True, exist_ok=True)
    quality = QUALITY | {"release": QUALITY["release"] | {"public_area": str(areas.public.folder)}}
    (record / "quality.json").write_text(json.dumps(quality))
    rebuild_reports(areas, [release_id])
    page = record / "report.html"
    assert "<strong>Published</strong>" in page.read_text()
    withdraw(str(areas.public.release(release_id)))
    assert "<strong>Withdrawn</strong>" in page.read_text()


def test_no_page_calls_a_release_published_after_a_killed_withdrawal(tmp_path, monkeypatch):
    areas, second = Areas.from_places(tmp_path / "lake", tmp_path / "evidence"), "f" * 32
    for release_id in (ID, second):
        publish(staged(areas, release_id), manifest(release_id), areas, entry(release_id), accepted=True)
        areas.record(release_id).mkdir(parents=True, exist_ok=True)
        quality = QUALITY | {"release": QUALITY["release"] | {"public_area": str(areas.public.folder)}}
        (areas.record(release_id) / "quality.json").write_text(json.dumps(quality))
    rebuild_reports(areas, [ID, second])
    page, index = areas.record(ID) / "report.html", areas.evidence / "index.html"
    with monkeypatch.context() as patched:
        patched.setattr(PublicArea, "remove", kill)
        patched.setattr("microguard.pipelines.rebuild_report.rebuild_reports", kill)
        with pytest.raises(Killed):
            withdraw(str(areas.public.release(ID)))
    assert not page.exists()
    assert not index.exists()
    withdraw(str(areas.public.release(second)))
    assert "<strong>Withdrawn</strong>" in page.read_text()
    assert index.read_text().count("withdrawn") >= 2


def test_page_that_cannot_be_rebuilt_is_removed(tmp_path):
    areas = Areas.from_places(tmp_path / "lake", tmp_path / "evidence")
    record = areas.record("a" * 32)
    record.mkdir(parents=True)
    (record / "report.html").write_text("Published")
    rebuild_reports(areas, ["a" * 32, "b" * 32])
    assert not (record / "report.html").exists()


def test_index_states_the_status_of_every_release(tmp_path):
    areas, second, refused, killed = (
        Areas.from_places(tmp_path / "lake", tmp_path / "evidence"),
        *(c * 32 for c in "fed"),
    )
    assert index_of(areas) == []
    publish(staged(areas), manifest(), areas, entry())
    publish(staged(areas, second), manifest(second), areas, entry(second), accepted=True)
    for release_id, passed in ((ID, True), (second, True), (refused, False), (killed, True)):
        record = areas.record(release_id)
        record.mkdir(parents=True, exist_ok=True)
        release = QUALITY["release"] | {"release_id": release_id, "name": "<b>persons</b>"}
        verdicts = [verdict | {"passed": passed} for verdict in QUALITY["verdicts"]]
        (record / "quality.json").write_text(json.dumps(QUALITY | {"release": release, "verdicts": verdicts}))
    rebuild_reports(areas, [ID, second])
    lines = {line.release_id: line for line in index_of(areas)}
    assert {each: line.state for each, line in lines.items()} == {
        ID: "published", second: "published", refused: "refused", killed: "not published"
    }  # fmt: skip
    assert [each for each, line in lines.items() if line.current] == [second]
    assert lines[refused].failed == lines[refused].checks > 0 == lines[ID].failed
    withdraw(str(areas.public.release(second)))
    text = (areas.evidence / "index.html").read_text()
    assert f'href="{ID}/report.html"' in text
    assert "withdrawn" in text
    assert "<b>persons" not in text


def test_index_is_private_in_a_shared_folder(tmp_path):
    areas = Areas.from_places(tmp_path / "lake", tmp_path / "evidence")
    areas.evidence.mkdir(mode=0o755)
    publish(staged(areas), manifest(), areas, entry())
    rebuild_reports(areas, [ID])
    assert stat.S_IMODE((areas.evidence / "index.html").stat().st_mode) == 0o600


def test_index_contains_the_current_release_of_every_public_area(tmp_path):
    areas, others = (
        Areas.from_places(tmp_path / name, tmp_path / "evidence") for name in ("persons", "firms")
    )
    publish(staged(areas), manifest(), areas, entry())
    firms = replace(entry("f" * 32), name="firms", public=others.public.name)
    publish(staged(others, "f" * 32), manifest("f" * 32), others, firms, accepted=True)
    assert all(line.current for each in (areas, others) for line in index_of(each))


def test_full_disk_during_page_writing_does_not_hide_the_error_of_the_verb(tmp_path, monkeypatch):
    areas = Areas.from_places(tmp_path / "lake", tmp_path / "evidence")
    publish(staged(areas), manifest(), areas, entry())
    monkeypatch.setattr("microguard.pipelines.rebuild_report.rebuild_reports", full)
    with pytest.raises(GateRefused, match="too much loss"), at_work(areas):
        raise GateRefused("too much loss")
    with at_work(areas):  # the verb has finished, and the next verb writes the pages
        pass


def full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")
