"""Tests of large sets of units: compared by differences of one unit, which the result states."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.audit.joint.differences import BUCKETS, MOST_APART, close_pairs
from microguard.pipelines.audit.joint.exposure import audit

from tests.pipelines.audit.joint.evidence_files import all_cells, write_table
from tests.pipelines.audit.joint.planted import firms_of, published, whole_and_part


@pytest.mark.parametrize("seed", range(5))
def test_close_pairs_equal_brute_force(seed):
    """Every pair that differs by few units is found, or follows from found pairs."""
    random = np.random.default_rng(seed)
    units = random.integers(0, 2**64, 400, dtype=np.uint64)
    sets = [set(random.permutation(400)[: random.integers(150, 200)].tolist()) for _ in range(8)]
    for each in list(sets):
        for _ in range(4):
            gone = random.choice(sorted(each), random.integers(0, 12), replace=False)
            come = random.choice(400, random.integers(0, 12), replace=False)
            sets.append((each - set(gone.tolist())) | set(come.tolist()))
    sets = list({frozenset(each) for each in sets})
    buckets = np.zeros((len(sets), BUCKETS), np.uint64)
    for row, each in zip(buckets, sets, strict=True):
        for unit in units[list(each)]:
            row[int(unit) >> 60 : (int(unit) >> 60) + 1] += unit
    compared = []

    def apart(one, other, different):
        compared.append((one, other))
        more, less = sets[one] - sets[other], sets[other] - sets[one]
        inside = {unit for unit in more | less if different[int(units[unit]) >> 60]}
        assert inside == more | less
        few = len(more) + len(less) <= MOST_APART
        return (units[sorted(more)], units[sorted(less)]) if few else None

    found, skipped = close_pairs(buckets, np.array([len(each) for each in sets]), apart)
    close = {
        (i, j) for i, a in enumerate(sets) for j, b in enumerate(sets) if i < j and len(a ^ b) <= MOST_APART
    }
    assert skipped == 0
    assert {tuple(sorted(pair)) for pair in found} <= close
    rows = np.zeros((len(found), len(sets)))
    for row, (one, other) in zip(rows, found, strict=True):
        row[one], row[other] = 1, -1
    rank = np.linalg.matrix_rank(rows)
    for one, other in close:
        row = np.zeros((1, len(sets)))
        row[0, one], row[0, other] = 1, -1
        assert np.linalg.matrix_rank(np.vstack([rows, row])) == rank
    assert len(close) > 20
    assert len(compared) < len(sets) * (len(sets) - 1) / 2


def test_nearly_equal_cells_are_two_cells(tmp_path):
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


def test_unit_that_a_large_cell_lacks_is_found_and_large_sets_are_counted(large, tmp_path):
    found = audit(whole_and_part(tmp_path / "leak", 2, True))
    assert found.known["outsider"] == 1
    assert found.left_out > 0
    assert "large sets of units" in found.notes()[0]
    control = audit(whole_and_part(tmp_path / "safe", 2, False))
    assert control.verdict == "amber"


def two_tables(folder, one, other, columns):
    """Publish tables of two lists of firms by two columns each."""
    return [
        write_table(folder / name, published(all_cells(firms, names, "turnover")), names, firms=firms)
        for name, firms, names in (("one", one, columns[:2]), ("other", other, columns[2:]))
    ]


@pytest.mark.parametrize("kind", ["left out", "swapped", "two left out", "four left out"])
def test_totals_of_tables_by_other_codes_that_differ_by_few_units_are_found(kind, large, tmp_path):
    """Only the totals of the two tables are comparable: one is by branch and region, one by other columns."""
    random = np.random.default_rng(4)
    firms = firms_of(9, 120)
    firms = firms.assign(size=random.choice(list("xyz"), 120), form=random.choice(["p", "q", "r"], 120))
    gone = {"left out": 1, "swapped": 1, "two left out": 2, "four left out": 4}[kind]
    one = firms.iloc[1:] if kind == "swapped" else firms
    other = firms.iloc[:-gone]
    found = audit(two_tables(tmp_path, one, other, ["branch", "region", "size", "form"]))
    expected = {"left out": {"outsider"}, "two left out": {"contributor", "member"}}
    # each of the two firms subtracts its own value and learns the other's
    expected["swapped"] = {"contributor"}
    known = {name for name, count in found.known.items() if count}
    assert known == expected.get(kind, set())
