"""Tests of reassignment: the moves of records to key combinations do not depend on the record order."""

from collections import Counter

import numpy as np
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.publication.staging.folder import FolderStagingArea
from microguard.pipelines.records.combinations import combinations, write_combinations
from microguard.pipelines.records.reassignment import carried_back, moves_schema, write_moves

from tests.pipelines.microdata import specification

QUASI = {"role": "quasi_identifier", "kind": "nominal"}
ROLES = {"region": {"role": "region"}, "a.b": QUASI, "size": QUASI, "note": {"role": "other"}}
SCHEMA = "region string, `a.b` string, size double, note string"
#: The north has four, one and one records by key combination, the south three. NULL is a value; -0.0 is 0.0.
RECORDS = [
    *[("north", "x", [0.0, -0.0][i % 2], f"x{i}") for i in range(4)],
    ("north", "y", 0.0, "y"),
    ("north", None, None, "none"),
    *[("south", "x", 0.0, f"s{i}") for i in range(3)],
]


@pytest.fixture
def collapsed(spark, tmp_path):
    def made(records):
        asked = specification(tmp_path, ROLES)
        frame, group = spark.createDataFrame(records, SCHEMA), asked.clusterings[0]
        place = FolderStagingArea(tmp_path)
        write_combinations(frame, group, asked, place, "combinations")
        found = combinations(place, "combinations", group, asked)

        def carried(counts):
            part = write_moves(place, "moves", 0, found, np.array(counts))
            place.commit_parts("moves", [part], moves_schema(found.categories))
            moves = place.read(spark, "moves")
            assert moves.schema == moves_schema(found.categories)
            return carried_back(frame, group, asked, moves)

        return frame, found, carried

    return made


@pytest.mark.parametrize(
    ("counts", "left"),
    [
        ([3, 3, 0, 3], {("x", 0.0): 3, ("y", 0.0): 3}),
        ([3, 0, 3, 3], {("x", 0.0): 3, (None, None): 3}),
        ([6, 0, 0, 3], {("x", 0.0): 6}),
    ],
    ids=["to a value", "to a missing value", "to a combination that only receives"],
)
def test_records_move_within_their_region_until_counts_equal_the_protected_counts(collapsed, counts, left):
    frame, found, carried = collapsed(RECORDS)
    assert found.frequencies.counts.tolist() == [4, 1, 1, 3]
    back = carried(counts)
    rows = back.collect()
    assert back.dtypes == frame.dtypes
    assert Counter((row["a.b"], row["size"]) for row in rows if row.region == "north") == left
    assert {row.note: row["a.b"] for row in rows if row.region == "south"} == dict.fromkeys(
        ["s0", "s1", "s2"], "x"
    )
    assert "-0.0" not in {str(row["size"]) for row in rows}
    assert sorted(row.note for row in rows) == sorted(row[3] for row in RECORDS)


def test_moves_do_not_depend_on_record_order(collapsed):
    moved = []
    for records in (RECORDS, RECORDS[::-1]):
        _, _, carried = collapsed(records)
        moved.append({row.note: row["a.b"] for row in carried([3, 3, 0, 3]).collect()})
    assert moved[0] == moved[1]


def test_key_combinations_with_unchanged_counts_are_in_no_move(collapsed, tmp_path):
    _, found, _ = collapsed(RECORDS)
    place = FolderStagingArea(tmp_path)
    write_moves(place, "moves", 0, found, np.array([6, 0, 0, 3]))
    moves = pq.read_table(tmp_path / "moves")
    assert sorted(moves["__last"].to_pylist()) == [1, 1]
    assert set(moves["__taken0"].to_pylist()) == {"x"}
    write_moves(place, "moves", 0, found, found.frequencies.counts)
    assert len(pq.read_table(tmp_path / "moves")) == 0
