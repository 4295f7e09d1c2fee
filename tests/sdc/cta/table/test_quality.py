"""Tests of kept means and slopes: linear, preserved at least cost, refused if infeasible."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.sdc.cta import CellTable, adjust
from microguard.sdc.cta.disclosure_audit import attacker_intervals
from microguard.sdc.cta.program.bounds import relaxation_bound
from microguard.sdc.cta.program.exact import branch_and_bound
from microguard.sdc.cta.program.infeasible import ImpossibleConstraints
from microguard.sdc.cta.program.plane_cuts import PlaneProgram, planes_of
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.cta.program.search import Search
from microguard.sdc.cta.rules.identical_cells import identical_cells, table_of_variables
from microguard.sdc.cta.table.check import check
from microguard.sdc.cta.table.quality import Quality, fit, kept_mean, kept_slope
from microguard.sdc.errors import InvalidParameter, ShapeMismatch
from microguard.sdc.stop import Deadline

from tests.sdc.cta.tables import brute_force, random_grid

INTERNAL_3X3 = np.array([0, 1, 2, 4, 5, 6, 8, 9, 10])


def three_cells(quality=None):
    # 10 + 20 + 30 = 60, the first cell must move by 3 and the total may move with it
    return CellTable(
        values=[10.0, 20, 30, 60],
        relations=[[1, 1, 1, -1]],
        sensitive=np.array([True, False, False, False]),
        lower_protection=[3, 0, 0, 0],
        upper_protection=[3, 0, 0, 0],
        lower_capacity=[9, 9, 9, 9],
        upper_capacity=[9, 9, 9, 9],
        costs=[1, 2, 2, 1],
        quality=quality,
    )


def grid(seed, quality, **options):
    table = random_grid((3, 3), seed, room=0.6, sensitive=0.5, **options)
    return replace(table, quality=quality(table.values))


def mean_and_slope(values):
    return Quality.combine([kept_mean(values, INTERNAL_3X3, 0.001), kept_slope(values, INTERNAL_3X3, 0.001)])


def test_kept_mean_and_slope_of_a_small_table():
    values = [10.0, 20, 30, 60]
    # without kept statistics the total moves with the cell; with a kept mean another cell moves against it
    assert adjust(three_cells(), algorithm="alternate").objective == 6
    adjustment = adjust(three_cells(kept_mean(values, [0, 1, 2])), algorithm="alternate")
    assert adjustment.values[3] == 60
    assert adjustment.objective == 9
    # With a kept slope, the change of 3 in the first cell has the weight -10 * 3, which only the third cell
    # can balance.
    adjustment = adjust(three_cells(kept_slope(values, [0, 1, 2])), algorithm="alternate")
    assert abs(adjustment.deviations[2]) == 3
    assert np.polyfit([10, 20, 30], adjustment.values[:3], 1)[0] == pytest.approx(1)


@given(st.integers(0, 10**6))
def test_kept_statistics_measure_the_change_of_mean_and_slopes(seed):
    rng = np.random.default_rng(seed)
    x, cells, z = rng.uniform(1, 100, 9), np.array([1, 3, 4, 6, 8]), rng.normal(size=5)
    y = rng.normal(size=9)
    before, t = x[cells], (x + y)[cells]
    changes = (
        (kept_mean(x, cells, 0.01), t.mean() / before.mean() - 1, 0.01),
        (kept_slope(x, cells, 0.02), np.polyfit(before, t, 1)[0] - 1, 0.02),
        (kept_slope(x, cells, 0.03, on=z), np.polyfit(z, t, 1)[0] - np.polyfit(z, before, 1)[0], 0.03),
    )
    for quality, change, tolerance in changes:
        assert (quality.weights @ y)[0] / quality.most[0] == pytest.approx(change / tolerance, rel=1e-6)
        assert (quality.missed(y)[0] > 0) == (abs(change) > tolerance)


def test_fit_equals_an_ordinary_regression():
    rng = np.random.default_rng(0)
    x = rng.lognormal(3, 1, 40)
    t = x + rng.normal(0, 2, 40)
    fitted = fit(x, t)
    assert (fitted.slope, fitted.intercept) == pytest.approx(tuple(np.polyfit(x, t, 1)))
    assert fitted.correlation == pytest.approx(np.corrcoef(x, t)[0, 1])
    assert fitted.variance_ratio == pytest.approx(t.var() / x.var())
    # identities of the paper: Var(t)/Var(x) = 1 + 2 L + Var(y)/Var(x), Corr = (1 + L) / square root of it
    ratio = 1 + 2 * (fitted.slope - 1) + (t - x).var() / x.var()
    assert fitted.variance_ratio == pytest.approx(ratio)
    assert fitted.correlation == pytest.approx(fitted.slope / np.sqrt(ratio))
    assert fit(np.ones(3), t[:3]).slope is None


@pytest.mark.parametrize("mode", ["exact", "at-least"])
@pytest.mark.parametrize("seed", [0, 3, 5])
def test_branch_and_bound_with_kept_statistics_equals_brute_force(mode, seed):
    table = grid(seed, mean_and_slope)
    expected = brute_force(table, mode)
    problem = Problem.from_table(table, mode)
    search = Search(problem, Deadline.after(None))
    proof = branch_and_bound(search, None, np.inf)
    assert search.best.feasible
    assert search.best.cost * problem.objective_unit == pytest.approx(expected, rel=1e-5)
    assert proof.bound.value * problem.objective_unit == pytest.approx(expected, rel=1e-5)


def test_plane_cuts_ignore_statistics_of_the_whole_table():
    # a deviation of cells in other planes can also preserve the statistic
    table = random_grid((2, 2, 3), 3, room=0.6, sensitive=0.3)
    internal = np.arange(table.cells).reshape(3, 3, 4)[:2, :2, :3].ravel()
    with_slope = replace(table, quality=kept_slope(table.values, internal, 0.001))
    without, problem = (Problem.from_table(each, "exact") for each in (table, with_slope))
    planes = planes_of(without)
    assert len(planes) > 0
    for plane in planes:
        programs = [PlaneProgram(each, plane) for each in (without, problem)]
        prices = np.ones(len(programs[0].cells))
        cuts = [program.cut(prices, Deadline.after(None))[0] for program in programs]
        assert cuts[1].least == pytest.approx(cuts[0].least, rel=0.01)
    bound = relaxation_bound(problem, np.inf, plane_work=1e6)
    assert bound.value * problem.objective_unit <= brute_force(with_slope, "exact") * (1 + 1e-6)


@pytest.mark.parametrize(("seed", "whole"), [(0, False), (3, True), (5, True)])
def test_adjust_keeps_statistics_and_bounds_remain_valid(seed, whole):
    table = grid(seed, mean_and_slope, whole=whole)
    expected = brute_force(table, "at-least")
    adjustment = adjust(table, effort="fast", seed=seed)
    assert check(table, adjustment.values).sound
    assert adjustment.whole == table.whole
    # whole cells cost slightly more than the optimum of the model, to which the bound applies
    assert adjustment.lower_bound <= expected * (1 + 1e-6)
    assert adjustment.objective >= expected * (1 - 1e-6)
    before, after = table.values[INTERNAL_3X3], adjustment.values[INTERNAL_3X3]
    fitted = fit(before, after)
    assert abs(fitted.slope - 1) <= 0.001 * (1 + 1e-6)
    assert abs(fitted.mean_after / fitted.mean_before - 1) <= 0.001 * (1 + 1e-6)


def test_check_detects_a_statistic_that_is_not_preserved():
    table = three_cells(kept_mean([10.0, 20, 30, 60], [0, 1, 2]))
    assert check(table, np.array([13.0, 20, 27, 60])).sound
    assert check(table, np.array([13.0, 20, 30, 63])).lost_statistics.tolist() == [0]


def test_adjust_refuses_statistics_that_cannot_be_kept():
    fixed = three_cells(kept_slope([10.0, 20, 30, 60], [0, 1, 2]))
    fixed = replace(fixed, lower_capacity=[9, 9, 1, 9], upper_capacity=[9, 9, 1, 9])
    assert brute_force(fixed, "at-least") is None
    with pytest.raises(ImpossibleConstraints, match="kept statistics"):
        adjust(fixed, algorithm="alternate")


def test_disclosure_audit_uses_a_kept_slope_as_a_constraint():
    values = [10.0, 20, 30, 60]
    without_slope = replace(three_cells(), lower_capacity=[9, 9, 4, 9], upper_capacity=[9, 9, 4, 9])
    with_slope = replace(without_slope, quality=kept_slope(values, [0, 1, 2]))
    published = np.array([13.0, 20, 33, 66])
    tables = (without_slope, with_slope)
    free, bound = (attacker_intervals(each, published, largest_factor=3) for each in tables)
    assert (free.lower[0], free.upper[0]) == pytest.approx((4, 22))
    # the third cell changes by the same amount as the first
    assert (bound.lower[0], bound.upper[0]) == pytest.approx((9, 17))


def test_kept_statistics_convert_to_variables():
    table = CellTable(
        values=[10.0, 20, 10, 20, 30],
        relations=[[1, 0, -1, 0, 0], [0, 1, 0, -1, 0], [0, 0, 1, 1, -1]],
        sensitive=np.zeros(5, dtype=bool),
        lower_protection=np.zeros(5),
        upper_protection=np.zeros(5),
        lower_capacity=np.full(5, 5.0),
        upper_capacity=np.full(5, 5.0),
        quality=kept_mean([10.0, 20, 10, 20, 30], [0, 2, 3], 0.1),
    )
    variables = identical_cells(table)
    by_variable = table_of_variables(table, variables)
    deviations = np.array([1.0, 2, 3])  # deviations of the values 10, 20 and 30
    assert by_variable.quality.weights @ deviations == table.quality.weights @ deviations[variables] == [4.0]


def test_quality_refuses_invalid_statistics():
    with pytest.raises(InvalidParameter, match="constant"):
        kept_slope([1.0, 1, 1], [0, 1, 2])
    with pytest.raises(InvalidParameter, match="each only once"):
        kept_mean([1.0, 2], [0, 0])
    with pytest.raises(InvalidParameter, match="expected least <= 0 <= most"):
        Quality(np.ones((1, 4)), np.array([1.0]), np.array([2.0]))
    with pytest.raises(ShapeMismatch):
        three_cells(kept_mean([10.0, 20], [0, 1]))
