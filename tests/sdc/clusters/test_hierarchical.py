"""Tests of hierarchical variables: distances and representatives against brute force."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.sdc.clusters.hierarchical import Tree, level_codes, tree_costs
from microguard.sdc.clusters.representatives import represent
from microguard.sdc.errors import InvalidParameter

#: Occupations: class, group and section.
PATHS = {code: (code, code[:2], code[0]) for code in ("A11", "A12", "A21", "B11", "B12", "C11")}
CODES = st.sampled_from([*PATHS, None])


def column(values):
    return pa.chunked_array([pa.array(values, pa.string())])


def distance(one, other):
    if None in (one, other):
        return float(one is not other)
    return sum(a != b for a, b in zip(PATHS[one], PATHS[other], strict=True)) / 3


def occupations(values, **others):
    table = pa.table({"occupation": column(values), **others})
    names = list(table.column_names)
    labels = np.zeros(len(values), int)
    return represent(table, labels, nominal=names, trees={"occupation": PATHS}).to_pylist()


@given(st.lists(CODES, min_size=1, max_size=9))
def test_level_codes_differ_in_the_levels_below_the_common_ancestor(values):
    tree = Tree(level_codes(column(values), PATHS))
    for j, other in enumerate(values):
        distances = tree.distances(np.full(len(values), j))
        assert distances.tolist() == pytest.approx([distance(one, other) for one in values])


@given(st.lists(st.tuples(CODES, st.integers(0, 2), st.integers(1, 4)), min_size=1, max_size=12))
def test_tree_costs_agree_with_brute_force(rows):
    values, labels, weights = zip(*rows, strict=True)
    costs = tree_costs(level_codes(column(values), PATHS), np.array(labels), np.array(weights, float))
    for (value, label, _), cost in zip(rows, costs, strict=True):
        assert cost == pytest.approx(sum(w * distance(value, o) for o, where, w in rows if where == label))


def test_represent_chooses_the_category_of_least_tree_distance_and_the_lower_code_in_ties():
    # B11 is the mode, but three of five records belong to section A.
    values = ["B11", "B11", "A11", "A12", "A12", "A21"]
    assert [row["occupation"] for row in occupations(values)] == ["A12"] * 6
    assert [row["occupation"] for row in occupations(["A12", "A11"])] == ["A11"] * 2
    assert [row["occupation"] for row in occupations([None, None, "C11"])] == [None] * 3


def test_represent_chooses_the_nearest_occurring_combination_of_tree_categories():
    snapped = occupations(["A11", "A11", "A12", "B11"], sex=["m", "m", "f", "f"])
    assert snapped[0] in ({"occupation": "A11", "sex": "m"}, {"occupation": "A12", "sex": "f"})
    torn = occupations(["A11", "A11", "A12", "B11", "C11"], sex=["m", "m", "f", "f", "f"])
    assert torn[0] == {"occupation": "A12", "sex": "f"}


def test_level_codes_refuses_an_unknown_category_without_naming_it():
    with pytest.raises(InvalidParameter, match="found 1 records with others") as caught:
        occupations(["A11", "CANARY"])
    assert "CANARY" not in str(caught.value)
