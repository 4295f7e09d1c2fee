"""Tests of search on the frequency vector: invariants, brute force, and reconciliation of blocks."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.sdc.algorithms.nominal import SearchParameters
from microguard.sdc.errors import ImpossibleProtection, InvalidParameter, ShapeMismatch, TooFewRecords
from microguard.sdc.kernels.random import new_stream
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import FrequencyVector, collapse, from_frame
from microguard.sdc.nominal.frequency_search.annealing import SOFT, Annealing
from microguard.sdc.nominal.frequency_search.greedy import settle
from microguard.sdc.nominal.frequency_search.objective import Objective
from microguard.sdc.nominal.frequency_search.search import protect_frequencies, restart_search
from microguard.sdc.nominal.frequency_search.search_state import new_state
from microguard.sdc.nominal.methods import ProtectionTask
from microguard.sdc.nominal.neighbours import sorted_combinations
from microguard.sdc.stop import Deadline

from tests.sdc.nominal.instances import nominal_frames


def town(records: int, regions: int, seed: int) -> FrequencyVector:
    rng = np.random.default_rng(seed)
    sizes = np.array([2, 4, 6, 9])
    codes = np.column_stack([np.minimum(rng.geometric(0.35, records) - 1, size - 1) for size in sizes])
    frequencies, _ = collapse(codes, sizes, tuple("abcd"), regions=rng.integers(0, regions, records))
    return frequencies


def records_by_region(frequencies: FrequencyVector, counts: np.ndarray) -> list[int]:
    return pd.Series(counts).groupby(frequencies.region_of()).sum().tolist()


def test_protect_frequencies_merges_small_counts_into_the_nearest_combination():
    frame = pd.DataFrame({"x": ["a", "a", "a", "b", "b"], "y": ["p", "p", "q", "r", "r"]})
    frequencies = from_frame(frame).frequencies
    tables = ControlTables.of(frequencies, 2)
    solution = protect_frequencies(ProtectionTask(frequencies, 2, tables, effort="fast"))
    assert solution.counts.tolist() == [3, 0, 2]


@given(nominal_frames(), st.sampled_from([2, 3, 5, 10]), st.integers(0, 3))
def test_protect_frequencies_returns_zero_or_k_and_keeps_the_total(frame, k, seed):
    frequencies = from_frame(frame).frequencies
    tables = ControlTables.of(frequencies, 2)
    if frequencies.records < k:
        with pytest.raises(TooFewRecords):
            protect_frequencies(ProtectionTask(frequencies, k, tables))
        return
    solution = protect_frequencies(ProtectionTask(frequencies, k, tables, effort="fast", seed=seed))
    assert solution.counts.sum() == len(frame)
    assert ((solution.counts == 0) | (solution.counts >= k)).all()
    assert solution.chi2 == pytest.approx(tables.chi2(solution.counts))
    if not frequencies.at_risk(k).any():
        assert np.array_equal(solution.counts, frequencies.counts)


def every_protected_vector(records: int, m: int, k: int):
    allowed = [0, *range(k, records + 1)]
    return (np.array(v) for v in product(allowed, repeat=m) if sum(v) == records)


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2)), min_size=4, max_size=9),
    st.sampled_from([2, 3]),
)
def test_protect_frequencies_reaches_the_brute_force_optimum_of_tiny_files(records, k):
    frequencies = from_frame(pd.DataFrame(records, columns=["a", "b"])).frequencies
    tables = ControlTables.of(frequencies, 2)
    only_chi2 = SearchParameters(deviation_weight=0, absolute_weight={})
    solution = protect_frequencies(
        ProtectionTask(frequencies, k, tables, parameters=only_chi2, effort="fast")
    )
    best = min(tables.chi2(v) for v in every_protected_vector(len(records), len(frequencies), k))
    assert solution.chi2 == pytest.approx(best)


def test_protect_frequencies_keeps_region_totals_and_is_deterministic():
    frequencies = town(3_000, 4, 1)
    tables = ControlTables.of(frequencies, 2)
    solution = protect_frequencies(ProtectionTask(frequencies, 3, tables, effort="fast", seed=5))
    again = protect_frequencies(ProtectionTask(frequencies, 3, tables, effort="fast", seed=5))
    assert np.array_equal(solution.counts, again.counts)
    assert records_by_region(frequencies, solution.counts) == records_by_region(
        frequencies, frequencies.counts
    )
    assert solution.stopped_by == "work"


def test_protect_frequencies_respects_a_possible_maximum_error():
    frequencies = town(4_000, 1, 2)
    tables = ControlTables.of(frequencies, 3)
    free = protect_frequencies(ProtectionTask(frequencies, 3, tables, effort="fast"))
    bounds = {1: 1, 2: 3, 3: max(3, free.errors[3] - 1)}
    solution = protect_frequencies(
        ProtectionTask(frequencies, 3, tables, max_absolute_error=bounds, effort="fast")
    )
    assert all(solution.errors[d] <= bounds[d] for d in bounds)


def test_protect_frequencies_respects_max_deviation():
    frequencies = town(4_000, 1, 3)
    tables = ControlTables.of(frequencies, 2)
    capped = SearchParameters(max_deviation=3)
    solution = protect_frequencies(ProtectionTask(frequencies, 3, tables, parameters=capped, effort="fast"))
    assert np.abs(solution.counts - frequencies.counts).max() <= 3


def test_protect_frequencies_empties_structural_zeros_and_keeps_the_total():
    frequencies = town(500, 2, 4)
    tables = ControlTables.of(frequencies, 2)
    allowed = np.arange(len(frequencies)) % 5 != 0
    solution = protect_frequencies(ProtectionTask(frequencies, 3, tables, allowed=allowed, effort="fast"))
    assert not solution.counts[~allowed].any()
    assert records_by_region(frequencies, solution.counts) == records_by_region(
        frequencies, frequencies.counts
    )


def settled(frequencies: FrequencyVector, tables: ControlTables, objective: Objective) -> Annealing:
    """Return a vector that satisfies k but was not optimised, as the start of a search."""
    everywhere = np.ones(len(frequencies), bool)
    state = new_state(frequencies, frequencies.counts, 3, tables, objective, everywhere)
    settle(state, sorted_combinations(frequencies), SOFT)
    movable = np.flatnonzero(frequencies.at_risk(3))
    return Annealing.from_state(state, frequencies, tables, objective, movable, new_stream(1))


def test_annealing_without_moves_returns_its_start():
    frequencies = town(60, 1, seed=4)
    tables = ControlTables.of(frequencies, 2)
    search = settled(frequencies, tables, Objective.of(frequencies, tables, 3, SearchParameters(), None))
    counts, work, stopped_by = search.run(0, Deadline.after(None))
    assert np.array_equal(counts, search.start)
    assert (work, stopped_by) == (0, "work")


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_restarted_search_ends_within_the_maximum_errors(seed):
    frequencies = town(4_000, 1, seed)
    tables = ControlTables.of(frequencies, 2)
    objective = Objective.of(frequencies, tables, 3, SearchParameters(), {1: 1, 2: 3})
    search = settled(frequencies, tables, objective)
    beyond = search.start.copy()
    assert objective.exceeded(tables, beyond)
    counts, work, stopped_by = restart_search(search, beyond, 200_000, Deadline.after(None))
    assert not objective.exceeded(tables, counts)
    assert counts.sum() == 4_000
    assert ((counts == 0) | (counts >= 3)).all()
    assert (work > 0, stopped_by) == (True, "work")


def test_protect_frequencies_of_blocks_with_a_global_pass_is_close_to_a_single_process():
    frequencies = town(600, 3, 6)
    tables = ControlTables.of(frequencies, 3)
    whole = protect_frequencies(ProtectionTask(frequencies, 3, tables, effort="fast"))
    counts = np.zeros(len(frequencies), np.int64)
    for region in np.unique(frequencies.regions)[::-1]:
        mine = frequencies.regions == region
        block = FrequencyVector(
            frequencies.codes[mine], frequencies.counts[mine], frequencies.domain_sizes, frequencies.names
        )
        counts[mine] = protect_frequencies(
            ProtectionTask(block, 3, ControlTables.of(block, 3), effort="fast")
        ).counts
    apart = tables.chi2(counts)
    together = protect_frequencies(ProtectionTask(frequencies, 3, tables, effort="fast"), start=counts)
    assert together.chi2 < apart
    assert together.chi2 <= 1.02 * whole.chi2


def test_protect_frequencies_at_the_deadline_protects_and_reports_it():
    frequencies = town(2_000, 1, 7)
    tables = ControlTables.of(frequencies, 4)
    solution = protect_frequencies(
        ProtectionTask(frequencies, 3, tables, effort="thorough", deadline=Deadline.after(1e-6))
    )
    assert solution.stopped_by == "time"
    assert ((solution.counts == 0) | (solution.counts >= 3)).all()


def test_protect_frequencies_refuses_invalid_input():
    frequencies = town(100, 1, 8)
    tables = ControlTables.of(frequencies, 1)
    with pytest.raises(InvalidParameter):
        protect_frequencies(ProtectionTask(frequencies, 3, tables, effort="quick"))
    with pytest.raises(InvalidParameter):
        protect_frequencies(ProtectionTask(frequencies, 3, tables, max_absolute_error={0: 3}))
    with pytest.raises(InvalidParameter):
        protect_frequencies(
            ProtectionTask(frequencies, 5, tables, parameters=SearchParameters(max_deviation=3))
        )
    with pytest.raises(ImpossibleProtection):
        protect_frequencies(ProtectionTask(frequencies, 3, tables, allowed=np.zeros(len(frequencies), bool)))
    with pytest.raises(ShapeMismatch):
        protect_frequencies(ProtectionTask(frequencies, 3, tables), start=frequencies.counts[1:])
    small, _ = collapse(np.zeros((5, 1), int), np.array([1]), ("x",), regions=np.array([0, 0, 0, 1, 1]))
    with pytest.raises(TooFewRecords):
        protect_frequencies(ProtectionTask(small, 3, ControlTables.of(small, 1)))
