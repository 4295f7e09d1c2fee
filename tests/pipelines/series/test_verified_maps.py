"""Tests of verified maps: a comparison is trusted while map, files and signature are unchanged."""

from __future__ import annotations

import hashlib
import json

import pytest
from microguard.pipelines.series.verified_maps import COMPARED, checksums_of, keep_verified, verified_before

from tests.pipelines.audit.differencing.public_files import write_members, write_records
from tests.pipelines.audit.differencing.test_files import ROLES, keys, published

KEY = b"secret"
NIGHT = [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.fixture
def release(tmp_path):
    folder = write_records(tmp_path, "r", published(NIGHT), ROLES)
    members = write_members(tmp_path / "m", "r", published(NIGHT), [0] * 4 + [1] * 4, keys(NIGHT))
    keep_verified(members, checksums_of(folder), KEY)
    return members, folder


def test_verified_map_is_trusted_while_nothing_changes(release):
    members, folder = release
    assert verified_before(members, checksums_of(folder), KEY) == "yes"
    # The release is withdrawn, so there are no files to compare with.
    assert verified_before(members, None, KEY) == "yes"
    (members / COMPARED).unlink()
    assert verified_before(members, checksums_of(folder), KEY) == "no"


def test_verified_map_is_compared_again_if_files_changed(release):
    members, folder = release
    file = folder / "microdata" / "part-0.parquet"
    file.write_bytes(file.read_bytes() + b"\0")
    assert verified_before(members, checksums_of(folder), KEY) == "no"
    file.rename(file.with_name("part-1.parquet"))
    assert verified_before(members, checksums_of(folder), KEY) == "no"


def test_verified_map_is_not_trusted_if_the_map_changed(release):
    members, folder = release
    swapped = [*keys(NIGHT)[4:], *keys(NIGHT)[:4]]
    write_again = members.parent / "again"
    other = write_members(write_again, "r", published(NIGHT), [0] * 4 + [1] * 4, swapped)
    (other / "units.parquet").rename(members / "units.parquet")
    assert verified_before(members, checksums_of(folder), KEY) == "map changed"


def test_verified_map_is_compared_again_if_its_signature_is_invalid(release):
    members, folder = release
    assert verified_before(members, checksums_of(folder), b"another") == "no"
    file = folder / "microdata" / "part-0.parquet"
    file.write_bytes(file.read_bytes() + b"\0")
    kept = json.loads((members / COMPARED).read_text())
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    kept["files"] = {"microdata/part-0.parquet": digest}
    (members / COMPARED).write_text(json.dumps(kept))
    assert verified_before(members, checksums_of(folder), KEY) == "no"
    (members / COMPARED).write_text("[]")
    assert verified_before(members, checksums_of(folder), KEY) == "no"
