"""Tests of special uniques among sampled records that can be counted by hand."""

from types import SimpleNamespace

import numpy as np
from microguard.pipelines.measures.pairs import Pairs
from microguard.pipelines.measures.suda2 import SpecialUniquesMeasure


def section(regions, before, after):
    """Return sampled records with a region and the codes of their nominal variables, (n, q), before and
    after.
    """
    before, after = np.array(before), np.array(after)
    names = tuple("abc"[: before.shape[1]])
    numbers = np.empty((len(before), 0))
    pairs = Pairs(
        of=100,
        numeric=(),
        nominal=names,
        numbers_before=numbers,
        numbers_after=numbers,
        codes_before=before,
        codes_after=after,
        categories=tuple(np.array(["x", "y", "z"], object) for _ in names),
        regions=np.array(regions),
        region_names=np.array(["north", "south"], object),
        weights=None,
    )
    specification = SimpleNamespace(region="region")
    return SpecialUniquesMeasure().compute(SimpleNamespace(pairs=pairs, specification=specification))


def test_record_unique_on_one_variable_is_special_and_unique_on_both_together_is_not():
    # The last record has a category of its own; the previous record is unique by region and category.
    found = section([0, 0, 0, 0, 1, 1], [[0], [0], [1], [1], [0], [2]], [[0], [0], [1], [1], [0], [0]])
    assert found.variables == ("region", "a")
    assert (found.by_size_before, found.records_before, found.score_before) == ((1,), 1, 1.0)
    assert (found.by_size_after, found.records_after, found.score_after) == ((0,), 0, 0.0)


def test_score_of_a_unique_variable_is_twice_the_score_of_a_unique_pair():
    # The last record has a category of its own: 2 * 1. Four others are unique on one pair of variables each:
    # 1.
    before = [[0, 0], [0, 0], [1, 0], [1, 1], [1, 1], [0, 0], [0, 1], [2, 0]]
    found = section([0, 0, 0, 0, 1, 1, 1, 1], before, [[0, 0]] * 8)
    assert (found.by_size_before, found.records_before, found.score_before) == ((1, 4), 5, 6.0)
    assert (found.by_size_after, found.records_after, found.score_after) == ((0, 0), 0, 0.0)
