"""Tests of Chi-ex against brute force and local search, and on the scenarios of the thesis."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microguard.sdc.algorithms.nominal import ChiExactParameters
from microguard.sdc.errors import InvalidParameter, SdcError, TooFewRecords
from microguard.sdc.nominal.chi_exact import chi_exact
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import FrequencyVector, collapse, from_frame
from microguard.sdc.nominal.methods import ProtectionTask

from tests.benchmarks.combinations.scenarios import instance
from tests.sdc.nominal.brute_force import chi2, least_chi2


def all_in_one(frequencies: FrequencyVector) -> np.ndarray:
    """Return a feasible frequency vector: all records have one key combination."""
    start = np.zeros(len(frequencies), dtype=np.int64)
    start[np.argmax(frequencies.counts)] = frequencies.records
    return start


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("seed", range(5))
def test_chi_exact_agrees_with_brute_force(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.integers(2, size=(8 if k > 2 else 6, 3)), columns=list("abc"))
    for dimension in (1, 2):
        coded = from_frame(frame)
        frequencies = coded.frequencies
        tables = ControlTables.of(frequencies, dimension)
        result = chi_exact(ProtectionTask(frequencies, k, tables), start=all_in_one(frequencies))
        best = least_chi2(frame, k, dimension)
        assert result.optimal
        assert result.chi2 == pytest.approx(best, abs=1e-6)
        assert result.lower_bound == pytest.approx(best, abs=1e-5)
        protected = coded.decode_combinations(np.repeat(np.arange(len(frequencies)), result.counts))
        assert result.chi2 == pytest.approx(chi2(frame, protected, dimension))


def test_chi_exact_keeps_region_totals() -> None:
    rng = np.random.default_rng(3)
    codes = rng.integers(3, size=(60, 3))
    regions = rng.integers(2, size=60)
    frequencies, _ = collapse(codes, np.array([3, 3, 3]), ("a", "b", "c"), regions=regions)
    result = chi_exact(
        ProtectionTask(
            frequencies, 3, ControlTables.of(frequencies, 2), parameters=ChiExactParameters(nodes=10)
        )
    )
    assert ((result.counts == 0) | (result.counts >= 3)).all()
    for region in (0, 1):
        inside = frequencies.region_of() == region
        assert result.counts[inside].sum() == frequencies.counts[inside].sum()


def test_chi_exact_of_a_safe_file_changes_nothing() -> None:
    frequencies = from_frame(pd.DataFrame({"a": [1] * 4 + [2] * 5, "b": [1] * 4 + [3] * 5})).frequencies
    result = chi_exact(ProtectionTask(frequencies, 3, ControlTables.of(frequencies, 2)))
    assert result.optimal
    assert result.chi2 == 0
    assert (result.counts == frequencies.counts).all()


def test_chi_exact_at_the_work_limit_returns_valid_bound_and_counts() -> None:
    frequencies = from_frame(instance("200m5_20percent", 0, records=60)).frequencies
    tables = ControlTables.of(frequencies, 3)
    best = chi_exact(ProtectionTask(frequencies, 3, tables), start=all_in_one(frequencies))
    hurried = chi_exact(
        ProtectionTask(frequencies, 3, tables, parameters=ChiExactParameters(nodes=0)),
        start=all_in_one(frequencies),
    )
    assert best.optimal
    assert hurried.chi2 >= best.chi2 - 1e-6
    assert hurried.lower_bound is None or hurried.lower_bound <= best.chi2 + 1e-6


def test_chi_exact_refuses_infeasible_starts() -> None:
    frequencies = from_frame(pd.DataFrame({"a": [1, 1, 1, 2, 2, 3]})).frequencies
    tables = ControlTables.of(frequencies, 1)
    for start in ([3, 2, 1], [3, 0, 0], [6, 0]):
        with pytest.raises(InvalidParameter, match="start"):
            chi_exact(ProtectionTask(frequencies, 3, tables), start=np.array(start))
    with pytest.raises(TooFewRecords):
        chi_exact(ProtectionTask(frequencies, 7, tables))


@settings(max_examples=15)
@given(
    st.lists(st.tuples(st.sampled_from(["x", None, "y"]), st.integers(0, 3)), min_size=2, max_size=16),
    st.integers(2, 5),
)
def test_chi_exact_protects_any_frame(rows: list[tuple[str | None, int]], k: int) -> None:
    frequencies = from_frame(pd.DataFrame(rows, columns=["text", "number"])).frequencies
    tables = ControlTables.of(frequencies, 2)
    if len(rows) < k:
        with pytest.raises(SdcError):
            chi_exact(ProtectionTask(frequencies, k, tables))
        return
    result = chi_exact(ProtectionTask(frequencies, k, tables), start=all_in_one(frequencies))
    assert result.optimal
    assert result.counts.sum() == len(rows)
    assert ((result.counts == 0) | (result.counts >= k)).all()


def test_chi_exact_proves_the_scenario_of_the_thesis_optimal() -> None:
    frequencies = from_frame(instance("200m5_20percent", 0)).frequencies
    result = chi_exact(ProtectionTask(frequencies, 3, ControlTables.of(frequencies, 3)))
    assert result.optimal
    assert result.chi2 == pytest.approx(255.6305, abs=1e-3)


@pytest.mark.parametrize("weight", [0.5, 3.0])
def test_chi_exact_with_deviation_weight_agrees_with_brute_force(weight: float) -> None:
    frame = pd.DataFrame({"a": [1, 1, 1, 2, 2, 3, 3], "b": [1, 1, 2, 2, 2, 1, 2]})
    frequencies = from_frame(frame).frequencies
    tables = ControlTables.of(frequencies, 2)
    result = chi_exact(
        ProtectionTask(frequencies, 3, tables, parameters=ChiExactParameters(deviation_weight=weight))
    )
    values = [
        tables.chi2(np.array(counts)) + weight * np.abs(np.array(counts) - frequencies.counts).sum()
        for counts in product((0, 3, 4, 5, 6, 7), repeat=len(frequencies))
        if sum(counts) == 7
    ]
    assert result.optimal
    assert result.objective == pytest.approx(min(values))
    assert result.lower_bound == pytest.approx(min(values))
    assert result.chi2 == pytest.approx(tables.chi2(result.counts))
