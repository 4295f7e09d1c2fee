"""A comparison is believed while map, files and signature are those that it was made of."""

from __future__ import annotations

import hashlib
import json

import pytest
from microguard.pipelines.series.compared import COMPARED, checksums_of, compared_before, keep_comparison

from tests.pipelines.audit.differencing.public_files import write_members, write_records
from tests.pipelines.audit.differencing.test_files import ROLES, keys, published

KEY = b"secret"
NIGHT = [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.fixture
def release(tmp_path):
    folder = write_records(tmp_path, "r", published(NIGHT), ROLES)
    members = write_members(tmp_path / "m", "r", published(NIGHT), [0] * 4 + [1] * 4, keys(NIGHT))
    keep_comparison(members, checksums_of(folder), KEY)
    return members, folder


def test_what_was_compared_is_known_as_long_as_nothing_changes(release):
    members, folder = release
    assert compared_before(members, checksums_of(folder), KEY) == "yes"
    assert compared_before(members, None, KEY) == "yes"  # withdrawn: there are no files to compare with
    (members / COMPARED).unlink()
    assert compared_before(members, checksums_of(folder), KEY) == "no"


def test_files_that_changed_are_compared_again(release):
    members, folder = release
    file = folder / "microdata" / "part-0.parquet"
    file.write_bytes(file.read_bytes() + b"\0")
    assert compared_before(members, checksums_of(folder), KEY) == "no"
    file.rename(file.with_name("part-1.parquet"))
    assert compared_before(members, checksums_of(folder), KEY) == "no"


def test_a_map_that_was_changed_is_not_believed_though_it_describes_the_files(release):
    members, folder = release
    swapped = [*keys(NIGHT)[4:], *keys(NIGHT)[:4]]
    write_again = members.parent / "again"
    other = write_members(write_again, "r", published(NIGHT), [0] * 4 + [1] * 4, swapped)
    (other / "units.parquet").rename(members / "units.parquet")
    assert compared_before(members, checksums_of(folder), KEY) == "map changed"


def test_a_comparison_that_the_key_did_not_sign_is_made_again(release):
    members, folder = release
    assert compared_before(members, checksums_of(folder), b"another") == "no"
    file = folder / "microdata" / "part-0.parquet"
    file.write_bytes(file.read_bytes() + b"\0")
    kept = json.loads((members / COMPARED).read_text())
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    kept["files"] = {"microdata/part-0.parquet": digest}
    (members / COMPARED).write_text(json.dumps(kept))
    assert compared_before(members, checksums_of(folder), KEY) == "no"
    (members / COMPARED).write_text("[]")
    assert compared_before(members, checksums_of(folder), KEY) == "no"
