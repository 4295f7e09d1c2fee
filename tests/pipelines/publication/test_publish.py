"""Release, audit and withdrawal of a small verified release, and what tampering meets."""

import errno
import json
import shutil
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.audit.release import audit
from pipelines.engine import files
from pipelines.publication import publish, withdrawal
from pipelines.publication.areas import Areas
from pipelines.publication.find_release import find_release
from pipelines.publication.formats import delta
from pipelines.publication.ledger import Entry, Ledger
from pipelines.publication.stage import StagedFiles
from pipelines.verify import verify
from pipelines.withdraw import withdraw
from schemas.errors import GateRefused, ProtectionFailed, SpecificationError

ID = "0123456789abcdef0123456789abcdef"
RECORDS = pa.table(
    {"sex": ["f", "f", "f", "m", "m", "m"], "hours": pa.array([1, 2, 3, 4, 5, None], pa.int8())}
)
CELLS = pa.table({"sex": ["f", "m"], "frequency": pa.array([3, 3], pa.int64())})


def manifest(release_id=ID, **changes):
    base = {
        "release_id": release_id,
        "guarantee": {
            "k": 3,
            "groups": [
                {"name": "all", "variables": ["sex"], "with_region": [], "smallest_class": 3, "classes": 2}
            ],
        },
        "records": 6,
        "columns": [{"name": "sex", "type": "string"}, {"name": "hours", "type": "int8"}],
        "tables": [{"file": "tables/001_sex.parquet", "variables": ["sex"]}],
    }
    return base | changes


def staged(areas, release_id=ID, records=RECORDS):
    folder = areas.work(release_id, "staging")
    (folder / "microdata").mkdir(exist_ok=True)
    (folder / "tables").mkdir(exist_ok=True)
    pq.write_table(records, folder / "microdata" / "part-00000.parquet")
    pq.write_table(CELLS, folder / "tables" / "001_sex.parquet")
    return StagedFiles.of(release_id, folder)


def entry(release_id=ID):
    return Entry("published", release_id, "persons", "2026-01-01T00:00:00+00:00", {})


@pytest.fixture
def areas(tmp_path):
    return Areas(tmp_path / "lake" / "persons", tmp_path / "evidence" / "persons")


@pytest.fixture
def released(areas):
    publish.publish(staged(areas), manifest(), areas, entry())
    return areas


def test_a_release_is_current_and_passes_its_audit(released):
    assert released.served() == ID
    found = audit(released.release(ID))
    assert found.passed, found.failures()
    assert {path.name for path in released.public.iterdir()} == {ID, "current.json"}


def test_a_file_that_changes_while_it_is_copied_leaves_nothing(areas, monkeypatch):
    copy = shutil.copyfile

    def torn(source, target):
        copy(source, target)
        with open(target, "ab") as file:
            file.write(b"x")

    ready = staged(areas)
    monkeypatch.setattr(files.shutil, "copyfile", torn)
    with pytest.raises(ProtectionFailed, match="while it was copied"):
        publish.publish(ready, manifest(), areas, entry())
    assert list(areas.public.iterdir()) == []
    assert Ledger(areas).standing() == []
    assert Ledger(areas).unfinished() == []


def test_a_copy_that_a_killed_run_left_stands_in_nobodys_way(areas, monkeypatch):
    def kill(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(publish.Path, "rename", kill)
        patched.setattr(publish.shutil, "rmtree", lambda *_, **__: None)  # nor does it tidy up
        with pytest.raises(KeyboardInterrupt):
            publish.publish(staged(areas), manifest(), areas, entry())
    assert [path.name for path in areas.public.iterdir()] == [f".{ID}.incoming"]
    second = "f" * 32
    Ledger(areas).refuse_successive("persons", second, accepted=False)
    publish.publish(staged(areas, second), manifest(second), areas, entry(second))
    assert {path.name for path in areas.public.iterdir()} == {second, "current.json"}


@pytest.mark.parametrize("name", ["microdata/part-00000.parquet", "tables/001_sex.parquet"])
def test_a_file_that_changes_after_it_was_staged_is_not_released(areas, name):
    ready = staged(areas)
    pq.write_table(CELLS.slice(0, 1), ready.folder / name)
    with pytest.raises(ProtectionFailed, match="changed after it was staged"):
        publish.publish(ready, manifest(), areas, entry())
    assert list(areas.public.iterdir()) == []


def test_a_file_that_nobody_staged_is_not_released(areas):
    ready = staged(areas)
    pq.write_table(RECORDS, ready.folder / "microdata" / "part-00001.parquet")
    publish.publish(ready, manifest(), areas, entry())
    assert audit(areas.release(ID)).passed


def test_a_disk_that_is_full_leaves_nothing_in_the_public_area(areas, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "no space")

    ready = staged(areas)
    monkeypatch.setattr(files.shutil, "copyfile", full)
    with pytest.raises(OSError):
        publish.publish(ready, manifest(), areas, entry())
    assert list(areas.public.iterdir()) == []


def test_a_release_is_made_current_by_its_rerun_whatever_other_names_have_published(tmp_path, monkeypatch):
    persons = Areas(tmp_path / "lake" / "persons", tmp_path / "evidence")
    firms = Areas(tmp_path / "lake" / "firms", tmp_path / "evidence")
    with monkeypatch.context() as patched:
        patched.setattr(publish, "make_current", lambda *_: None)  # killed before it
        publish.publish(staged(persons), manifest(), persons, entry())
    other = Entry("published", "f" * 32, "firms", "2026-01-01T00:00:00+00:00", {})
    publish.publish(staged(firms, "f" * 32), manifest("f" * 32), firms, other)
    assert publish.published_already(persons, ID)
    assert persons.served() == ID


def test_what_a_run_with_other_evidence_published_meanwhile_is_not_stepped_over(areas, tmp_path):
    other = Areas(areas.public, tmp_path / "elsewhere")
    publish.publish(staged(other), manifest(), other, entry())
    second = "f" * 32
    ready = staged(areas, second)
    with pytest.raises(GateRefused, match="differenced"):
        publish.publish(ready, manifest(second), areas, entry(second))
    assert {path.name for path in areas.public.iterdir()} == {ID, "current.json"}


def test_two_runs_with_evidence_of_their_own_publish_one_after_the_other(areas, tmp_path, monkeypatch):
    other = Areas(areas.public, tmp_path / "elsewhere")
    second = "f" * 32
    ready = staged(other, second)
    refused = []

    def late():
        try:
            publish.publish(ready, manifest(second), other, entry(second))
        except GateRefused as error:
            refused.append(error)

    first_ready = staged(areas)
    appear = publish._appear

    def slow(*arguments):
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
        return appear(*arguments)

    thread = threading.Thread(target=late)
    with monkeypatch.context() as patched:
        patched.setattr(publish, "_appear", slow)
        publish.publish(first_ready, manifest(), areas, entry())
    thread.join(10)
    assert len(refused) == 1
    assert areas.served() == ID


@pytest.mark.parametrize("step", ["rename", "ledger", "current"])
def test_a_run_killed_at_any_step_leaves_the_last_release_current(released, monkeypatch, step):
    class Killed(BaseException):
        pass

    def kill(*_, **__):
        raise Killed

    second = "f" * 32
    ready = staged(released, second)
    if step == "rename":
        monkeypatch.setattr(publish.Path, "rename", kill)
    elif step == "ledger":
        monkeypatch.setattr(publish.Ledger, "append", kill)
    else:
        monkeypatch.setattr(publish, "make_current", kill)
    with pytest.raises(Killed):
        publish.publish(ready, manifest(second), released, entry(second), accepted=True)
    monkeypatch.undo()
    assert released.served() == ID
    assert audit(released.release(ID)).passed
    if not publish.published_already(released, second):
        publish.publish(ready, manifest(second), released, entry(second), accepted=True)
    assert released.served() == second
    assert audit(released.release(second)).passed


@pytest.mark.parametrize(
    ("tamper", "check"),
    [
        (lambda folder: (folder / "microdata" / "part-00000.parquet").write_bytes(b"PAR1"), "checksums"),
        (lambda folder: (folder / "tables" / "001_sex.parquet").unlink(), "checksums"),
        (lambda folder: (folder / "extra.csv").write_text("x"), "checksums"),
    ],
)
def test_the_audit_notices_files_that_are_not_the_released_ones(released, tamper, check):
    tamper(released.release(ID))
    found = audit(released.release(ID))
    assert not found.passed
    assert [finding.check for finding in found.findings if not finding.passed] == [check]


@pytest.mark.parametrize(
    ("records", "changes", "check"),
    [
        (RECORDS.slice(0, 5), {"records": 5}, "k-anonymity of all"),
        (RECORDS, {"records": 7}, "records"),
        (RECORDS.replace_schema_metadata({"pandas": "{}"}), {}, "metadata"),
        (RECORDS.rename_columns(["sex", "name"]), {}, "columns"),
        (
            RECORDS.set_column(0, "sex", pa.array(["f", "f", "f", "f", "f", "f"])),
            {"guarantee": {"k": 3, "groups": [{
                "name": "all", "variables": ["sex"], "with_region": [], "smallest_class": 6, "classes": 1}]}},
            "tables",
        ),
        (
            RECORDS.set_column(0, "sex", pa.DictionaryArray.from_arrays(
                pa.array([0, 0, 0, 1, 1, 1], pa.int8()), pa.array(["f", "m", "secret"]))),
            {"columns": [{"name": "sex", "type": "dictionary<values=string, indices=int8, ordered=0>"},
                         {"name": "hours", "type": "int8"}]},
            "dictionaries",
        ),
    ],
)  # fmt: skip
def test_the_audit_notices_a_release_that_never_should_have_been(areas, records, changes, check):
    publish.publish(staged(areas, records=records), manifest(**changes), areas, entry())
    failed = [finding.check for finding in audit(areas.release(ID)).findings if not finding.passed]
    assert check in failed


def test_a_withdrawn_release_is_gone_and_remembered(released):
    withdraw(str(released.release(ID)))
    assert list(released.public.iterdir()) == []
    assert Ledger(released).standing() == []
    assert Ledger(released).ever("persons") == [ID]


def test_withdrawing_the_current_release_goes_back_to_the_one_before_it(released):
    second = "f" * 32
    publish.publish(staged(released, second), manifest(second), released, entry(second), accepted=True)
    outcome = withdraw(str(released.release(second)))
    assert released.served() == ID
    assert outcome.content["current"] == ID
    assert ID in outcome.text
    assert "no current release" in withdraw(str(released.release(ID))).text
    assert not released.current.exists()


class Killed(BaseException):
    """As SIGKILL does: nothing after it runs."""


def kill(*_, **__):
    raise Killed


STEPS = [
    ("withdrawal", "take_out"),
    ("withdrawal", "write_atomically"),
    ("withdrawal", "forget_everywhere"),
    ("withdrawal", "remove_release"),
]


@pytest.mark.parametrize(("module", "step"), STEPS)
def test_a_killed_withdrawal_is_finished_by_whoever_comes_next(released, monkeypatch, module, step):
    second = "f" * 32
    publish.publish(staged(released, second), manifest(second), released, entry(second), accepted=True)
    with monkeypatch.context() as patched:
        patched.setattr(withdrawal, step, kill)
        with pytest.raises(Killed):
            withdraw(str(released.release(second)))
    assert not publish.published_already(released, second)
    with released.lock():
        publish.finish_what_died(released)
    assert released.served() == ID
    assert not released.release(second).exists()
    assert {path.name for path in released.public.iterdir()} == {ID, "current.json"}
    assert Ledger(released).status(second).event == "withdrawn"


def test_withdrawing_again_what_a_killed_withdrawal_left_is_no_fault(released, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(withdrawal.shutil, "rmtree", kill)
        with pytest.raises(Killed):
            withdraw(str(released.release(ID)))
    record = released.record(ID)
    record.mkdir()
    (record / "quality.json").write_text(json.dumps({"release": {"public_area": str(released.public)}}))
    assert "is withdrawn" in withdraw(str(record)).text
    assert list(released.public.iterdir()) == []


@pytest.mark.parametrize("step", ["_copy", "sync_folder", "_commit"])
def test_a_release_that_died_before_it_was_published_goes_before_another_input_comes(
    released, monkeypatch, step
):
    second, third = "f" * 32, "e" * 32
    with monkeypatch.context() as patched:
        patched.setattr(publish, step, kill)
        with pytest.raises(Killed):
            publish.publish(
                staged(released, second), manifest(second), released, entry(second), accepted=True
            )
    with released.lock():
        publish.finish_what_died(released)
    assert not released.release(second).exists()
    assert released.served() == ID
    assert second in Ledger(released).ever("persons")  # somebody may have read it
    publish.publish(staged(released, third), manifest(third), released, entry(third), accepted=True)
    assert released.served() == third


def test_a_published_release_whose_files_are_torn_is_made_again(released):
    (file,) = (released.release(ID) / "microdata").glob("*.parquet")
    file.write_bytes(b"")
    assert not publish.published_already(released, ID)
    publish.publish(staged(released), manifest(), released, entry())
    assert publish.published_already(released, ID)
    assert audit(released.release(ID)).passed


def test_a_release_that_stands_whole_keeps_its_very_files_where_its_ledger_is_lost(released):
    (file,) = (released.release(ID) / "microdata").glob("*.parquet")
    before = file.stat().st_ino
    released.ledger.unlink()
    publish.publish(staged(released), manifest(), released, entry())
    assert file.stat().st_ino == before
    assert released.served() == ID


def test_another_name_does_not_take_the_readers_of_an_area_along(released):
    second = "f" * 32
    other = Entry("published", second, "firms", "2026-01-01T00:00:00+00:00", {})
    with pytest.raises(GateRefused, match="another name, 'persons'"):
        publish.publish(staged(released, second), manifest(second), released, other, accepted=True)
    assert released.served() == ID


def test_a_delta_table_that_another_writer_changed_is_no_release(areas):
    from deltalake import write_deltalake

    publish.publish(staged(areas), manifest(format="delta"), areas, entry())
    assert audit(areas.release(ID)).passed
    changed = RECORDS.slice(0, 5)
    shutil.rmtree(areas.public / "delta")
    write_deltalake(str(areas.public / "delta"), changed, commit_properties=delta.properties(ID))
    failures = audit(areas.release(ID)).failures()
    assert failures == ["Delta table: the records of the Delta table are not those of the files"]


def test_a_commit_that_does_not_hold_the_records_is_taken_back(areas, monkeypatch):
    monkeypatch.setattr(delta, "write_deltalake", lambda *_, **__: None)
    with pytest.raises(ProtectionFailed, match="taken back"):
        publish.publish(staged(areas), manifest(format="delta"), areas, entry())
    assert list(areas.public.iterdir()) == []
    assert Ledger(areas).standing() == []


def test_withdrawing_an_earlier_release_leaves_the_current_one(released):
    second = "f" * 32
    publish.publish(staged(released, second), manifest(second), released, entry(second), accepted=True)
    withdraw(str(released.release(ID)))
    assert released.served() == second
    assert audit(released.release(second)).passed


def test_a_delta_table_carries_the_release_and_forgets_a_withdrawn_one(areas):
    from pipelines.publication.formats.delta import committed

    second = "f" * 32
    publish.publish(staged(areas), manifest(format="delta"), areas, entry())
    fewer = staged(areas, second, RECORDS.slice(0, 3))
    publish.publish(fewer, manifest(second, format="delta", records=3), areas, entry(second), accepted=True)
    assert committed(areas) == [ID, second]
    withdraw(str(areas.release(ID)))
    assert committed(areas) == [second]
    files = list((areas.public / "delta").rglob("*.parquet"))
    assert sum(pq.read_metadata(path).num_rows for path in files) == 3
    withdraw(str(areas.release(second)))
    assert not (areas.public / "delta").exists()


def test_what_a_delta_table_cannot_hold_is_known_before():
    from pipelines.publication.formats.delta import not_carried

    held = {
        "a b": pa.int64(), "c": pa.dictionary(pa.int8(), pa.string()), "t": pa.timestamp("us"),
        "m": pa.decimal128(9, 2), "b": pa.bool_(), "d": pa.date32(), "f": pa.float32(),
    }  # fmt: skip
    foreign = {
        "u": pa.uint8(), "n": pa.timestamp("ns"), "h": pa.float16(), "w": pa.time64("us"),
        "Sex": pa.string(), "sex": pa.string(), "e": pa.duration("s"), "x": pa.decimal32(5, 2),
    }  # fmt: skip
    assert not_carried(pa.schema(list((held | foreign).items()))) == list(foreign)


def test_a_release_is_found_by_its_folders(released):
    assert find_release(str(released.public)).release_id == ID
    record = released.record(ID)
    record.mkdir()
    (record / "quality.json").write_text(json.dumps({"release": {"public_area": str(released.public)}}))
    assert find_release(str(record)).folder == released.release(ID)
    with pytest.raises(SpecificationError, match="no release"):
        find_release(str(released.evidence / "nowhere"))


def test_a_specification_names_its_current_release(released, tmp_path):
    path = tmp_path / "release.toml"
    path.write_text(
        '[release]\nname = "persons"\nk = 3\n[input]\npath = "x.parquet"\n[variables]\n'
        'sex = { role = "quasi_identifier", kind = "nominal" }\n'
        '[publish]\npath = "lake/persons"\nevidence = "evidence/persons"\n'
    )
    assert find_release(str(path)).folder == released.release(ID)
    assert find_release(str(path)).areas() == released


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"release_id": 1, "files": 2}'])
def test_a_damaged_manifest_does_not_pass_the_audit(released, content):
    (released.release(ID) / "manifest.json").write_text(content)
    with pytest.raises(GateRefused, match="cannot be audited"):
        verify(str(released.public))


def test_what_is_not_public_any_more_cannot_be_audited(released):
    record = released.record(ID)
    record.mkdir()
    (record / "quality.json").write_text(json.dumps({"release": {"public_area": str(released.public)}}))
    withdraw(str(record))
    with pytest.raises(SpecificationError, match="not in the public area"):
        verify(str(record))
