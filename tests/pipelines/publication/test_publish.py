"""Release, audit and withdrawal of a small verified release, and what tampering meets."""

import errno
import json
import shutil
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.intake.contract import Contract
from pipelines.publication import publish
from pipelines.publication.areas import Areas
from pipelines.publication.find_release import locate
from pipelines.publication.ledger import Entry, Ledger
from pipelines.publication.stage import Staged
from pipelines.verify import audit, verify
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
    return Staged(release_id, folder, Contract(records.schema), (len(records), 0))


def entry(release_id=ID):
    return Entry("published", release_id, "persons", "2026-01-01T00:00:00+00:00", {})


@pytest.fixture
def areas(tmp_path):
    return Areas(tmp_path / "lake" / "persons", tmp_path / "evidence" / "persons")


@pytest.fixture
def released(areas):
    publish.release(staged(areas), manifest(), areas, entry())
    return areas


def test_a_release_is_current_and_passes_its_audit(released):
    assert publish.current(released) == ID
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
    monkeypatch.setattr(publish.shutil, "copyfile", torn)
    with pytest.raises(ProtectionFailed, match="while it was copied"):
        publish.release(ready, manifest(), areas, entry())
    assert list(areas.public.iterdir()) == []
    assert Ledger(areas).entries() == []


def test_a_copy_that_a_killed_run_left_stands_in_nobodys_way(areas, monkeypatch):
    def kill(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(publish.Path, "rename", kill)
        patched.setattr(publish.shutil, "rmtree", lambda *_, **__: None)  # nor does it tidy up
        with pytest.raises(KeyboardInterrupt):
            publish.release(staged(areas), manifest(), areas, entry())
    assert [path.name for path in areas.public.iterdir()] == [f".{ID}.incoming"]
    second = "f" * 32
    Ledger(areas).refuse_successive("persons", second, accepted=False)
    publish.release(staged(areas, second), manifest(second), areas, entry(second))
    assert {path.name for path in areas.public.iterdir()} == {second, "current.json"}


@pytest.mark.parametrize("name", ["microdata/part-00000.parquet", "tables/001_sex.parquet"])
def test_a_file_that_changes_after_it_was_staged_is_not_released(areas, name):
    ready = staged(areas)
    pq.write_table(CELLS.slice(0, 1), ready.folder / name)
    with pytest.raises(ProtectionFailed, match="changed after it was staged"):
        publish.release(ready, manifest(), areas, entry())
    assert list(areas.public.iterdir()) == []


def test_a_file_that_nobody_staged_is_not_released(areas):
    ready = staged(areas)
    pq.write_table(RECORDS, ready.folder / "microdata" / "part-00001.parquet")
    publish.release(ready, manifest(), areas, entry())
    assert audit(areas.release(ID)).passed


def test_a_disk_that_is_full_leaves_nothing_in_the_public_area(areas, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "no space")

    ready = staged(areas)
    monkeypatch.setattr(publish.shutil, "copyfile", full)
    with pytest.raises(OSError):
        publish.release(ready, manifest(), areas, entry())
    assert list(areas.public.iterdir()) == []


def test_a_release_is_made_current_by_its_rerun_whatever_other_names_have_published(tmp_path, monkeypatch):
    persons = Areas(tmp_path / "lake" / "persons", tmp_path / "evidence")
    firms = Areas(tmp_path / "lake" / "firms", tmp_path / "evidence")
    with monkeypatch.context() as patched:
        patched.setattr(publish, "_make_current", lambda *_: None)  # killed before it
        publish.release(staged(persons), manifest(), persons, entry())
    other = Entry("published", "f" * 32, "firms", "2026-01-01T00:00:00+00:00", {})
    publish.release(staged(firms, "f" * 32), manifest("f" * 32), firms, other)
    assert publish.standing(persons, ID)
    assert publish.current(persons) == ID


def test_what_a_run_with_other_evidence_published_meanwhile_is_not_stepped_over(areas, tmp_path):
    other = Areas(areas.public, tmp_path / "elsewhere")
    publish.release(staged(other), manifest(), other, entry())
    second = "f" * 32
    ready = staged(areas, second)
    with pytest.raises(GateRefused, match="differenced"):
        publish.release(ready, manifest(second), areas, entry(second))
    assert {path.name for path in areas.public.iterdir()} == {ID, "current.json"}


def test_two_runs_with_evidence_of_their_own_publish_one_after_the_other(areas, tmp_path):
    other = Areas(areas.public, tmp_path / "elsewhere")
    second = "f" * 32
    ready = staged(other, second)
    refused = []

    def late():
        try:
            publish.release(ready, manifest(second), other, entry(second))
        except GateRefused as error:
            refused.append(error)

    with areas.public_lock():
        thread = threading.Thread(target=late)
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
        assert list(areas.public.iterdir()) == []
        publish._move(staged(areas), manifest(), areas, entry(), "parquet")
    thread.join(10)
    assert len(refused) == 1
    assert publish.current(areas) == ID


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
        monkeypatch.setattr(publish, "_make_current", kill)
    with pytest.raises(Killed):
        publish.release(ready, manifest(second), released, entry(second), accepted=True)
    monkeypatch.undo()
    assert publish.current(released) == ID
    assert audit(released.release(ID)).passed
    if not publish.standing(released, second):
        publish.release(ready, manifest(second), released, entry(second), accepted=True)
    assert publish.current(released) == second
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
    publish.release(staged(areas, records=records), manifest(**changes), areas, entry())
    failed = [finding.check for finding in audit(areas.release(ID)).findings if not finding.passed]
    assert check in failed


def test_a_withdrawn_release_is_gone_and_remembered(released):
    withdraw(str(released.release(ID)))
    assert list(released.public.iterdir()) == []
    assert Ledger(released).standing() == []
    assert Ledger(released).ever("persons") == [ID]


def test_withdrawing_an_earlier_release_leaves_the_current_one(released):
    second = "f" * 32
    publish.release(staged(released, second), manifest(second), released, entry(second), accepted=True)
    withdraw(str(released.release(ID)))
    assert publish.current(released) == second
    assert audit(released.release(second)).passed


def test_a_delta_table_carries_the_release_and_forgets_a_withdrawn_one(areas):
    from pipelines.publication.formats.delta import committed

    second = "f" * 32
    publish.release(staged(areas), manifest(), areas, entry(), format="delta")
    fewer = staged(areas, second, RECORDS.slice(0, 3))
    publish.release(fewer, manifest(second), areas, entry(second), format="delta", accepted=True)
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
    assert locate(str(released.public)).release_id == ID
    record = released.record(ID)
    record.mkdir()
    (record / "quality.json").write_text(json.dumps({"release": {"public_area": str(released.public)}}))
    assert locate(str(record)).folder == released.release(ID)
    with pytest.raises(SpecificationError, match="no release"):
        locate(str(released.evidence / "nowhere"))


def test_a_specification_names_its_current_release(released, tmp_path):
    path = tmp_path / "release.toml"
    path.write_text(
        '[release]\nname = "persons"\nk = 3\n[input]\npath = "x.parquet"\n[variables]\n'
        'sex = { role = "quasi_identifier", kind = "nominal" }\n'
        '[publish]\npath = "lake/persons"\nevidence = "evidence/persons"\n'
    )
    assert locate(str(path)).folder == released.release(ID)
    assert locate(str(path)).areas() == released


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
