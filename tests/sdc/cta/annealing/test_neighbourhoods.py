"""Tests of neighbourhood search against the integer program of the whole table."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microguard.sdc.cta import adjust
from microguard.sdc.cta.annealing import neighbourhoods
from microguard.sdc.cta.annealing.neighbourhoods import search_neighbourhoods
from microguard.sdc.cta.effort import budget
from microguard.sdc.cta.program.directions import random_directions
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.cta.program.search import Search
from microguard.sdc.stop import Deadline

from tests.benchmarks.tabular.grids import random_table

NEVER = Deadline.after(None)


def searched(table, rounds, seed):
    """Return the cost of random directions before and after a number of neighbourhoods."""
    problem = Problem.from_table(table, "exact")
    search = Search(problem, NEVER)
    before = search.evaluate(random_directions(problem, np.random.default_rng(seed)))
    search_neighbourhoods(search, rounds, seed)
    return problem, before, search.best


@settings(max_examples=10)
@given(st.integers(0, 10**6))
def test_neighbourhood_search_improves_random_directions_towards_the_optimum(seed):
    table = random_table((5, 5), seed)
    optimum = adjust(table, mode="exact", algorithm="exact").objective
    problem, before, after = searched(table, 8, seed)
    if before.feasible:
        assert after.cost <= before.cost
        assert after.cost * problem.objective_unit >= optimum * (1 - 1e-6)


def test_neighbourhood_of_all_cells_gives_the_optimum(monkeypatch):
    monkeypatch.setattr(neighbourhoods, "FIRST_SHARE", 1.0)
    monkeypatch.setattr(neighbourhoods, "GAP", 1e-9)
    table = random_table((5, 5), 3)
    problem, before, after = searched(table, 1, 0)
    assert before.feasible
    optimum = adjust(table, mode="exact", algorithm="exact").objective
    assert after.cost * problem.objective_unit == pytest.approx(optimum, rel=1e-6)


def test_neighbourhood_grows_after_a_program_without_gain(monkeypatch):
    shares = []
    chosen = neighbourhoods._cells_of_constraints

    def noted(incidence, share, rng):
        shares.append(share)
        return chosen(incidence, share, rng)

    monkeypatch.setattr(neighbourhoods, "_cells_of_constraints", noted)
    monkeypatch.setattr(neighbourhoods, "FIRST_SHARE", 0.2)
    searched(random_table((5, 5), 3), 12, 0)
    assert shares[0] == 0.2
    assert max(shares) > 0.4


def test_budget_has_no_neighbourhoods_for_large_two_way_or_proved_tables():
    small, two_way, middle, large = (
        Problem.from_table(random_table(shape, 0), "exact")
        for shape in ((8, 8), (20, 20), (8, 8, 8), (60, 60))
    )
    assert budget(small, "standard").search.neighbourhoods == 0
    assert budget(two_way, "standard").search.neighbourhoods == 0
    assert budget(middle, "thorough").search.neighbourhoods > 2
    assert budget(middle, "fast").search.neighbourhoods == 0
    assert budget(large, "standard").search.neighbourhoods == 0


def test_neighbourhood_contains_all_cells_of_its_constraints_except_the_last():
    incidence = Problem.from_table(random_table((6, 6), 1), "exact").incidence.tocsr()
    cells = neighbourhoods._cells_of_constraints(incidence, 0.5, np.random.default_rng(0))
    assert len(cells) == round(0.5 * incidence.shape[1])
    assert len(np.unique(cells)) == len(cells)
