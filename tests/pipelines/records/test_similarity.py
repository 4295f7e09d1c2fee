"""Tests of distances between key combinations: equal scales, integers, and nearest moves of records."""

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.records.similarity import PARTS, similarity
from microguard.sdc.nominal.frequency import from_frame
from microguard.sdc.nominal.points import all_distances

from tests.pipelines.microdata import published, quality, run, specification
from tests.pipelines.records.ordered import ORDERED, SIZES, steps_moved, with_orders

QUASI = {"role": "quasi_identifier"}


def distances(folder, roles, rows):
    """Return the distance matrix of the key combinations of rows, or None, in the order of the rows."""
    frame = pd.DataFrame(rows, columns=list(roles))
    coded = from_frame(frame)
    values = [
        [None if pd.isna(value) else str(value) for value in coded.values(j)] for j in range(len(roles))
    ]
    similar = similarity(coded.frequencies, values, specification(folder, roles))
    if similar is None:
        return None
    return all_distances(similar.points)[np.ix_(coded.combination, coded.combination)]


def test_plain_variables_of_equal_weight_need_no_distance_matrix(tmp_path):
    roles = {name: QUASI | {"kind": "nominal", "variable_weight": 3.0} for name in "ab"}
    assert distances(tmp_path, roles, [("x", "p"), ("y", "p")]) is None


def test_extremes_of_an_order_a_missing_value_and_a_mismatch_have_equal_cost(tmp_path):
    roles = {
        "size": QUASI | {"kind": "ordinal", "order": SIZES},
        "sex": QUASI | {"kind": "nominal"},
    }
    rows = [("tiny", "f"), ("small", "f"), ("huge", "f"), (None, "f"), ("tiny", "m")]
    found = distances(tmp_path, roles, rows)
    assert found[0].tolist() == [0, PARTS // 4, PARTS, PARTS, PARTS]
    assert found[1].tolist() == [PARTS // 4, 0, 3 * PARTS // 4, PARTS, PARTS + PARTS // 4]


def test_levels_of_a_tree_divide_the_cost_of_a_mismatch_and_weights_multiply_it(tmp_path):
    (tmp_path / "codes.csv").write_text("class,section\na1,a\na2,a\nb1,b\n")
    roles = {
        "activity": QUASI | {"kind": "hierarchical", "hierarchy": "codes.csv", "variable_weight": 2.0},
        "sex": QUASI | {"kind": "nominal"},
    }
    found = distances(tmp_path, roles, [("a1", "f"), ("a2", "f"), ("b1", "f"), (None, "f"), ("a1", "m")])
    assert found[0].tolist() == [0, PARTS, 2 * PARTS, 2 * PARTS, PARTS]


def test_largest_cost_of_a_matrix_equals_a_nominal_mismatch(tmp_path):
    (tmp_path / "ways.csv").write_text(",train,tram,walk\ntrain,0,1,5\ntram,1,0,4.5\nwalk,5,4.5,0\n")
    roles = {
        "way": QUASI | {"kind": "nominal", "costs": "ways.csv"},
        "sex": QUASI | {"kind": "nominal"},
    }
    rows = [("train", "f"), ("tram", "f"), ("walk", "f"), (None, "f"), ("train", "m")]
    found = distances(tmp_path, roles, rows)
    assert found[0].tolist() == [0, PARTS // 5, PARTS, PARTS, PARTS]
    assert found[1, 2] == 9 * PARTS // 10


def test_very_different_weights_do_not_overflow_distances(tmp_path):
    roles = {
        "a": QUASI | {"kind": "nominal", "variable_weight": 1e6},
        "b": QUASI | {"kind": "nominal"},
    }
    found = distances(tmp_path, roles, [("x", "p"), ("y", "p"), ("x", "q")])
    assert 0 < found[0, 2] < found[0, 1] <= 30_000


@pytest.mark.spark
def test_records_move_to_key_combinations_that_are_near_in_the_order(spark, tmp_path):
    roles = {"note": {"role": "other"}, **ORDERED, "job": QUASI | {"kind": "nominal"}}
    rng = np.random.default_rng(4)
    original = with_orders(pd.DataFrame(index=range(600)), rng)
    original["job"] = rng.choice(list("abcdefghijklmnop"), len(original))
    original.to_parquet(tmp_path / "data", index=False)
    _, areas = run(spark, specification(tmp_path, roles), ("certificates",))
    frame = published(areas)
    assert frame.groupby(["size", "grade", "job"], dropna=False).size().min() >= 3
    assert quality(areas)["certificates"]["all"][0]["lower_bound"] > 0
    steps = steps_moved(original, frame)
    assert steps["size"] < 0.9 * steps["grade"]
