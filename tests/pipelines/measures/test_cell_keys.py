"""Tests of expected cell-key errors, compared with tables of protected records: exact means over all keys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from microguard.pipelines.measures.cell_keys import CellKeysMeasure, cell_keys_beside
from microguard.pipelines.measures.table_errors import table_errors
from microguard.sdc.cta.cell_keys.noise_table import KEY_SPAN, CellKeyParameters, NoiseTable


def tables(*counts):
    return {("a",): pa.table({"a": list("xyzuvw")[: len(counts)], "frequency": list(counts)})}


def test_count_of_one_is_published_as_0_or_3_and_its_chi_square_is_the_variance() -> None:
    before, after = tables(1), tables(4)
    found = cell_keys_beside(before, table_errors(before, after), 3)
    assert found is not None
    one = found.dimensions["1"]
    assert one.cell_keys.chi2 == pytest.approx(2.0)
    assert one.cell_keys.moved == pytest.approx(1.0)
    assert one.cell_keys.mean_error == pytest.approx(4 / 3)
    assert one.cell_keys.largest_error == 2
    assert (one.records.moved, one.records.mean_error, one.records.largest_error) == (1.0, 3.0, 3)
    assert one.records.chi2 == pytest.approx(9.0)
    assert "dimension 1" in next(iter(CellKeysMeasure().headline(found, 3)))


def test_expected_measures_are_the_means_over_keys() -> None:
    counts = np.array([1, 2, 3, 7, 40, 900])
    before = tables(*counts.tolist())
    found = cell_keys_beside(before, table_errors(before, before), 5)
    assert found is not None
    noise = NoiseTable.of(CellKeyParameters.of_threshold(5))
    keys = np.arange(0, KEY_SPAN, 1 << 20, dtype=np.uint64)
    drawn = np.array([noise.perturb(np.full(len(keys), count), keys) - count for count in counts])
    beside = found.dimensions["1"].cell_keys
    assert beside.chi2 == pytest.approx(np.mean(drawn**2 / counts[:, None], axis=1).sum(), abs=0.01)
    assert beside.moved == pytest.approx(np.mean(drawn != 0), abs=0.001)
    assert beside.mean_error == pytest.approx(np.mean(np.abs(drawn)), abs=0.01)
    assert found.dimensions["1"].records.moved == 0
    assert cell_keys_beside({}, (), 3) is None
