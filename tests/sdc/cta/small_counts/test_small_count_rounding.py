"""Tests of small-count rounding: small counts become 0 or the base; on small tables the choice is near-
optimal.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from microguard.sdc.cta.small_counts.small_count_rounding import (
    as_known_to_readers,
    small_count_rounding,
    with_room_for_small_counts,
)
from microguard.sdc.cta.table.cell_table import CellTable
from microguard.sdc.errors import ImpossibleProtection, InvalidParameter

from tests.reference import reference_file

KEY = bytes(range(32))


def two_way(inner: np.ndarray) -> CellTable:
    """Return internal cells row by row, then row totals, column totals and the grand total."""
    rows, columns = inner.shape
    cells = inner.size + rows + columns + 1
    place = np.arange(inner.size).reshape(inner.shape)
    lines = []
    for parts, total in [
        *[(place[i], inner.size + i) for i in range(rows)],
        *[(place[:, j], inner.size + rows + j) for j in range(columns)],
        (inner.size + np.arange(rows), cells - 1),
        (inner.size + rows + np.arange(columns), cells - 1),
    ]:
        line = np.zeros(cells)
        line[parts], line[total] = 1, -1
        lines.append(line)
    values = np.concatenate([inner.ravel(), inner.sum(1), inner.sum(0), [inner.sum()]]).astype(float)
    none = np.zeros(cells)
    return CellTable(values, np.array(lines), none > 0, none, none, none, none)


def rounded(inner: np.ndarray, base: int = 5, key: bytes = KEY, held=None):
    table = with_room_for_small_counts(two_way(inner), base)
    return table, small_count_rounding(table, base, key, [str(i) for i in range(table.cells)], held)


def chi_square(table: CellTable, values: np.ndarray) -> float:
    positive = table.values > 0
    return float(np.sum((values - table.values)[positive] ** 2 / table.values[positive]))


def test_small_counts_become_zero_or_the_base_and_only_totals_of_other_counts_change():
    rng = np.random.default_rng(0)
    inner = rng.poisson(3, (6, 5))
    table, adjustment = rounded(inner)
    shown = adjustment.values
    assert not np.any(table.relations @ shown)
    assert not np.any((shown > 0) & (shown < 5))
    cells = shown[: inner.size]
    flat = inner.ravel()
    assert set(cells[(flat > 0) & (flat < 5)]) == {0, 5}
    assert np.array_equal(cells[(flat == 0) | (flat >= 5)], flat[(flat == 0) | (flat >= 5)])


def test_rounding_choice_exceeds_the_least_chi_square_of_an_enumeration_only_slightly():
    rng, gaps = np.random.default_rng(1), []
    for _ in range(60):
        inner = rng.poisson(2.5, (3, 4))
        table, adjustment = rounded(inner)
        flat = inner.ravel()
        small = np.flatnonzero((flat > 0) & (flat < 5))
        least = np.inf
        for ups in itertools.product((0, 5), repeat=len(small)):
            cells = flat.astype(float)
            cells[small] = ups
            cells = cells.reshape(inner.shape)
            values = np.concatenate([cells.ravel(), cells.sum(1), cells.sum(0), [cells.sum()]])
            least = min(least, chi_square(table, values))
        found = chi_square(table, adjustment.values)
        assert found >= least - 1e-9
        gaps.append(found / least if least else 1.0)
    assert np.mean(np.array(gaps) < 1 + 1e-9) > 0.9
    assert max(gaps) < 1.1


def test_business_survey_changes_at_most_12_of_79_cells_at_the_chi_square_of_other_software():
    frame = pd.read_csv(reference_file("business_survey.csv"), usecols=["a21", "nuts2"])
    inner = frame.groupby(["a21", "nuts2"]).size().unstack(fill_value=0).to_numpy()
    table, adjustment = rounded(inner)
    positive = table.values > 0
    assert positive.sum() == 79
    assert np.sum(adjustment.deviations != 0) <= 12
    assert chi_square(table, adjustment.values) <= 9.9


def test_rounding_choice_does_not_depend_on_the_order_of_cells():
    rng = np.random.default_rng(3)
    table = with_room_for_small_counts(two_way(rng.poisson(2, (4, 6))), 5)
    names = np.array([f"cell {i}" for i in range(table.cells)])
    order = rng.permutation(table.cells)
    levels = ("lower_protection", "upper_protection", "lower_capacity", "upper_capacity")
    turned = CellTable(table.values[order], table.relations[:, order], table.sensitive[order],
                       *(getattr(table, name)[order] for name in levels))  # fmt: skip
    one = small_count_rounding(table, 5, KEY, list(names)).values
    other = small_count_rounding(turned, 5, KEY, list(names[order])).values
    assert np.array_equal(one[order], other)


def test_small_count_rounding_keeps_or_refuses_values_published_before():
    inner = np.array([[2, 7, 3], [9, 1, 4]])
    table, free = rounded(inner)
    held = np.full(table.cells, np.nan)
    held[0] = 5.0 - free.values[0]
    held[-1] = free.values[-1]
    _, kept = rounded(inner, held=held)
    assert kept.values[0] == held[0]
    assert kept.values[-1] == held[-1]
    held[-1] = 26.0 + 1
    with pytest.raises(ImpossibleProtection, match="published before"):
        rounded(inner, held=held)


def test_reader_interval_is_exact_for_large_counts_and_one_base_wide_for_small_counts():
    inner = np.array([[2, 7, 0], [9, 1, 4]])
    table, adjustment = rounded(inner)
    known = as_known_to_readers(table, adjustment.values, 5)
    room = (known.lower_capacity + known.upper_capacity)[: inner.size]
    assert room.tolist() == [4, 0, 4, 0, 4, 4]
    deviations = adjustment.deviations
    assert np.all(deviations <= known.upper_capacity)
    assert np.all(-deviations <= known.lower_capacity)


def test_linked_tables_and_small_bases_are_refused():
    with pytest.raises(InvalidParameter, match="base: expected at least 2"):
        rounded(np.array([[2, 3]]), base=1)
    lines = np.array([[-1.0, 1, 1, 0, 0], [-1, 0, 0, 1, 1]])
    none = np.zeros(5)
    linked = CellTable(np.array([5.0, 2, 3, 1, 4]), lines, none > 0, none, none, none, none)
    with pytest.raises(InvalidParameter, match="two breakdowns have a common total"):
        with_room_for_small_counts(linked, 5)
