"""Tests of partitions protected concurrently: invariants, and comparison with a single process."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microguard.sdc.errors import TooFewRecords
from microguard.sdc.nominal.control_tables import ControlTables, named_tables
from microguard.sdc.nominal.frequency import FrequencyVector, collapse
from microguard.sdc.nominal.frequency_search import search
from microguard.sdc.nominal.frequency_search.search import protect_frequencies
from microguard.sdc.nominal.methods import ProtectionTask
from microguard.sdc.nominal.partitions.cell_index import CellIndex, comparable
from microguard.sdc.nominal.partitions.part import Part, PartitionRequest
from microguard.sdc.nominal.partitions.reconcile import TURNS, cut_regions, portions
from microguard.sdc.nominal.region_levels import RegionLevels

from tests.sdc.nominal.partitions.in_memory import InMemory, everything, protected_in_parts

SIZES = np.array([2, 4, 6, 9])


def town(records: int, regions: int, seed: int, rare: int = 0) -> FrequencyVector:
    """Draw four variables in regions of at least five records; one value of the first variable is rare."""
    rng = np.random.default_rng(seed)
    codes = np.column_stack([np.minimum(rng.geometric(0.35, records) - 1, size - 1) for size in SIZES])
    codes[:, 0] = 0
    codes[rng.permutation(records)[:rare], 0] = 1
    region = np.concatenate([np.repeat(np.arange(regions), 5), rng.integers(0, regions, records)])[:records]
    return collapse(codes, SIZES, tuple("abcd"), regions=region)[0]


def asked(file: FrequencyVector, **more) -> PartitionRequest:
    tables = (*named_tables(file, 2), *(("region", name) for name in file.names))
    levels = RegionLevels.single(int(file.regions.max()) + 1)
    return PartitionRequest(3, tables, levels, **{"effort": "fast"} | more)


def shared(tables: ControlTables, counts: np.ndarray) -> np.ndarray:
    return tables.errors(counts)[tables.level == 0]


def assert_protected(file: FrequencyVector, counts: np.ndarray, k: int) -> None:
    assert ((counts == 0) | (counts >= k)).all()
    assert not counts[file.counts == 0].any()
    assert np.array_equal(np.bincount(file.regions, counts), np.bincount(file.regions, file.counts))


@settings(max_examples=20, deadline=None)
@given(st.integers(40, 300), st.integers(1, 8), st.integers(1, 60), st.integers(2, 5), st.integers(0, 9))
def test_reconcile_keeps_region_totals_and_k_and_returns_true_errors(records, regions, most, k, seed):
    file = town(records, regions, seed)
    ask = replace(asked(file), k=k, seed=seed)
    counts, _, claimed = protected_in_parts(file, ask, most)
    assert_protected(file, counts, k)
    assert np.array_equal(claimed, shared(everything(file, ask), counts))


def test_reconcile_does_not_depend_on_row_order():
    file = town(400, 6, 3)
    shuffled = np.random.default_rng(1).permutation(len(file))
    again, _ = collapse(
        file.codes[shuffled],
        SIZES,
        file.names,
        regions=file.regions[shuffled],
        counts=file.counts[shuffled],
    )
    counts = [protected_in_parts(each, asked(each), 30)[0] for each in (file, again)]
    assert np.array_equal(*counts)


def test_reconcile_is_close_to_a_single_process_at_effort_fast(monkeypatch):
    times = []
    for seed in (4, 5, 6):
        file = town(10_000, 60, seed)
        ask = asked(file)
        tables = everything(file, ask)
        weight = np.where(tables.level == 0, 1.0, 0.3) * tables.reciprocals
        counts, parts, _ = protected_in_parts(file, ask, 300)
        assert len(parts) > TURNS
        monkeypatch.setitem(search._MOST, "fast", 10 * int(file.at_risk(3).sum()))
        one = protect_frequencies(ProtectionTask(file, 3, tables, effort="fast"))
        values = [float(np.sum(tables.errors(each) ** 2 * weight)) for each in (counts, one.counts)]
        times.append(values[0] / values[1])
    assert np.mean(times) <= 1.15
    assert max(times) <= 1.2


def test_reconcile_is_better_than_independent_partitions(monkeypatch):
    file = town(10_000, 60, 4)
    ask = asked(file)
    tables = everything(file, ask)
    together = np.abs(shared(tables, protected_in_parts(file, ask, 300)[0]))
    monkeypatch.setattr(
        "microguard.sdc.nominal.partitions.reconcile.portions",
        lambda parts, moving, errors: {
            part: parts.parts[part].errors(parts.standing[part].counts) for part in moving
        },
    )
    alone = np.abs(shared(tables, protected_in_parts(file, ask, 300)[0]))
    weight = tables.reciprocals[tables.level == 0]
    assert np.sum(alone**2 * weight) > 2 * np.sum(together**2 * weight)


@given(st.integers(0, 20), st.integers(1, 5))
def test_portions_sum_to_the_errors_of_cells_with_records(seed, apart):
    file = town(300, 9, seed)
    parts = InMemory(file, asked(file), 20)
    moving = range(0, len(parts), apart)
    errors = np.random.default_rng(seed).integers(-9, 10, len(parts.index))
    dealt, holders = np.zeros(len(errors), np.int64), np.zeros(len(errors), np.int64)
    for part, portion in portions(parts, moving, errors).items():
        assert (np.abs(portion) <= np.abs(errors[parts.shared_state(part).places])).all()
        dealt[parts.shared_state(part).places] += portion
        holders[parts.shared_state(part).places] += 1
    assert np.array_equal(dealt, np.where(holders > 0, errors, 0))


def test_reconcile_respects_maximum_errors_of_the_whole_file():
    file = town(6_000, 40, 5)
    free, _, _ = protected_in_parts(file, asked(file), 60)
    tables = everything(file, asked(file))
    largest = tables.max_absolute_error(free)
    bounds = {1: max(1, largest[1] // 2), 2: max(2, largest[2] // 2)}
    counts, parts, claimed = protected_in_parts(file, asked(file, max_absolute_error=bounds), 60)
    assert_protected(file, counts, 3)
    assert all(np.abs(claimed[parts.index.dimension == d]).max() <= bounds[d] for d in bounds)
    assert any(largest[d] > bounds[d] for d in bounds)


@pytest.mark.parametrize(("kept_dimension", "kept"), [(0, False), (1, True)])
def test_reconcile_keeps_a_category_that_no_partition_could_keep_alone(kept_dimension, kept):
    file = town(3_000, 30, 3, rare=3)
    rare = file.codes[:, 0] == 1
    assert file.counts[rare].sum() == 3
    counts, parts, _ = protected_in_parts(file, asked(file, kept_dimension=kept_dimension), 30)
    assert len(parts) > TURNS
    assert bool(counts[rare].sum()) == kept


def test_partition_of_a_file_refuses_a_region_below_k():
    file = collapse(np.array([[0], [1]]), np.array([2]), ("a",), regions=np.array([0, 1]))[0]
    with pytest.raises(TooFewRecords):
        Part.of(0, file, PartitionRequest(3, (("a",),), RegionLevels.single(2)))


def test_cut_regions_returns_consecutive_regions():
    assert cut_regions(np.array([5, 5, 5, 30, 1, 2, 9]), 10).tolist() == [0, 0, 1, 2, 3, 3, 4]
    assert cut_regions(np.array([7]), 3).tolist() == [0]


def test_cell_index_of_partitions_merges_to_the_cells_of_the_file():
    file = town(300, 6, 7)
    parts = InMemory(file, asked(file), 25)
    tables = everything(file, asked(file))
    whole = CellIndex.from_tables(file, tables)
    assert np.array_equal(parts.index.original, whole.original)
    assert all(map(np.array_equal, parts.index.keys, whole.keys))
    expected = pd.Series(file.counts).groupby([file.codes[:, 1], file.codes[:, 3]]).sum()
    at = whole.tables.index(("b", "d"))
    assert whole.original[whole.table == at].tolist() == expected.tolist()


def test_comparable_is_false_for_tables_with_enormous_keys():
    assert comparable(("a", "b"), (10**9, 10**9), (("a", "b"), ("region", "a")))
    assert not comparable(("a", "b", "c"), (10**9, 10**9, 10), (("a", "b", "c"),))
