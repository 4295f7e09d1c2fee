"""Cell keys: bounded, unbiased, never between 0 and k, the same for the same records."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sdc.errors import InvalidParameter, ShapeMismatch
from sdc.nominal.cell_keys import KEY_SPAN, CellKeyParameters, NoiseTable, cell_keys, perturbed_cells
from sdc.nominal.control_tables import ControlTables
from sdc.nominal.frequency import from_frame


@pytest.mark.parametrize(("k", "largest", "variance"), [(3, 5, 2.0), (2, 2, 1.0), (5, 8, 6.0)])
def test_noise_is_unbiased_bounded_and_never_leaves_a_small_count(k, largest, variance):
    table = NoiseTable.of(CellKeyParameters(k, largest, variance))
    for count, row in enumerate(table.probabilities):
        published = count + table.noise
        assert row.sum() == pytest.approx(1.0)
        assert row @ table.noise == pytest.approx(0.0, abs=1e-6)
        assert not row[(published < 0) | ((published > 0) & (published < k))].any()
    spread = table.probabilities @ table.noise**2
    assert spread[0] == 0
    assert spread[-1] == pytest.approx(variance, abs=1e-5)
    assert (spread[1:] >= variance - 1e-5).all()


def test_a_single_record_is_0_or_3_with_the_least_variance_that_is_unbiased():
    table = NoiseTable.of(CellKeyParameters(3, 5, 1.0))
    single = dict(zip(table.noise.tolist(), table.probabilities[1], strict=True))
    assert single[-1] == pytest.approx(2 / 3)
    assert single[2] == pytest.approx(1 / 3)


def test_cells_of_the_same_records_get_the_same_count_in_every_table():
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


def test_keys_of_cells_are_spread_evenly():
    rng = np.random.default_rng(9)
    frame = pd.DataFrame({"a": rng.permutation(np.arange(6_000) // 3)})
    coded = from_frame(frame)
    keys = rng.integers(0, KEY_SPAN, len(coded.frequencies)).astype(np.uint64)
    tables = ControlTables.of(coded.frequencies, 1)
    noise = perturbed_cells(tables, keys) - tables.original
    assert abs(noise.mean()) < 4 * np.sqrt(3.0 / len(noise))


def test_faulty_arguments_are_named():
    for wrong in ((1, 5, 2.0), (3, 2, 1.0), (3, 5, 0.0), (3, 5, 25.0)):
        with pytest.raises(InvalidParameter):
            CellKeyParameters(*wrong)
    coded = from_frame(pd.DataFrame({"a": [1, 1, 2]}))
    tables = ControlTables.of(coded.frequencies, 1)
    with pytest.raises(ShapeMismatch):
        cell_keys(tables, np.zeros(5, np.uint64))
