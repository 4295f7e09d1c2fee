"""Bounds on every protected frequency vector, against brute force."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sdc.nominal import anonymise
from sdc.nominal.bounds import family_bound, free_bound
from sdc.nominal.control_tables import ControlTables
from sdc.nominal.frequency import from_frame
from tests.sdc.nominal.brute_force import least_chi2


def test_free_bound_counts_the_cheaper_of_0_and_k_for_each_small_cell() -> None:
    frame = pd.DataFrame({"a": [1, 2, 2, 3, 3, 3, 3]})
    tables = ControlTables.of(from_frame(frame).frequencies, 1)
    assert free_bound(tables, 3) == pytest.approx(1.0 + 0.5)  # one record to 0, two records to 3
    assert family_bound(tables, 3) == pytest.approx(free_bound(tables, 3))


def test_a_margin_of_small_cells_only_costs_more_than_its_cells_alone() -> None:
    # six cells of one record each: all at 0 empties the margin, which then costs 6
    frame = pd.DataFrame({"a": [1] * 6 + [2] * 30, "b": [*range(6), *([7] * 30)]})
    tables = ControlTables.of(from_frame(frame).frequencies, 2)
    assert family_bound(tables, 3) > free_bound(tables, 3) + 0.5


@pytest.mark.parametrize("seed", range(4))
def test_no_solution_is_below_either_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.integers(0, 2, (6, 2)), columns=list("ab"))
    dimension, k = 1 + seed % 2, 2 + seed % 3
    tables = ControlTables.of(from_frame(frame).frequencies, dimension)
    best = least_chi2(frame, k, dimension)
    free, family = free_bound(tables, k), family_bound(tables, k)
    assert free <= family + 1e-9
    assert family <= best + 1e-6


@pytest.mark.parametrize("algorithm", ["local-search", "own-hhg", "random"])
def test_every_method_answers_with_the_bound_of_the_whole_file(algorithm: str) -> None:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.integers(0, 4, (60, 3)), columns=list("abc"))
    result = anonymise(frame, 3, 2, algorithm=algorithm, effort="fast")
    free = next(step for step in result.certificates if step.step == "free")
    assert 0 < free.lower_bound == result.lower_bound <= result.chi2
