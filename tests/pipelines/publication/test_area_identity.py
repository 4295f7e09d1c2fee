"""Tests of the identity of a public area: an absent area is never reported as empty or withdrawn."""

import json
import os
import re
import shutil
from dataclasses import replace

import pytest
from microguard.pipelines.approval import approve, reject
from microguard.pipelines.clean import clean
from microguard.pipelines.engine.files import FileDamaged
from microguard.pipelines.publication import publish
from microguard.pipelines.publication.area_identity import AreaNotThere
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.find_release import find_release
from microguard.pipelines.publication.ledger import Ledger
from microguard.pipelines.publication.pending_approval import PendingRelease, submit_for_approval
from microguard.pipelines.publication.public_area import PublicArea
from microguard.pipelines.publication.retention import retain
from microguard.pipelines.rebuild_report import at_work
from microguard.pipelines.report import report
from microguard.pipelines.verify import verify
from microguard.pipelines.withdraw import withdraw
from microguard.schemas.errors import GateRefused, SpecificationError

from tests.pipelines.releases import ID, contents, entry, manifest, staged

SECOND = "f" * 32


@pytest.fixture
def record(released):
    """Return the evidence folder of the release, which identifies an area that is not mounted."""
    return _evidence(released, ID)


@pytest.fixture
def unmounted(released, record):
    """Move the area away and put an empty folder in its place."""
    released.public.folder.rename(released.public.folder.with_name("away"))
    released.public.folder.mkdir()
    return released


def _evidence(areas, release_id):
    record = areas.record(release_id)
    record.mkdir(exist_ok=True)
    (record / "quality.json").write_text(json.dumps({"release": {"public_area": areas.public.name}}))
    return record


def _waiting(areas, release_id):
    ready, record = staged(areas, release_id), _evidence(areas, release_id)
    submit_for_approval(PendingRelease(ready, manifest(release_id), entry(release_id), accepted=True), areas)
    return record


def _mount(areas):
    areas.public.folder.rmdir()
    areas.public.folder.with_name("away").rename(areas.public.folder)


def _of_version_before(areas):
    """Remove the identity file and every ledger line that names it."""
    (areas.public.folder / ".area.json").unlink()
    lines = [json.loads(line) for line in areas.ledger.read_text().splitlines()]
    areas.ledger.write_text("".join(json.dumps(line | {"area": ""}) + "\n" for line in lines))


def _publish(areas, release_id=SECOND, **keys):
    publish.publish(
        staged(areas, release_id), manifest(release_id), areas, entry(release_id), accepted=True, **keys
    )


def test_release_and_work_are_found_although_another_program_removes_a_folder_nearby(released, monkeypatch):
    (released.evidence.parent / "removed" / "deeper").mkdir(parents=True)
    scandir = os.scandir

    def removing(path):
        if "removed" in str(path):
            raise FileNotFoundError(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", removing)
    assert find_release(str(released.public.release(ID))).evidence == str(released.evidence)
    assert clean([str(released.evidence.parent)]).content["removed"] == 1


def test_area_identity_is_random_and_in_every_ledger_line(released, tmp_path):
    identity = json.loads((released.public.folder / ".area.json").read_text())["area"]
    assert re.fullmatch("[0-9a-f]{32}", identity)
    assert {line.area for line in Ledger(released).entries()} == {identity}
    other = Areas.from_places(tmp_path / "other", tmp_path / "other evidence")
    publish.publish(staged(other), manifest(), other, entry())
    assert other.public.identity() != identity


@pytest.mark.parametrize("version", ["this", "before"])
@pytest.mark.parametrize("place", ["empty", "missing"])
def test_withdraw_refuses_while_the_area_is_not_mounted(released, record, place, version):
    if version == "before":
        _of_version_before(released)
    away = released.public.folder.with_name("away")
    released.public.folder.rename(away)
    if place == "empty":
        released.public.folder.mkdir()
    for named in (record, released.public.release(ID), released.public.folder):
        with pytest.raises(AreaNotThere, match=r"not mounted, or was moved.*--lost"):
            withdraw(str(named))
    assert Ledger(released).status(ID).event == "published"
    assert not released.public.folder.exists() or list(released.public.folder.iterdir()) == []
    shutil.rmtree(released.public.folder, ignore_errors=True)
    away.rename(released.public.folder)
    assert "was removed from the public area" in withdraw(str(record)).text
    assert contents(released) == set()


@pytest.mark.parametrize("version", ["this", "before"])
def test_withdraw_checks_the_area_even_if_the_ledger_says_withdrawn(released, record, version):
    """Earlier versions left this state: the ledger says withdrawn, and the files of the release exist."""
    if version == "before":
        _of_version_before(released)
    Ledger(released).append(replace(entry(), event="withdrawn", public=released.public.name))
    assert "is withdrawn" in withdraw(str(record)).text
    assert contents(released) == set()
    assert "is withdrawn" in withdraw(str(record)).text  # the second call examined the area again


def test_publish_creates_no_second_area_while_the_first_is_not_mounted(unmounted):
    with pytest.raises(AreaNotThere):
        _publish(unmounted)
    with pytest.raises(AreaNotThere), at_work(unmounted):
        pass
    assert list(unmounted.public.folder.iterdir()) == []


def test_another_area_at_the_same_path_is_refused(unmounted):
    unmounted.public.begin("0" * 32)
    with pytest.raises(AreaNotThere, match="found another public area"):
        _publish(unmounted)
    assert contents(unmounted) == set()


def test_withdrawal_remains_unfinished_if_its_area_disappears(released, record, monkeypatch):
    away = released.public.folder.with_name("away")

    def vanishing(area, release_id):
        area.folder.rename(away)
        area.folder.mkdir()

    with monkeypatch.context() as patched:
        patched.setattr(PublicArea, "remove", vanishing)
        with pytest.raises(AreaNotThere):
            withdraw(str(record))
    assert Ledger(released).status(ID).event == "withdrawing"
    _mount(released)
    withdraw(str(record))
    assert (contents(released), Ledger(released).status(ID).event) == (set(), "withdrawn")


def test_retention_keeps_releases_of_an_area_that_is_not_mounted(released):
    publish.publish(
        staged(released, SECOND), manifest(SECOND), released, replace(entry(SECOND), keep=1), accepted=True
    )
    released.public.folder.rename(released.public.folder.with_name("away"))
    released.public.folder.mkdir()
    assert retain(released, "persons").left == (ID,)
    assert Ledger(released).status(ID).event == "published"


def test_area_of_an_earlier_version_gets_its_identity_from_the_next_run(released):
    _of_version_before(released)
    with at_work(released):
        assert released.public.identity() is not None
    _publish(released)
    assert Ledger(released).status(SECOND).area == released.public.identity()


def test_moved_area_is_refused_and_accepted_through_a_symbolic_link(released, record):
    moved = released.public.folder.with_name("moved")
    released.public.folder.rename(moved)
    with pytest.raises(AreaNotThere, match="a copy, or the area was moved"):
        withdraw(str(moved / ID))
    assert "These files are not in the area recorded in the ledger" in verify(str(moved / ID)).text
    released.public.folder.symlink_to(moved)
    assert "was removed" in withdraw(str(moved / ID)).text
    assert not (moved / ID).exists()


def test_copy_of_an_area_is_refused(released, record):
    copy = released.public.folder.with_name("copy")
    shutil.copytree(released.public.folder, copy)
    for named in (copy, copy / ID):
        with pytest.raises(AreaNotThere, match=re.escape(str(released.public.folder))):
            withdraw(str(named))
    assert (copy / ID / "manifest.json").is_file()
    assert released.public.is_whole(ID)


def test_withdraw_lost_records_the_loss_and_allows_another_area(unmounted, record):
    outcome = withdraw(str(record), lost=True)
    assert outcome.content["release_ids"] == [ID]
    assert "without a check of the area" in outcome.text
    assert "without a check of the area" in withdraw(str(record)).text
    assert withdraw(str(record), lost=True).content["release_ids"] == [ID]
    _publish(unmounted)
    assert unmounted.public.current() == SECOND
    with pytest.raises(SpecificationError, match="Run this without --lost"):
        withdraw(str(record), lost=True)


def test_publish_refuses_a_returned_lost_area_until_its_releases_are_withdrawn(unmounted, record):
    withdraw(str(record), lost=True)
    _mount(unmounted)
    with pytest.raises(GateRefused, match=rf"are withdrawn according to the ledger \({ID}\)"):
        _publish(unmounted)
    assert "was removed from the public area" in withdraw(str(record)).text
    _publish(unmounted)
    assert contents(unmounted) == {SECOND, "current.json"}


def test_verify_and_report_raise_area_not_there(unmounted, record, monkeypatch):
    with pytest.raises(AreaNotThere):
        verify(str(record))
    monkeypatch.setattr("microguard.pipelines.report.write_page_of", lambda areas, each: areas.record(each))
    assert "not mounted, or was moved" in report(str(record)).text


@pytest.mark.parametrize("torn", ["", "{", '{"release', '{"release_id"}', "[]", "null", "\x00" * 40])
def test_torn_current_json_is_rewritten_by_the_next_run(released, record, torn):
    (released.public.folder / "current.json").write_text(torn)
    with pytest.raises(FileDamaged, match=r"current\.json of the public area.*run the job again"):
        verify(str(released.public.folder))
    with at_work(released):
        assert released.public.current() == ID


def test_torn_current_json_is_kept_if_the_area_has_a_release_unknown_to_the_ledger(released):
    stranger = released.public.release(SECOND)
    shutil.copytree(released.public.release(ID), stranger)
    (released.public.folder / "current.json").write_text("{")
    with pytest.raises(FileDamaged, match=r"current\.json"), at_work(released):
        pass
    assert (released.public.folder / "current.json").read_text() == "{"


@pytest.mark.parametrize("torn", ["", "{", '{"area": 1}', '{"area": "zz"}'])
def test_torn_identity_is_rewritten_if_a_release_proves_the_area(released, torn):
    identity, path = released.public.identity(), released.public.folder / ".area.json"
    path.write_text(torn)
    with at_work(released):
        assert released.public.identity() == identity
    withdraw(str(released.public.release(ID)))
    path.write_text(torn)
    with pytest.raises(FileDamaged, match=r"\.area\.json of the public area"), at_work(released):
        pass


@pytest.mark.parametrize("name", ["quality.json", "waiting.json"])
def test_message_names_a_torn_evidence_file(areas, name):
    record = _waiting(areas, ID)
    os.truncate(record / name, 20)
    with pytest.raises(FileDamaged, match=rf"{name} of release {ID}"):
        approve(str(record), by="A. Steward")


def test_approve_and_reject_are_idempotent(areas):
    one, other = _waiting(areas, ID), _waiting(areas, SECOND)
    assert "is approved by A. Steward and published" in approve(str(one), by="A. Steward").text
    assert "is published already, approved by A. Steward" in approve(str(one), by="B").text
    assert "is rejected by A. Steward" in reject(str(other), by="A. Steward").text
    assert "is already rejected by A. Steward" in reject(str(other), by="B").text
    for verb, record in ((reject, one), (approve, other)):
        with pytest.raises(SpecificationError, match="expected a release that is pending approval"):
            verb(str(record), by="B")
    assert (areas.public.current(), Ledger(areas).status(ID).by) == (ID, "A. Steward")


@pytest.mark.parametrize(
    ("step", "published"), [("set_current", True), ("retain", True), ("_commit", False), ("put", False)]
)
def test_interrupted_approval_reports_the_state_of_the_release(areas, monkeypatch, step, published):
    record = _waiting(areas, ID)
    place = {"set_current": PublicArea, "put": PublicArea, "_commit": publish}.get(
        step, "microguard.pipelines.approval"
    )

    def interrupted(*_):
        undo.undo()
        raise KeyboardInterrupt

    undo = pytest.MonkeyPatch()
    undo.setattr(*((f"{place}.{step}",) if isinstance(place, str) else (place, step)), interrupted)
    if published:
        assert "is published" in approve(str(record), by="A. Steward").text
        assert areas.public.current() == ID
    else:
        with pytest.raises(KeyboardInterrupt):
            approve(str(record), by="A. Steward")
        assert (contents(areas), Ledger(areas).status(ID).event) == (set(), "waiting")
