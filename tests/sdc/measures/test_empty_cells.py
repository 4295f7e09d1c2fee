"""Tests of emptied cells by size and of transitions of small counts, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from microguard.sdc.errors import InvalidParameter, ShapeMismatch
from microguard.sdc.measures.empty_cells import emptied_cells, transitions

ORIGINAL = np.array([0, 1, 1, 2, 4, 7, 120])
PROTECTED = np.array([0, 0, 3, 0, 0, 9, 118])


def test_emptied_cells_counts_by_original_size():
    emptied = emptied_cells(ORIGINAL, PROTECTED)
    by_size = dict(zip(emptied.sizes, zip(emptied.cells, emptied.emptied, strict=True), strict=True))
    assert by_size[1] == (2, 1)
    assert by_size[2] == (1, 1)
    assert by_size[3] == (1, 1)
    assert by_size[5] == (1, 0)
    assert by_size[100] == (1, 0)
    assert emptied.records.sum() == 1 + 2 + 4


def test_transitions_count_every_cell_once():
    matrix = transitions(ORIGINAL, PROTECTED, 4)
    assert matrix.sum() == len(ORIGINAL)
    assert matrix[1].tolist() == [1, 0, 0, 1, 0, 0]
    assert matrix[5, 5] == 2
    assert matrix[4, 0] == 1


def test_emptied_cells_and_transitions_refuse_invalid_counts():
    with pytest.raises(ShapeMismatch):
        emptied_cells(ORIGINAL, PROTECTED[1:])
    with pytest.raises(InvalidParameter):
        transitions(ORIGINAL, -PROTECTED)
    with pytest.raises(InvalidParameter):
        transitions(ORIGINAL, PROTECTED, 0)
    with pytest.raises(InvalidParameter):
        emptied_cells(ORIGINAL, PROTECTED, (2, 3))
