"""Tests of lower bounds on chi-square against brute force."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from microguard.sdc.errors import UnsupportedCombination
from microguard.sdc.nominal import anonymise, bounds, partition
from microguard.sdc.nominal.bounds import free_bound, nested_bound
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import collapse, from_frame

from tests.sdc.nominal.brute_force import least_chi2


def test_free_bound_uses_the_cheaper_of_0_and_k_for_each_small_cell() -> None:
    frame = pd.DataFrame({"a": [1, 2, 2, 3, 3, 3, 3]})
    tables = ControlTables.of(from_frame(frame).frequencies, 1)
    # one record becomes 0, two records become 3
    assert free_bound(tables.original, 3) == pytest.approx(1.0 + 0.5)
    assert nested_bound(tables, 3) == pytest.approx(free_bound(tables.original, 3))


def test_nested_bound_exceeds_free_bound_for_a_margin_of_small_cells() -> None:
    # Six cells of one record each. If all are 0, the margin is empty and costs 6. If one is 3, the cost is
    # 4 + 5, and (6 - 3)^2 / 6 of the margin. If two are 3, the margin is unchanged and the cost is 8 + 4.
    frame = pd.DataFrame({"a": [1] * 6 + [2] * 300, "b": [*range(6), *([7] * 300)]})
    tables = ControlTables.of(from_frame(frame).frequencies, [("a",), ("a", "b")])
    assert free_bound(tables.original, 3) == pytest.approx(6.0)
    assert nested_bound(tables, 3) == pytest.approx(4 + 5 + 1.5)


@pytest.mark.parametrize("seed", range(12))
def test_free_and_nested_bounds_are_at_most_the_optimum(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.integers(0, (2, 2, 2)[: 2 + seed % 2], (7, 2 + seed % 2)))
    frame.columns = list("abc")[: frame.shape[1]]
    dimension, k = 1 + seed % 3, 2 + seed % 3
    tables = ControlTables.of(from_frame(frame).frequencies, min(dimension, frame.shape[1]))
    best = least_chi2(frame, k, min(dimension, frame.shape[1]))
    free, nested = free_bound(tables.original, k), nested_bound(tables, k)
    assert free <= nested <= best  # rounding errors reduce the bound in the last digit
    monkeypatch.setattr(bounds, "_ABOVE", 1)
    # large counts are treated as one level: the bound is weaker
    assert free <= nested_bound(tables, k) <= nested * (1 + 1e-12)


def test_nested_bound_with_less_work_is_weaker_but_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 6, (400, 3))
    frequencies, _ = collapse(codes, np.array([6, 6, 6]), ("a", "b", "c"))
    tables = ControlTables.of(frequencies, 3)
    full, weaker = nested_bound(tables, 3), []
    for additions in (500_000, 50_000, 10):
        monkeypatch.setattr(bounds, "_MOST_ADDITIONS", additions)
        weaker.append(nested_bound(tables, 3))
    assert full > weaker[0] > weaker[1] > weaker[2] == free_bound(tables.original, 3)


@pytest.mark.parametrize("algorithm", ["local-search", "own-hhg", "random"])
def test_anonymise_returns_the_bound_of_the_whole_file_for_every_method(algorithm: str) -> None:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.integers(0, 4, (60, 3)), columns=list("abc"))
    result = anonymise(frame, 3, 2, algorithm=algorithm, effort="fast")
    whole = next(step for step in result.certificates if step.step == "whole")
    assert 0 < whole.lower_bound == result.lower_bound <= result.chi2
    assert all((step.lower_bound is None) == (step.unproved is not None) for step in result.certificates)
    assert whole.unproved is None


def test_anonymise_exact_proves_optimality_or_states_the_gap_or_is_refused() -> None:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.integers(0, 4, (60, 3)), columns=list("abc"))
    assert anonymise(pd.concat([frame] * 3), 3, 2, algorithm="local-search", effort="exact").optimal
    with pytest.raises(UnsupportedCombination, match="does not support effort"):
        anonymise(frame, 3, 2, algorithm="random", effort="exact")
    with pytest.raises(UnsupportedCombination, match="set-partitioning"):
        partition(frame, 3, algorithm="local-search", effort="exact")
