"""Tests of SAFE: problems solved by hand, brute force for the exact problems, and invariants."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microguard.sdc.errors import ImpossibleProtection, InvalidParameter, TooFewRecords, UnknownVariable
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import from_frame
from microguard.sdc.safe import SafeParams, safe
from microguard.sdc.safe.method import extra_error, target_bounds
from microguard.sdc.safe.protection import safe_frequencies
from microguard.sdc.safe.selection import IMPROVEMENT_PENALTY, REPAIR_PENALTY, best_change

from tests.reference import ADULT, reference_file
from tests.sdc.nominal.instances import assert_protected, nominal_frames, rows


def test_safe_merges_three_single_records_into_one_combination():
    frame = pd.DataFrame({"x": list("ppp"), "y": list("abc")})
    result = safe(frame, 3, 1)
    assert rows(result.protected).most_common(1)[0][1] == 3
    assert result.record_change == 0
    assert result.errors == {1: 2}


def test_safe_params_default_to_appendix_a():
    parameters = SafeParams()
    original = np.array([9, 10, 19, 20, 50, 100, 199, 200, 1_000, 10_000, 100_000, 1_000_000])
    assert extra_error(parameters, original).tolist() == [0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 8, 9]
    assert (parameters.allowed_bound_one_dimension, parameters.allowed_bound_higher_dimension) == (2, 3)
    assert target_bounds(parameters, np.array([1, 2, 3])).tolist() == [2, 3, 3]


def judged_by_hand(counts, original, k, deviation, cells, errors, bounds, penalty, improving):
    """Run Algorithms 2 and 4 as printed: build every candidate, filter, then compare."""
    candidates = []
    for change in product(range(-k, k + 1), repeat=len(counts)):
        candidate = counts + np.array(change)
        if (candidate < 0).any() or (np.abs(candidate - original) > deviation).any():
            continue
        after = errors.copy()
        for i, amount in enumerate(change):
            after[cells[i]] += amount
        problems = int(((candidate > 0) & (candidate < k)).sum())
        exceedings = int((np.abs(after) > bounds).sum())
        if (improving and problems) or (not improving and exceedings):
            continue
        below = bounds - np.abs(after)
        paid = sum(int(penalty[b]) for b in below if 0 <= b < len(penalty))
        candidates.append(((exceedings if improving else problems), paid, int(np.abs(after).sum()), change))
    return min(candidates)[3] if candidates else (0,) * len(counts)


@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 3]), st.booleans())
def test_best_change_agrees_with_the_enumeration_of_the_paper(seed, k, improving):
    rng = np.random.default_rng(seed)
    s, tables = 3, 4
    cells = np.column_stack([rng.integers(0, 3, s) + 3 * t for t in range(tables)]).astype(np.int32)
    original = rng.integers(0, 6, s).astype(np.int64)
    counts = original + rng.integers(0, 3, s)
    if improving:
        counts = np.where((counts > 0) & (counts < k), k, counts)
    errors = np.zeros(3 * tables, np.int64)
    for i in range(s):
        errors[cells[i]] += counts[i] - original[i]
    bounds = np.maximum(np.abs(errors) - (1 if improving else 0), rng.integers(0, 5, len(errors)))
    penalty = IMPROVEMENT_PENALTY if improving else REPAIR_PENALTY
    expected = judged_by_hand(counts, original, k, 3, cells, errors, bounds, penalty, improving)
    changed, live = counts.copy(), errors.copy()
    best_change(np.arange(s), changed, original, k, 3, cells, live, bounds, penalty, improving)
    assert (changed - counts).tolist() == list(expected)
    for i in range(s):
        errors[cells[i]] += expected[i]
    assert np.array_equal(live, errors)


@given(nominal_frames(), st.sampled_from([2, 3, 5, 10]))
def test_safe_protects_any_frame_and_keeps_the_number_of_records(frame, k):
    if len(frame) < k:
        with pytest.raises(TooFewRecords):
            safe(frame, k)
        return
    result = safe(frame, k, 2, keep_records=True)
    assert_protected(frame, result.protected, k)
    assert result.record_change == 0


@given(nominal_frames(), st.sampled_from([2, 3, 5]))
def test_safe_reports_the_change_of_the_number_of_records(frame, k):
    if len(frame) < k:
        return
    try:
        result = safe(frame, k, 2)
    except ImpossibleProtection:  # no record would remain
        assert len(safe(frame, k, 2, keep_records=True).protected) == len(frame)
        return
    published = rows(result.protected)
    assert len(result.protected) - len(frame) == result.record_change
    assert all(count >= k for count in published.values())
    assert set(published) <= set(rows(frame))
    assert (result.protected.dtypes == frame.dtypes).all()


def test_safe_refuses_a_file_without_remaining_records():
    frame = pd.DataFrame({"a": [1, 2, 3]})
    with pytest.raises(ImpossibleProtection, match="keep_records"):
        safe(frame, 3, 1)
    assert len(safe(frame, 3, 1, keep_records=True).protected) == 3


@settings(max_examples=15)
@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2)), min_size=3, max_size=8),
    st.sampled_from([2, 3]),
    st.booleans(),
)
def test_safe_exact_reaches_the_brute_force_optimum(records, k, modified):
    frame = pd.DataFrame(records, columns=["a", "b"])
    frequencies = from_frame(frame).frequencies
    tables = ControlTables.of(frequencies, 2)
    extra = extra_error(SafeParams(), tables.original)
    weight = 1 / len(frame) if modified else 0.0
    choices = [0, *range(k, len(frame) + 1)]
    best = min(
        (np.abs(tables.incidence @ np.array(y) - tables.original) - extra).max()
        + weight * np.abs(np.array(y) - frequencies.counts).sum()
        for y in product(choices, repeat=len(frequencies))
        if sum(y) == len(frame)
    )
    result = safe(frame, k, 2, algorithm="modified-safe-exact" if modified else "safe-exact")
    assert result.optimal
    assert result.objective == pytest.approx(best)
    assert result.lower_bound == pytest.approx(best, abs=1e-6)
    assert_protected(frame, result.protected, k)


@pytest.mark.reference
def test_safe_on_full_adult_has_small_maximum_errors_in_every_dimension():
    adult = pd.read_csv(reference_file("adult.csv"), usecols=list(ADULT))[list(ADULT)]
    adult = adult[(adult != "?").all(axis=1)]
    frequencies = from_frame(adult).frequencies
    tables = ControlTables.of(frequencies, 3)
    protected = safe_frequencies(frequencies, 3, tables)
    assert frequencies.records == 30_162
    assert ((protected.counts == 0) | (protected.counts >= 3)).all()
    assert all(protected.errors[d] <= most for d, most in {1: 8, 2: 10, 3: 15}.items())
    assert abs(protected.record_change) <= 30


def test_safe_does_not_depend_on_the_order_of_records():
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({name: rng.integers(0, 4, 300) for name in "abcd"})
    first, second = safe(frame, 3, 2), safe(frame.sample(frac=1, random_state=1), 3, 2)
    assert rows(first.protected) == rows(second.protected)


def test_safe_refuses_invalid_input():
    frame = pd.DataFrame({"x": list("aabb")})
    for call in (
        lambda: safe(frame, 1),
        lambda: safe(frame, 2, 0),
        lambda: safe(frame, 2, algorithm="saver"),
        lambda: SafeParams(slice=5),
        lambda: SafeParams(stagnation=1.0),
        lambda: SafeParams(allowed_deviation=1),
        lambda: SafeParams(extra_error_from=(3, 2)),
        lambda: SafeParams(part=0),
    ):
        with pytest.raises(InvalidParameter):
            call()
    with pytest.raises(TooFewRecords):
        safe(frame, 5)
    with pytest.raises(UnknownVariable):
        safe(frame, 2, [("y",)])
