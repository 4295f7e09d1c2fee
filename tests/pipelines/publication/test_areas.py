"""Tests of areas, lock, key and ledger: permissions, and the refusal of a second release."""

import errno
import os
import stat
import subprocess
import sys

import pytest
from microguard.pipelines.clean import clean
from microguard.pipelines.publication.areas import AreaBusy, Areas
from microguard.pipelines.publication.ledger import Entry, Ledger, LedgerDamaged
from microguard.schemas.errors import GateRefused, SpecificationError


@pytest.fixture
def areas(tmp_path):
    return Areas.from_places(tmp_path / "lake", tmp_path / "evidence")


def entry(release_id, event="published", name="persons"):
    return Entry(event, release_id, name, "2026-01-01T00:00:00+00:00", {"k": 3})


def test_evidence_inside_the_public_area_is_refused(tmp_path):
    with pytest.raises(SpecificationError, match="inside the public area"):
        Areas.from_places(tmp_path / "lake", tmp_path / "lake" / "evidence")
    with pytest.raises(SpecificationError, match="inside the public area"):
        Areas.from_places(tmp_path / "lake", tmp_path / "x" / ".." / "lake")


def test_work_folders_and_key_are_private(areas):
    folder = areas.work("a" * 32, "staging")
    areas.key()
    for path in (folder, folder.parent, areas.evidence):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE((areas.evidence / "key").stat().st_mode) == 0o600


def test_release_id_depends_only_on_key_and_identity(areas, tmp_path, monkeypatch):
    first = areas.release_id({"k": 3, "seed": 1})
    assert areas.release_id({"seed": 1, "k": 3}) == first
    assert areas.release_id({"k": 4, "seed": 1}) != first
    monkeypatch.setenv("MICROGUARD_KEY_FILE", str(tmp_path / "other"))
    assert areas.release_id({"k": 3, "seed": 1}) != first


def test_short_key_is_refused(areas, tmp_path, monkeypatch):
    (tmp_path / "short").write_text("secret")
    (tmp_path / "short").chmod(0o600)
    monkeypatch.setenv("MICROGUARD_KEY_FILE", str(tmp_path / "short"))
    with pytest.raises(SpecificationError, match="6 bytes, expected at least 32"):
        areas.key()


def test_unreadable_key_is_refused(areas, tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    monkeypatch.setenv("MICROGUARD_KEY_FILE", str(tmp_path / "folder"))
    with pytest.raises(SpecificationError, match="allows neither"):
        areas.key()


def test_key_that_others_can_read_is_refused(areas, tmp_path, monkeypatch):
    (tmp_path / "open").write_text("k" * 64)
    (tmp_path / "open").chmod(0o640)
    monkeypatch.setenv("MICROGUARD_KEY_FILE", str(tmp_path / "open"))
    with pytest.raises(SpecificationError, match="0600"):
        areas.key()


def test_full_disk_leaves_no_partial_key(areas, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(SpecificationError, match="allows neither"):
            areas.key()
    assert list(areas.evidence.iterdir()) == []
    assert len(areas.key()) == 64


def test_existing_evidence_folder_keeps_its_mode_and_an_open_work_folder_is_refused(areas):
    areas.evidence.mkdir(mode=0o755)
    areas.work("a" * 32, "staging")
    assert stat.S_IMODE(areas.evidence.stat().st_mode) == 0o755
    (areas.evidence / ".work").chmod(0o755)
    with pytest.raises(SpecificationError, match="0700"):
        areas.work("b" * 32, "staging")


def test_key_in_the_public_area_is_refused(areas, monkeypatch):
    monkeypatch.setenv("MICROGUARD_KEY_FILE", str(areas.public.folder / "key"))
    with pytest.raises(SpecificationError, match="inside the public area"):
        areas.key()
    assert not areas.public.folder.exists()


def test_key_in_the_public_area_of_another_specification_is_refused(areas, tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "current.json").write_text("{}")
    monkeypatch.setenv("MICROGUARD_KEY_FILE", str(tmp_path / "other" / "key"))
    with pytest.raises(SpecificationError, match="inside the public area"):
        areas.key()
    assert not (tmp_path / "other" / "key").exists()


def test_require_writable_refuses_a_public_area_that_is_a_file(areas):
    areas.public.require_writable()
    assert not areas.public.folder.exists()
    areas.public.folder.parent.mkdir(parents=True, exist_ok=True)
    areas.public.folder.write_text("a file")
    with pytest.raises(SpecificationError, match=r"\[publish\] path"):
        areas.public.require_writable()


def test_lock_admits_one_run_and_is_released_by_a_kill(areas):
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, time; from pathlib import Path\n"
            "from microguard.pipelines.publication.areas import hold\n"
            "with hold(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)",
            str(areas.evidence),
        ],
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(AreaBusy, match="Another run"), areas.lock():
        pass
    holder.kill()
    holder.wait()
    with areas.lock():
        assert os.path.isdir(areas.evidence)


def test_second_release_of_a_name_is_refused_until_accepted_or_withdrawn(areas):
    ledger = Ledger(areas)
    with areas.lock():
        ledger.refuse_successive("persons", "b" * 32, accepted=False)
        ledger.append(entry("a" * 32))
        ledger.refuse_successive("persons", "a" * 32, accepted=False)
        ledger.refuse_successive("firms", "b" * 32, accepted=False)
        ledger.refuse_successive("persons", "b" * 32, accepted=True)
        with pytest.raises(GateRefused, match="differences of two releases"):
            ledger.refuse_successive("persons", "b" * 32, accepted=False)
        ledger.append(entry("a" * 32, "withdrawn"))
        ledger.refuse_successive("persons", "b" * 32, accepted=False)
        assert ledger.ever_published("persons") == ["a" * 32]


def test_refuse_successive_refuses_if_the_area_has_a_release_unknown_to_the_ledger(areas):
    stranger = areas.public.folder / ("c" * 32)
    stranger.mkdir(parents=True)
    (stranger / "manifest.json").write_text("{}")
    with pytest.raises(GateRefused, match="1 release"):
        Ledger(areas).refuse_successive("persons", "b" * 32, accepted=False)


def test_append_replaces_a_ledger_line_that_a_crash_truncated(areas):
    ledger = Ledger(areas)
    with areas.lock():
        ledger.append(entry("a" * 32))
        with open(areas.ledger, "a") as file:
            file.write('{"event": "publis')
        ledger.append(entry("b" * 32))
    assert [line.release_id for line in ledger.published()] == ["a" * 32, "b" * 32]


def test_ledger_with_an_invalid_line_is_refused(areas):
    ledger = Ledger(areas)
    with areas.lock():
        ledger.append(entry("a" * 32))
        with open(areas.ledger, "a") as file:
            file.write('{"event": "published", "release": "of a newer version"}\n')
        with pytest.raises(LedgerDamaged, match="Line 2"):
            ledger.published()


def test_ledger_reads_a_complete_last_line_without_a_line_break(areas):
    ledger = Ledger(areas)
    with areas.lock():
        ledger.append(entry("a" * 32))
        areas.ledger.write_bytes(areas.ledger.read_bytes().rstrip(b"\n"))
        assert [line.release_id for line in ledger.published()] == ["a" * 32]
        ledger.append(entry("b" * 32))
    assert [line.release_id for line in ledger.published()] == ["a" * 32, "b" * 32]


def test_clean_removes_all_work_folders_except_the_folders_of_a_running_job(areas):
    areas.work("a" * 32, "resume")
    with areas.lock(), pytest.raises(AreaBusy):
        clean([str(areas.evidence.parent)])
    assert areas.unfinished() == ["a" * 32]
    assert clean([str(areas.evidence.parent)]).as_json() == {"removed": 1}
    assert areas.unfinished() == []


def test_clean_keeps_pending_releases(areas):
    waiting, rejected = "a" * 32, "b" * 32
    for release_id in (waiting, rejected):
        areas.work(release_id, "staging")
        Ledger(areas).append(entry(release_id, "waiting"))
    Ledger(areas).append(entry(rejected, "rejected"))
    cleaned = clean([str(areas.evidence)])
    assert cleaned.as_json() == {"removed": 1}
    assert "1 release(s) are pending approval" in cleaned.text
    assert areas.unfinished() == [waiting]


def test_clean_refuses_an_object_store(areas):
    areas.work("a" * 32, "resume")
    with pytest.raises(SpecificationError, match="expected folders, found an object store"):
        clean([str(areas.evidence.parent), "s3://agency/persons"])
    assert areas.unfinished() == ["a" * 32]


def test_clean_keeps_folders_of_other_programs(tmp_path):
    theirs = tmp_path / "project" / ".work"
    (theirs / "build").mkdir(parents=True, mode=0o700)
    theirs.chmod(0o700)
    before = theirs.parent.stat().st_mode
    assert clean([str(tmp_path)]).as_json() == {"removed": 0}
    assert (theirs / "build").is_dir()
    assert theirs.parent.stat().st_mode == before


def test_session_removes_scratch_folders_of_killed_runs_and_its_own(areas):
    left = areas.work("session-1", "spark") / "spill"
    left.write_text("values")
    areas.work("a" * 32, "resume")
    with areas.lock(), areas.session() as private:
        assert not left.exists()
        assert stat.S_IMODE(private.stat().st_mode) == 0o700
        (private / "jvm.log").write_text("values")
    assert areas.unfinished() == ["a" * 32]
