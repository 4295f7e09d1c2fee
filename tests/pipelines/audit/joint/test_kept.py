"""Tests of stored audit results: only changes are audited again, and only results signed for these files are
used.
"""

import json
from dataclasses import replace

import numpy as np
import pytest
from microguard.pipelines.audit.joint import kept as kept_results
from microguard.pipelines.audit.joint import statements
from microguard.pipelines.audit.joint.exposure import audit

from tests.pipelines.audit.joint.evidence_files import write_classes
from tests.pipelines.audit.joint.planted import firms_of, whole_and_part

KEY = b"agency"


@pytest.fixture(autouse=True)
def every_array_is_mapped_and_every_file_settled(monkeypatch):
    monkeypatch.setattr(kept_results, "MAPPED", 100)
    monkeypatch.setattr(kept_results, "SETTLED", 0)


@pytest.fixture
def reads(monkeypatch):
    """Count the releases that are read from their files."""
    found = []
    for name in ("read_cells", "read_members"):
        original = getattr(statements, name)

        def reading(release, *rest, original=original):
            found.append(release.release_id)
            return original(release, *rest)

        monkeypatch.setattr(statements, name, reading)
    return found


def releases_of(folder):
    """Publish tables of all firms and of all but one, and classes of the same firms."""
    firms = firms_of(5).sort_values("turnover").reset_index(drop=True)
    class_of = np.minimum(np.arange(len(firms)) // 4, len(firms) // 4 - 1)
    means = np.bincount(class_of, firms["turnover"]) / np.bincount(class_of)
    records = write_classes(
        folder / "records", firms["unit"].tolist(), class_of, {"turnover": means.round(1)}
    )
    return [*whole_and_part(folder, 5, True), records]


def test_joint_audit_does_not_read_an_unchanged_area_again(large, reads, tmp_path):
    releases = releases_of(tmp_path)
    first = audit(releases, tmp_path / "kept", KEY)
    assert sorted(reads) == ["part", "records", "whole"]
    assert first.solved == first.components > 0
    again = audit(releases, tmp_path / "kept", KEY)
    assert len(reads) == 3
    assert again == replace(first, solved=0)
    assert not first.safe


def test_joint_audit_reads_an_additional_release_alone_and_returns_the_same_result(large, reads, tmp_path):
    releases = releases_of(tmp_path)
    audit(releases[:2], tmp_path / "kept", KEY)
    reads.clear()
    more = audit(releases, tmp_path / "kept", KEY)
    assert sorted(reads) == ["part", "records", "whole"]  # the units of tables need the versions in "records"
    other = write_classes(
        tmp_path / "other", range(6), [0] * 3 + [1] * 3, {"turnover": [1.0, 2.0]}, period="2020"
    )
    reads.clear()
    last = audit([*releases, other], tmp_path / "kept", KEY)
    assert reads == ["other"]
    assert last.solved < last.components
    for found, listed in ((more, releases), (last, [*releases, other])):
        assert replace(found, solved=0) == replace(audit(listed), solved=0)


@pytest.mark.parametrize(
    "changed", ["evidence/cells.parquet", "evidence/contributors/units.parquet/part-0.parquet"]
)
def test_joint_audit_reads_a_changed_file_again_with_any_time_stamp(changed, large, reads, tmp_path):
    releases = releases_of(tmp_path)
    first = audit(releases, tmp_path / "kept", KEY)
    reads.clear()
    source, target = (tmp_path / name / changed for name in ("whole", "part"))
    target.write_bytes(source.read_bytes())
    again = audit(releases, tmp_path / "kept", KEY)
    assert reads == ["part"]
    assert again.known != first.known
    target.unlink()
    lost = audit(releases, tmp_path / "kept", KEY)
    assert lost.not_compared == ("part",) or lost.known != first.known


def planted(file, change):
    """Write a result without leaks, as an attacker does who can write to the area and lacks the key."""
    content = json.loads(file.read_text())
    content["exposures"] = {name: {**each, "known": dict.fromkeys(each["known"], 0)}
                            for name, each in content["exposures"].items()}  # fmt: skip
    content["answers"] = {name: [[0] * 6, [0] * 6, 0, 0] for name in content["answers"]}
    file.write_text(json.dumps(content | change))


@pytest.mark.parametrize("change", [{}, {"signature": "0" * 64}, {"code": "other"}, {"answers": []}])
def test_joint_audit_ignores_forged_results_and_results_of_other_code(change, tmp_path):
    releases = whole_and_part(tmp_path, 5, True)
    first = audit(releases, tmp_path / "kept", KEY)
    (file,) = (each for each in (tmp_path / "kept").iterdir() if each.is_file())
    assert file.stat().st_mode & 0o777 == 0o600
    planted(file, change)
    again = audit(releases, tmp_path / "kept", KEY)
    assert (again.solved, again.known) == (first.solved, first.known)
    assert audit(releases, tmp_path / "kept", b"other key").solved == first.solved


def test_control_joint_audit_uses_forged_results_that_are_signed(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_results.hmac, "compare_digest", lambda *_: True)
    releases = whole_and_part(tmp_path, 5, True)
    assert not audit(releases, tmp_path / "kept", KEY).safe
    (file,) = (each for each in (tmp_path / "kept").iterdir() if each.is_file())
    planted(file, {})
    assert audit(releases, tmp_path / "kept", KEY).safe


def test_joint_audit_computes_changed_arrays_again(large, reads, tmp_path):
    releases = releases_of(tmp_path)
    audit(releases[:2], tmp_path / "kept", KEY)
    for array in (tmp_path / "kept").rglob("units.entities.npy"):
        content = bytearray(array.read_bytes())
        content[-400:] = bytes(400)
        array.write_bytes(content)
    reads.clear()
    other = write_classes(
        tmp_path / "other", range(6), [0] * 3 + [1] * 3, {"turnover": [1.0, 2.0]}, period="2020"
    )
    found = audit([*releases[:2], other], tmp_path / "kept", KEY)
    assert sorted(reads) == ["other", "part", "whole"]
    assert replace(found, solved=0) == replace(audit([*releases[:2], other]), solved=0)


def test_joint_audit_removes_unused_results(large, tmp_path):
    releases = releases_of(tmp_path)
    audit(releases, tmp_path / "kept", KEY)
    before = {each.name for each in (tmp_path / "kept").iterdir()}
    audit(releases[:2], tmp_path / "kept", KEY)
    after = {each.name for each in (tmp_path / "kept").iterdir()}
    assert len(after) == len(before) - 1
