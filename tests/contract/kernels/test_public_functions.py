"""Tests of public functions that call kernels: any memory order and integer width, no record, one record."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from microguard.sdc.clusters.diversity import Diversity, diversify, least_distinct
from microguard.sdc.clusters.dominance import dominated
from microguard.sdc.clusters.weight_shares import spread, trimmed
from microguard.sdc.errors import SdcError
from microguard.sdc.microaggregation import individual_ranking, microaggregate
from microguard.sdc.microaggregation.bounds import nearest_neighbour_bound
from microguard.sdc.microaggregation.global_bound.bound import global_bound
from microguard.sdc.microaggregation.local_search.neighbours import nearest_neighbours
from microguard.sdc.microaggregation.nearest_records import nearest_records
from microguard.sdc.microaggregation.principal_cuts import CutTree, cut_into_blocks
from microguard.sdc.microaggregation.sse import squares_by_cluster, sum_of_squares, typical_cost
from microguard.sdc.nominal import anonymise, partition
from microguard.sdc.risk.linkage import Points, nearer_and_tied
from microguard.sdc.safe import safe

from tests.contract.kernels.recording import uncompiled
from tests.contract.kernels.variations import LAYOUTS, content, widened

RANDOM = np.random.default_rng(7)
N = 30
POINTS, WEIGHTS, LABELS = RANDOM.normal(size=(N, 3)), RANDOM.lognormal(size=N), np.arange(N) // 3
CODES, KEYS = RANDOM.integers(0, 4, (N, 2)), RANDOM.permutation(N)
MARKED = np.array([False, False, True])


def tree_of(points, keys):
    tree = CutTree.grow(points, keys, 4)
    leaves = tree.assign(points, keys)
    return leaves, tree.margins(points, 0)


def labels_of(points, weights, codes):
    mixed = np.column_stack([points[:, :2], codes[:, :1]])
    diversity = Diversity.of(codes, 2)
    plain = microaggregate(points, 3, effort="standard", record_weights=weights)
    return plain.labels, microaggregate(mixed, 3, nominal=MARKED, diversity=diversity).labels


def frame_of(codes):
    return pd.DataFrame(codes, columns=["a", "b"])


def linked(points, codes, weights):
    records = Points(points, codes, np.zeros(len(points), np.int64))
    protected = Points(points + weights[:, np.newaxis], codes, np.zeros(len(points), np.int64))
    return nearer_and_tied(records, records.distances(protected), protected)


def diversified(points, labels, codes):
    return diversify(points, labels, Diversity.of(codes, 2))


#: Functions that other packages call with arrays of their own, and the arrays, one row per record.
FUNCTIONS = {
    "sum_of_squares": (sum_of_squares, POINTS, WEIGHTS, LABELS),
    "squares_by_cluster": (squares_by_cluster, POINTS, WEIGHTS, LABELS),
    "typical_cost": (typical_cost, POINTS, WEIGHTS, LABELS),
    "dominated": (lambda values, labels: dominated(values, labels, 1, 60.0), WEIGHTS, LABELS),
    "least_distinct": (lambda codes, labels: least_distinct(codes[:, 0], labels), CODES, LABELS),
    "diversify": (diversified, POINTS, LABELS, CODES),
    "spread": (lambda points, labels, weights: spread(points, labels, weights, 0.5), POINTS, LABELS, WEIGHTS),
    "trimmed": (lambda weights, labels: trimmed(weights, labels, 0.5), WEIGHTS, LABELS),
    "tree": (tree_of, POINTS, KEYS),
    "cut_into_blocks": (lambda points: cut_into_blocks(points, 8, 3), POINTS),
    "nearest_records": (lambda points: nearest_records(points, 2), POINTS),
    "nearest_neighbours": (lambda points: nearest_neighbours(points, 2, trees=1, seed=0), POINTS),
    "nearest_neighbour_bound": (lambda points: nearest_neighbour_bound(points, 3), POINTS),
    "file_bound": (lambda points, reach: global_bound(points, 3, reach=reach), POINTS, WEIGHTS),
    "nearer_and_tied": (linked, POINTS, CODES, WEIGHTS),
    "microaggregate": (labels_of, POINTS, WEIGHTS, CODES),
    "individual_ranking": (lambda points: individual_ranking(points, 3).labels, POINTS),
    "anonymise": (lambda codes: anonymise(frame_of(codes), 3, 2, effort="fast").protected.to_numpy(), CODES),
    "partition": (lambda codes: partition(frame_of(codes), 3, effort="fast").labels, CODES),
    "safe": (lambda codes: safe(frame_of(codes), 3, 2, keep_records=True).protected.to_numpy(), CODES),
}
#: Functions of a pandas frame, which accepts no foreign byte order.
OF_FRAMES = ("anonymise", "partition", "safe")


def outcome(function, arrays):
    """Return the result of a function, or the name of its error."""
    try:
        return content(function(*arrays))
    except SdcError as error:
        return type(error).__name__


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_function_returns_the_same_result_for_arrays_in_other_memory(name, layout):
    if layout == "other-bytes" and name in OF_FRAMES:
        pytest.skip("pandas refuses it")
    function, *arrays = FUNCTIONS[name]
    given = [LAYOUTS[layout](array.copy()) for array in arrays]
    assert outcome(function, given) == outcome(function, arrays)
    assert [content(array) for array in given] == [content(array) for array in arrays], "arguments are inputs"


@pytest.mark.parametrize("kind", ["int32", "uint8"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_function_returns_the_same_result_for_integers_of_another_width(name, kind):
    function, *arrays = FUNCTIONS[name]
    if not any(array.dtype.kind == "i" for array in arrays):
        pytest.skip("no integers")
    given = [array.astype(kind) if array.dtype.kind == "i" else array for array in arrays]
    assert outcome(lambda *each: widened(function(*each)), given) == outcome(function, arrays)


@pytest.mark.parametrize("records", [0, 1, 2])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_function_returns_a_result_or_a_named_error_for_very_few_records(name, records):
    """Uncompiled code raises an error for an index beyond the end; compiled code would read other memory."""
    function, *arrays = FUNCTIONS[name]
    few = [array[:records].copy() for array in arrays]
    found = outcome(function, few)
    with uncompiled():
        assert outcome(function, few) == found
