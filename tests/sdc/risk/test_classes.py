"""Classes, uniques and k-map on hand-sized frames."""

import numpy as np
import pandas as pd
import pytest
from microguard.sdc.errors import ShapeMismatch, UnknownVariable
from microguard.sdc.risk.classes import class_sizes, classes_of, k_map, unique_share


def test_a_missing_value_is_a_value():
    frame = pd.DataFrame({"a": ["x", None, None, "x"], "b": [1.0, np.nan, np.nan, 2.0]})
    assert class_sizes(classes_of(frame)).tolist() == [1, 2, 2, 1]
    assert unique_share(classes_of(frame)) == 0.5
    assert unique_share(classes_of(frame, ["a"])) == 0.0
    with pytest.raises(UnknownVariable):
        classes_of(frame, ["c"])


def test_k_map_counts_records_whose_class_is_rare_in_the_population():
    sample = pd.DataFrame({"sex": ["f", "f", "m", "x"], "age": [1, 1, 2, 3]})
    classes = classes_of(sample)
    counts = np.array([5, 4, 0])  # of the population: five alike, four alike, and nobody
    assert [k_map(classes, counts, k) for k in (1, 5, 6)] == [1, 2, 4]
    with pytest.raises(ShapeMismatch):
        k_map(classes, counts[:1], 2)
