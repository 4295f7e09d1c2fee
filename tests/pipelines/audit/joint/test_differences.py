"""Large sets of units are compared by differences of one unit, and the answer says so."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.audit.joint import unit_sets
from microguard.pipelines.audit.joint.differences import single_differences
from microguard.pipelines.audit.joint.exposure import audit

from tests.pipelines.audit.joint.planted import whole_and_part


def test_single_differences_agree_with_brute_force():
    random = np.random.default_rng(1)
    units = random.integers(0, 2**64, 40, dtype=np.uint64)
    sets = [set(random.permutation(40)[: random.integers(5, 12)].tolist()) for _ in range(30)]
    sets += [each - {next(iter(each))} for each in sets[:10]]
    hashes = np.array([units[list(each)].sum(dtype=np.uint64) for each in sets])
    sizes = np.array([len(each) for each in sets])
    found = single_differences(hashes, sizes, np.ones(len(sets), bool), [units[:25], units[20:]])
    expected = {
        (i, j, int(units[next(iter(a - b))]))
        for i, a in enumerate(sets)
        for j, b in enumerate(sets)
        if len(a - b) == 1 and not b - a
    }
    pairs = zip(found.more.tolist(), found.less.tolist(), found.units.tolist(), strict=True)
    assert set(pairs) == expected
    assert len(expected) >= 10
    assert found.skipped == 0


def test_cells_that_nearly_agree_are_two(tmp_path):
    releases = whole_and_part(tmp_path, 4, True)
    for release in releases:
        path = release.evidence / "cells.parquet"
        cells = pq.read_table(path).to_pandas()
        for name in ("original", "published"):
            cells[name] += 1e9 * (cells["code_branch"] != "c")
        pq.write_table(pa.Table.from_pandas(cells, preserve_index=False), path)
    found = audit([replace(each, public=None, manifest=None) for each in releases])
    assert found.contradictory == 0
    assert found.known["outsider"] == 1


def test_a_unit_that_a_large_cell_lacks_is_found_and_large_sets_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(unit_sets, "MEMBERSHIPS", 0)
    monkeypatch.setattr(unit_sets, "SMALL_SET", 2)
    found = audit(whole_and_part(tmp_path / "leak", 2, True))
    assert found.known["outsider"] == 1
    assert found.left_out > 0
    assert "large sets of units" in found.notes()[0]
    assert audit(whole_and_part(tmp_path / "safe", 2, False)).safe
