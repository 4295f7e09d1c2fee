"""Tests of cell cuts: they are valid, and prove the cost of a single sensitive cell."""

import numpy as np
import pytest
from microguard.sdc.cta import CellTable
from microguard.sdc.cta.program import bounds, cell_cuts
from microguard.sdc.cta.program.bounds import relaxation_bound
from microguard.sdc.cta.program.cell_cuts import CellCutSeparation
from microguard.sdc.cta.program.covering import Covering
from microguard.sdc.cta.program.model import base_model
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.solver import solve
from microguard.sdc.stop import Deadline

from tests.benchmarks.tabular.hierarchies import hierarchical_table
from tests.sdc.cta.tables import brute_force, grid_relations, random_grid, with_margins

WORK = 1e5


def lone_cell(shape):
    """Return a grid of tens with one sensitive cell, which must move by one."""
    values = with_margins(np.full(shape, 10.0))
    sensitive = np.arange(len(values)) == 0
    level = np.where(sensitive, 1.0, 0.0)
    room = np.full(len(values), 5.0)
    return CellTable(values, grid_relations(shape), sensitive, level, level, room, room)


@pytest.mark.parametrize(("shape", "cells"), [((2, 2), 4), ((3, 3), 4), ((2, 2, 2), 8)])
@pytest.mark.parametrize("mode", ["exact", "at-least"])
def test_cell_cuts_prove_the_full_cost_of_a_single_sensitive_cell(shape, cells, mode):
    table = lone_cell(shape)
    assert brute_force(table, mode) == pytest.approx(cells)
    problem = Problem.from_table(table, mode)
    lines_alone, with_cuts = (relaxation_bound(problem, np.inf, 0, work) for work in (0.0, WORK))
    assert lines_alone.value * problem.objective_unit < 0.8 * cells
    assert with_cuts.value * problem.objective_unit == pytest.approx(cells, rel=1e-5)
    assert with_cuts.kind == "linear relaxation with cell cuts"


@pytest.mark.parametrize("mode", ["exact", "at-least"])
@pytest.mark.parametrize("seed", range(6))
def test_bound_with_cell_cuts_is_valid_and_not_weaker(mode, seed):
    shape = ((3, 3), (2, 2, 2), (4, 3))[seed % 3]
    table = random_grid(shape, seed, sensitive=0.25, room=(0.25, 0.6)[seed % 2])
    rng = np.random.default_rng(seed)
    table = CellTable(
        table.values,
        table.relations,
        table.sensitive,
        table.lower_protection * rng.uniform(0.5, 1.0, table.cells),
        table.upper_protection,
        table.lower_capacity,
        table.upper_capacity,
        rng.uniform(0.5, 2.0, table.cells),
    )
    problem = Problem.from_table(table, mode)
    lines_alone, with_cuts = (relaxation_bound(problem, np.inf, 0, work).value for work in (0.0, WORK))
    optimum = brute_force(table, mode)
    assert optimum is not None
    assert lines_alone * (1 - 1e-6) <= with_cuts <= optimum / problem.objective_unit * (1 + 1e-6)


def test_cell_cuts_of_the_whole_table_are_at_least_as_strong_as_cuts_of_neighbourhoods(monkeypatch):
    problem = Problem.from_table(random_grid((4, 4, 3), 5, sensitive=0.1), "exact")
    whole = relaxation_bound(problem, np.inf, 0, WORK).value
    monkeypatch.setattr(bounds, "MOST_CONSTRAINTS", (20,))
    parts = list(cell_cuts._neighbourhoods(problem, 20))
    assert len(parts) > 1
    assert sorted(np.concatenate([part.members for part in parts])) == sorted(problem.sensitive)
    constraints = relaxation_bound(problem, np.inf).value
    assert constraints * (1 - 1e-6) <= relaxation_bound(problem, np.inf, 0, WORK).value <= whole * 1.05


def test_wider_neighbourhoods_give_stronger_cell_cuts(monkeypatch):
    table = hierarchical_table(((2, 2), (3,), (2, 2)), 1, occupied=0.7, sensitive=0.1)
    problem = Problem.from_table(table, "at-least")
    proved = []
    for widths in ((10,), (10, 30), (10, 30, 10_000)):
        monkeypatch.setattr(bounds, "MOST_CONSTRAINTS", widths)
        proved.append(relaxation_bound(problem, np.inf, 0, 1e7).value)
    optimum = solve(base_model(problem).program).objective
    assert optimum is not None
    assert proved[0] * 1.01 < proved[1] < proved[2] * (1 + 1e-6)
    assert proved[2] <= optimum * (1 + 1e-6)


def test_cell_cut_separation_builds_neighbourhoods_lazily(monkeypatch):
    problem = Problem.from_table(random_grid((80, 80), 1, sensitive=0.3), "exact")
    made = []
    make = cell_cuts._neighbourhood
    monkeypatch.setattr(cell_cuts, "_neighbourhood", lambda *given: made.append(1) or make(*given))
    separation = CellCutSeparation(problem)
    for _ in range(3):
        separation.separate(np.zeros(problem.table.cells), WORK, Deadline.after(None))
    assert separation.tried
    assert len(made) <= cell_cuts.TRIALS  # the table has several hundred neighbourhoods


def test_bound_without_work_for_cell_cuts_is_that_of_constraint_cuts():
    problem = Problem.from_table(lone_cell((3, 3)), "exact")
    without, used_up = (relaxation_bound(problem, np.inf, 0, work).value for work in (0.0, 1e-9))
    assert used_up == pytest.approx(without, rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_covering_relaxation_is_valid_and_strong_for_a_sparse_hierarchy(seed):
    table = hierarchical_table(((2, 2), (3,), (2,)), seed, occupied=0.8, sensitive=0.1)
    problem = Problem.from_table(table, "at-least")
    covering = Covering(problem, Deadline.after(None))
    constraints = covering.bound
    covering.add_cell_cuts(CellCutSeparation(problem), WORK, Deadline.after(None))
    optimum = solve(base_model(problem).program).objective
    assert optimum is not None
    assert constraints < 0.8 * optimum
    assert 0.85 * optimum <= covering.bound <= optimum * (1 + 1e-6)


def test_nested_cuts_gain_as_much_in_one_round_as_single_cuts_in_several(monkeypatch):
    problem = Problem.from_table(lone_cell((3, 3, 3)), "at-least")
    counts = {}
    for nested in (1, cell_cuts.MOST_NESTED):
        monkeypatch.setattr(cell_cuts, "MOST_NESTED", nested)
        separation = CellCutSeparation(problem)
        adjustments = np.zeros(problem.table.cells)
        counts[nested] = len(separation.separate(adjustments, WORK, Deadline.after(None)).least)
    assert counts[1] == 1
    assert counts[cell_cuts.MOST_NESTED] > 1
