"""Tests of cell suppression against enumeration, and of its refusals."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from microguard.sdc.algorithms.suppression import SUPPRESSION
from microguard.sdc.errors import ImpossibleProtection, InvalidParameter, NotAdditive, SolverFailed
from microguard.sdc.suppression import KINDS, Contributions, SuppressionProblem, audit, suppress
from microguard.sdc.suppression.local_search import LocalSearch
from microguard.sdc.suppression.witnesses import Witnesses
from scipy import sparse

from tests.benchmarks.tabular.suppression_tables import (
    SURVEY,
    generated_problem,
    survey_problem,
    turnover_problem,
)
from tests.reference import reference_file
from tests.sdc.suppression.tables import (
    KINDS_OF_TABLES,
    cheaper,
    coalitions,
    interval,
    protects,
    tiny_problem,
    too_narrow,
)


def _square(**given: object) -> SuppressionProblem:
    """Return a table of 3 x 3 cells of 10 with margins; cell 0 is primary and needs 5 on both sides."""
    values = np.array([10, 10, 10, 30, 10, 10, 10, 30, 10, 10, 10, 30, 30, 30, 30, 90.0])
    positions, relations = np.arange(16).reshape(4, 4), np.zeros((8, 16))
    for number in range(4):
        for line, row in ((positions[number], number), (positions[:, number], 4 + number)):
            relations[row, line[:3]], relations[row, line[3]] = 1, -1
    primary = np.zeros(16, dtype=bool)
    primary[0] = True
    arguments = {"lower_level": 5.0 * primary, "upper_level": 5.0 * primary} | given
    return SuppressionProblem(values, sparse.csr_matrix(relations), primary, **arguments)


def test_suppress_completes_a_rectangle_by_hand() -> None:
    answer = suppress(_square(costs=np.where(np.arange(16) % 4 == 3, 5.0, 1.0) + (np.arange(16) >= 12) * 5))
    assert answer.suppressed.sum() == 4
    assert answer.cost == answer.lower_bound == 4
    assert answer.optimal
    assert answer.audit.lowest[0, 0] == pytest.approx(0)
    assert answer.audit.highest[0, 0] == pytest.approx(20)


def test_suppress_protects_from_the_sole_contributor_of_a_secondary_cell() -> None:
    """Each unit contributes to one cell: the contributor of one corner of a rectangle knows the others."""
    problem = _square()
    leaves = [0, 1, 2, 4, 5, 6, 8, 9, 10]
    cells = [(leaf, unit) for unit, leaf in enumerate(leaves)]
    margins = [(leaf // 4 * 4 + 3, unit) for leaf, unit in cells] + [(12 + leaf % 4, u) for leaf, u in cells]
    pairs = np.array([*cells, *margins, *((15, unit) for _, unit in cells)])
    known = replace(
        problem,
        keep=np.isin(np.arange(16), [3, 7, 11, 12, 13, 14, 15]),
        contributions=Contributions(pairs[:, 0], pairs[:, 1], np.full(len(pairs), 10.0)),
    )
    alone = suppress(known, attackers=("outsider",))
    assert alone.cost == 4
    attacked = audit(known, alone.suppressed)
    single = attacked.kinds.index("single")
    assert attacked.too_narrow[0, single]
    assert attacked.lowest[0, single] == pytest.approx(attacked.highest[0, single])
    everybody = suppress(known)
    assert everybody.audit.protected
    assert everybody.cost == 7  # two rectangles that share only the primary cell


def test_suppress_protects_the_sliding_level_from_a_contributor_who_knows_one_side() -> None:
    """Unit 1 contributes the whole primary cell, so that only an increase makes its interval wide enough."""
    narrow = np.isin(np.arange(16), [1, 5, 9])
    problem = _square(
        lower_level=2.0 * (np.arange(16) == 0),
        upper_level=2.0 * (np.arange(16) == 0),
        sliding_level=8.0 * (np.arange(16) == 0),
        lower_bound=np.where(narrow, _square().values - 4, 0.0),
        upper_bound=np.where(narrow, _square().values + 4, 2 * _square().values),
        costs=np.where(np.arange(16) % 4 == 1, 1.0, 3.0) + (np.arange(16) >= 12) * 50,
        contributions=Contributions(np.array([0, 0]), np.array([1, 2]), np.array([10.0, 0.0])),
    )
    alone = suppress(problem, attackers=("outsider",))
    assert not audit(problem, alone.suppressed).protected
    everybody = suppress(problem)
    assert everybody.audit.protected
    assert everybody.audit.highest[0, everybody.audit.kinds.index("unit")] >= 18 - 1e-5
    assert everybody.cost > alone.cost


@pytest.mark.parametrize("seed", [11, 15, 37])
def test_audit_is_precise_for_a_small_level_of_a_cell_with_a_large_range(seed: int) -> None:
    """The level is 5 and the value 10^10: the tolerance of the solver is relative to the level."""
    rng = np.random.default_rng(seed)
    rise = rng.uniform(0.1, 0.8, 16) * 5.0
    fall = rise * rng.uniform(0.5, 1.0, 16)
    intervals = []
    for times, most in ((1e9, 1e10), (1.0, 20.0)):
        values = _square().values * times
        lower, upper = values - fall, values + rise
        lower[0], upper[0] = values[0] - most, values[0] + most
        problem = replace(_square(), values=values, lower_bound=lower, upper_bound=upper)
        found = audit(problem, np.ones(16, dtype=bool))
        intervals.append((found.lowest[0, 0] - values[0], found.highest[0, 0] - values[0]))
        assert found.too_narrow[0, 0]
    assert intervals[0] == pytest.approx(intervals[1], rel=1e-5)


def test_audit_detects_a_missing_small_lower_level_next_to_a_large_upper_level() -> None:
    first = np.arange(16) == 0
    most = 2 * _square().values
    most[1] = 10.0  # cell 1 cannot rise, so that cell 0 cannot fall
    problem = _square(lower_level=5e-6 * first, upper_level=9.0 * first, upper_bound=most)
    assert audit(problem, np.isin(np.arange(16), [0, 1, 4, 5])).too_narrow[0, 0]


def test_suppress_refuses_a_pattern_that_its_audit_finds_too_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    row = SUPPRESSION["auto"]
    monkeypatch.setattr(type(row), "solve", lambda self, task: (task.problem.must.copy(), 1.0, "proof"))
    with pytest.raises(SolverFailed, match=r"cell 0: .* but the audit a narrower one \(1 such"):
        suppress(_square())


def test_suppress_after_its_time_limit_protects_and_states_no_proof() -> None:
    problem = tiny_problem("3-D", 10)
    answer = suppress(problem, algorithm="heuristic", time_limit=1e-9)
    assert answer.audit.protected
    assert answer.stopped_by == "time"
    assert not answer.optimal
    assert answer.lower_bound <= suppress(problem, algorithm="exact").cost * (1 + 1e-9)


def _compare(kind: str, seed: int) -> None:
    problem = tiny_problem(kind, seed)
    kinds = KINDS if seed % 2 else ("outsider",)
    try:
        answer = suppress(problem, attackers=kinds, algorithm="exact")
    except ImpossibleProtection:
        assert not protects(problem, ~problem.keep, kinds)
        return
    assert protects(problem, answer.suppressed, kinds)
    assert answer.audit.protected
    assert answer.optimal
    assert answer.cost == pytest.approx(problem.costs[answer.suppressed].sum())
    assert answer.lower_bound == pytest.approx(answer.cost)
    assert cheaper(problem, answer.cost, kinds) is None
    rough = suppress(problem, attackers=kinds, algorithm="heuristic", effort="fast")
    assert protects(problem, rough.suppressed, kinds)
    assert rough.lower_bound <= answer.cost + 1e-6
    _compare_intervals(problem, answer.suppressed)
    _compare_intervals(problem, problem.must)


def _compare_intervals(problem: SuppressionProblem, suppressed: np.ndarray) -> None:
    """Compare each interval of the audit with those of all attackers, also for unprotected patterns."""
    found = audit(problem, suppressed)
    for column, kind in enumerate(found.kinds):
        attackers = coalitions(problem, suppressed)[kind]
        for row, cell in enumerate(found.cells):
            if found.too_narrow[row, 0] and kind != "outsider":
                assert found.too_narrow[row].all()
                continue
            narrow = any(too_narrow(problem, suppressed, int(cell), units) for units in attackers)
            assert found.too_narrow[row, column] == narrow
            low, high = found.lowest[row, column], found.highest[row, column]
            who = tuple(int(unit) for unit in found.who[row, column] if unit >= 0)
            exact = kind == "outsider" or bool(who)
            for units in [who] if exact else attackers:
                ends = interval(problem, suppressed, int(cell), units)
                if ends is None:
                    continue
                value = problem.values[cell]
                if exact:
                    assert low == pytest.approx(value - ends[0], abs=1e-5)
                    assert high == pytest.approx(value + ends[1], abs=1e-5)
                assert low >= value - ends[0] - 1e-5
                assert high <= value + ends[1] + 1e-5


@pytest.mark.parametrize("kind", KINDS_OF_TABLES)
def test_audit_by_near_cells_finds_the_same_primary_cells_too_narrow(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(4):
        problem = tiny_problem(kind, seed)
        rng = np.random.default_rng(seed)
        patterns = [problem.must | (~problem.keep & (rng.random(problem.cells) < p)) for p in (0.3, 0.6, 1.0)]
        for suppressed in patterns:
            whole = audit(problem, suppressed)
            with monkeypatch.context() as patched:
                module = import_module("microguard.sdc.suppression.intervals")
                patched.setattr(module, "_WHOLE", -1)
                patched.setattr(module, "sizes_up_to", lambda cells: (6, 10, cells))
                audits = [audit(problem, suppressed, attackers=kinds) for kinds in (KINDS, KINDS[:1])]
            assert whole.exact
            for near in audits:  # the outsider's audit uses tables of other primary cells
                assert not near.exact
                assert np.array_equal(near.too_narrow, whole.too_narrow[:, : len(near.kinds)])
                assert (near.lowest[:, 0] >= whole.lowest[:, 0] - 1e-6).all()
                assert (near.highest[:, 0] <= whole.highest[:, 0] + 1e-6).all()


@pytest.mark.parametrize("kind", KINDS_OF_TABLES)
def test_suppress_and_audit_agree_with_enumeration(kind: str) -> None:
    # in table 111, the interval of a contributor reaches a sliding level on one side only
    for seed in (10,) if kind == "3-D" else (*range(3), 111) if kind == "linked" else range(3):
        _compare(kind, seed)


@pytest.mark.parametrize("kind", KINDS_OF_TABLES)
def test_searches_without_a_program_of_the_table_protect_and_bound_the_optimum_from_below(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(5):
        problem = tiny_problem(kind, seed)
        kinds = KINDS if seed % 2 else ("outsider",)
        try:
            best = suppress(problem, attackers=kinds, algorithm="exact")
        except ImpossibleProtection:
            continue
        for module, name in (("methods", "LARGE_CELLS"), ("diving", "_OPENED")):
            with monkeypatch.context() as patched:
                patched.setattr(import_module(f"microguard.sdc.suppression.{module}"), name, 0)
                answer = suppress(problem, attackers=kinds, algorithm="heuristic", effort="fast")
            assert protects(problem, answer.suppressed, kinds)
            assert not (answer.suppressed & problem.keep).any()
            assert answer.lower_bound <= best.cost * (1 + 1e-9) <= answer.cost * (1 + 2e-9)
            assert answer.optimal <= (answer.cost == pytest.approx(best.cost))


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS_OF_TABLES)
def test_suppress_and_audit_agree_with_enumeration_of_300_tables(kind: str) -> None:
    for seed in range(75):
        _compare(kind, 100 + seed)


def test_search_of_a_large_table_ends_with_a_protecting_pattern_after_its_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = generated_problem(((3, 3), (3,), (3,)), 600, 1)
    searches = []
    for most in (1, 300):
        counted: list[Witnesses] = []

        def counting(*given: Any, to: list[Witnesses] = counted, **named: Any) -> Witnesses:
            to.append(Witnesses(*given, **named))
            return to[-1]

        monkeypatch.setattr(import_module("microguard.sdc.suppression.diving"), "Witnesses", counting)
        efforts = import_module("microguard.sdc.suppression.methods")._LARGE_EFFORTS
        monkeypatch.setitem(efforts, "fast", (0.0, 1, most, 1))
        answer = suppress(problem, attackers=("outsider",), algorithm="heuristic", effort="fast")
        assert answer.stopped_by == "work"
        assert answer.audit.protected
        searches.append(counted[0].searches)
    assert searches[0] < searches[1] < 600


def test_search_ends_if_no_neighbourhood_improves_the_pattern_or_a_witness(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[float] = []

    def improve_nothing(self: LocalSearch, near: np.ndarray, most: float) -> bool:
        tried.append(most)
        assert len(tried) < 100
        return False

    monkeypatch.setattr(LocalSearch, "_renewed", improve_nothing)
    efforts = import_module("microguard.sdc.suppression.methods")._LARGE_EFFORTS
    monkeypatch.setitem(efforts, "fast", (0.0, 1, 2_000, 1))
    problem = generated_problem(((3, 3), (3,), (3,)), 600, 1)
    answer = suppress(problem, attackers=("outsider",), algorithm="heuristic", effort="fast")
    assert 0 < len(tried) <= 20
    assert answer.audit.protected


@pytest.mark.parametrize(("costs", "cells"), [("number", 138), ("value", 152)])
def test_suppress_proves_the_optimum_of_turnover_by_activity_and_size(costs: str, cells: int) -> None:
    reference_file("turnover_activity_size.csv")
    answer = suppress(turnover_problem(costs))
    assert answer.optimal
    assert answer.suppressed.sum() == cells
    assert answer.audit.protected


@pytest.mark.long
def test_suppress_bounds_the_gap_of_a_table_of_three_dimensions() -> None:
    reference_file("business_survey.csv")
    answer = suppress(survey_problem("a88 x nuts2 x size"), attackers=("outsider",))
    assert answer.audit.protected
    assert answer.gap <= 0.01


@pytest.mark.long
@pytest.mark.parametrize("name", list(SURVEY))
def test_no_contributor_of_the_business_survey_narrows_a_primary_cell(name: str) -> None:
    reference_file("business_survey.csv")
    answer = suppress(survey_problem(name), effort="fast")
    assert answer.audit.kinds == KINDS
    assert not answer.audit.too_narrow.any()
    assert answer.lower_bound <= answer.cost


def test_problem_refuses_levels_of_zero_and_below_the_unit_of_publication() -> None:
    zero = np.zeros(16)
    with pytest.raises(InvalidParameter, match=r"cell 0 is primary with levels of 0"):
        _square(lower_level=zero, upper_level=zero)
    with pytest.raises(InvalidParameter, match=r"cell 0 .* narrower than the unit of publication"):
        _square(unit=10.5)


def test_problem_refuses_a_primary_cell_whose_value_is_public_knowledge() -> None:
    level = np.where(np.arange(16) == 0, 11.0, 0.0)
    with pytest.raises(ImpossibleProtection, match=r"cell 0 is primary, but its levels exceed the bounds"):
        _square(upper_level=level)


def test_problem_refuses_constraints_that_do_not_add_up() -> None:
    values = _square().values.copy()
    values[0] += 1
    with pytest.raises(NotAdditive):
        replace(_square(), values=values)


def test_suppress_refuses_a_primary_cell_whose_neighbours_must_all_be_published() -> None:
    with pytest.raises(ImpossibleProtection, match=r"cell 0 cannot be protected"):
        suppress(_square(keep=np.arange(16) > 0))


@pytest.mark.parametrize("algorithm", ["exact", "heuristic"])
def test_suppress_names_a_primary_cell_that_its_row_cannot_protect_before_the_search(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The row is 100 and 10 with a published total: the first cell cannot rise by 90.
    relations = sparse.csr_matrix(np.array([[1.0, 1, -1, 0, 0], [0, 0, 1, 1, -1]]))
    primary = np.array([True, False, False, False, False])
    levels = np.where(primary, 90.0, 0.0)
    keep = np.array([False, False, True, False, False])
    values = np.array([100.0, 10, 110, 50, 160])
    problem = SuppressionProblem(values, relations, primary, levels, levels, keep=keep)
    monkeypatch.delattr(import_module("microguard.sdc.suppression.relaxation").Relaxation, "solve")
    with pytest.raises(ImpossibleProtection, match="cell 0 cannot be protected"):
        suppress(problem, algorithm=algorithm)


def test_suppress_of_a_very_large_table_does_not_report_one_split_of_a_sliding_level_as_infeasible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Cell 0 can fall by 10 and rise by 4: two halves of 6 would not protect its width of 12."""
    first = np.arange(16) == 0
    values = _square().values
    least = values - np.where(first, 10.0, 2.0)
    problem = _square(lower_level=1.0 * first, upper_level=1.0 * first, sliding_level=12.0 * first,
                      lower_bound=least, keep=values > 10)  # fmt: skip
    assert suppress(problem).audit.protected
    monkeypatch.setattr(import_module("microguard.sdc.suppression.methods"), "LARGE_CELLS", 0)
    with pytest.raises(SolverFailed, match=r"cell 0 has a sliding level; .* no pattern was found for"):
        suppress(problem, algorithm="heuristic")
    with pytest.raises(ImpossibleProtection, match=r"cell 0 cannot be protected"):
        suppress(_square(keep=np.arange(16) > 0), algorithm="heuristic")


def test_suppress_of_a_very_large_table_respects_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("microguard.sdc.suppression.methods"), "LARGE_CELLS", 0)
    with pytest.raises(SolverFailed, match=r"time_limit: expected .* all 1 primary cells, found only 0"):
        suppress(_square(), algorithm="heuristic", time_limit=1e-9)


def test_gap_is_none_if_no_bound_of_a_positive_cost_was_proved() -> None:
    answer = suppress(_square())
    assert answer.gap == pytest.approx(0.0)
    assert replace(answer, lower_bound=0.0).gap is None
    assert replace(answer, lower_bound=0.0, cost=0.0).gap == 0.0


def test_suppress_refuses_unknown_algorithms_efforts_and_attackers() -> None:
    with pytest.raises(InvalidParameter, match="algorithm: expected one of auto, exact, heuristic"):
        suppress(_square(), algorithm="best")
    with pytest.raises(InvalidParameter, match="heuristic does not support effort 'exact'"):
        suppress(_square(), algorithm="heuristic", effort="exact")
    with pytest.raises(InvalidParameter, match="attackers: expected kinds among outsider, single"):
        suppress(_square(), attackers=("burglar",))


def test_suppress_is_reproducible() -> None:
    first, second = (suppress(tiny_problem("linked", 1)).suppressed for _ in range(2))
    assert np.array_equal(first, second)
