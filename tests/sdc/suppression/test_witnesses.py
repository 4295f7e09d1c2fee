"""Tests of witnesses of single primary cells: the cost of their further cells."""

from __future__ import annotations

from itertools import product
from unittest import mock

import numpy as np
import pytest
from microguard.sdc.stop import Deadline
from microguard.sdc.suppression.knowledge import OUTSIDER, Knowledge
from microguard.sdc.suppression.pattern import Pattern, Witness
from microguard.sdc.suppression.problem import KINDS, SuppressionProblem
from microguard.sdc.suppression.witnesses import Witnesses

from tests.sdc.suppression.tables import tiny_problem


def _opened(problem: SuppressionProblem, primary: int, *, cheapest: bool) -> float | None:
    """Return the cost of the further cells of a primary cell's witnesses, or None without witnesses."""
    knowledge = Knowledge(problem, ~problem.keep, ("outsider",))
    pattern = Pattern(problem.must.copy())
    costs = np.where(problem.keep, np.inf, problem.costs)
    witnesses = Witnesses(problem, knowledge, cheapest=cheapest)
    _, failed = witnesses.of(primary, pattern, thorough=2, costs=costs)
    return None if failed else float(problem.costs[pattern.suppressed & ~problem.must].sum())


@pytest.mark.parametrize("kind", ["2-D", "linked"])
def test_integer_programs_find_cheaper_witnesses_than_linear_programs(
    kind: str,
) -> None:
    pairs = []
    for seed in range(12):
        problem = tiny_problem(kind, seed)
        for primary in np.flatnonzero(problem.primary).tolist():
            linear, integer = (_opened(problem, primary, cheapest=how) for how in (False, True))
            assert (linear is None) == (integer is None)
            if linear is not None and integer is not None:
                pairs.append((linear, integer))
    found = np.array(pairs)
    assert (found[:, 1] <= found[:, 0] + 1e-9).all()
    assert found[:, 1].sum() < 0.97 * found[:, 0].sum()


def test_trim_publishes_a_cell_whose_last_witness_is_replaced_after_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = tiny_problem("2-D", 0)
    witnesses = Witnesses(problem, Knowledge(problem, ~problem.keep, ("outsider",)))
    primary = int(np.flatnonzero(problem.primary)[0])
    free = np.flatnonzero(~problem.must)
    other, cheap, dear = free[np.argsort(problem.costs[free], kind="stable")[[0, 1, -1]]].tolist()
    pattern = Pattern(problem.must.copy())
    pattern.suppressed[[other, cheap, dear]] = True
    use = {
        OUTSIDER: tuple(Witness(np.sort([primary, cell]), np.array([1.0, -1.0])) for cell in (cheap, dear))
    }
    pattern.put(primary, use)

    def rerouted(*_: object, **__: object) -> tuple[object, list[object]]:
        """Fail while the expensive cell is published; otherwise use the third cell in place of both."""
        if not pattern.suppressed[dear]:
            return {}, [(primary, OUTSIDER, 1.0)]
        return {OUTSIDER: (Witness(np.sort([primary, other]), np.array([1.0, -1.0])),)}, []

    monkeypatch.setattr(witnesses, "of", rerouted)
    witnesses.trim(pattern, np.array([dear, cheap]), Deadline.after(None))
    assert np.flatnonzero(pattern.suppressed & ~problem.must).tolist() == [other]


def test_who_cannot_exclude_the_witness_of_another_contributor_gets_no_search_of_his_own() -> None:
    searched, served = 0, 0
    for kind, seed in product(("2-D", "3-D", "hierarchical"), range(12)):
        problem = tiny_problem(kind, seed)
        knowledge = Knowledge(problem, ~problem.keep, KINDS)
        witnesses = Witnesses(problem, knowledge)
        for primary in np.flatnonzero(problem.primary).tolist():
            with mock.patch.object(witnesses, "_search", side_effect=witnesses._search) as search:
                found, failed = witnesses.of(primary, Pattern(~problem.keep), thorough=0)
            if failed or problem.sliding_level[primary]:
                continue
            assert len({id(group) for group in found.values()}) == search.call_count
            searched, served = searched + search.call_count, served + len(found)
    assert searched < 0.9 * served
