"""Tests of the cell-key method: bounded, unbiased, never 1 to k - 1, and consistent for the same records."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from microguard.sdc.cta.cell_keys.noise_table import KEY_SPAN
from microguard.sdc.errors import ShapeMismatch
from microguard.sdc.nominal.cell_keys import cell_keys, perturbed_cells
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import from_frame


def test_perturbed_cells_of_the_same_records_are_equal_in_every_table():
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"a": rng.integers(0, 9, 400), "c": rng.integers(0, 3, 400)})
    frame["b"] = frame["a"]  # the cells of a, b, and a x b are the same records
    coded = from_frame(frame)
    keys = np.zeros(len(coded.frequencies), np.uint64)
    np.add.at(keys, coded.combination, rng.integers(0, KEY_SPAN, 400).astype(np.uint64))
    tables = ControlTables.of(coded.frequencies, [("a",), ("b",), ("a", "b"), ("a", "c")])
    published = perturbed_cells(tables, keys)
    by_table = [published[tables.table == t] for t in range(4)]
    assert np.array_equal(by_table[0], by_table[1])
    assert np.array_equal(by_table[0], by_table[2])
    assert np.abs(published - tables.original).max() <= 5
    assert not ((published > 0) & (published < 3)).any()
    noise = (published - tables.original)[tables.table == 3]
    assert noise.any()


def test_cell_keys_are_uniformly_distributed():
    rng = np.random.default_rng(9)
    frame = pd.DataFrame({"a": rng.permutation(np.arange(6_000) // 3)})
    coded = from_frame(frame)
    keys = rng.integers(0, KEY_SPAN, len(coded.frequencies)).astype(np.uint64)
    tables = ControlTables.of(coded.frequencies, 1)
    noise = perturbed_cells(tables, keys) - tables.original
    assert abs(noise.mean()) < 4 * np.sqrt(3.0 / len(noise))


def test_cell_keys_refuses_a_wrong_number_of_keys():
    coded = from_frame(pd.DataFrame({"a": [1, 1, 2]}))
    tables = ControlTables.of(coded.frequencies, 1)
    with pytest.raises(ShapeMismatch):
        cell_keys(tables, np.zeros(5, np.uint64))
