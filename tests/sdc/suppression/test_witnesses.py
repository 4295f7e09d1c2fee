"""Witnesses of single primaries: what their further cells cost."""

from __future__ import annotations

import numpy as np
import pytest
from microguard.sdc.suppression.knowledge import Knowledge
from microguard.sdc.suppression.problem import SuppressionProblem
from microguard.sdc.suppression.witnesses import Pattern, Witnesses

from tests.sdc.suppression.tables import tiny_problem


def _opened(problem: SuppressionProblem, primary: int, *, cheapest: bool) -> float | None:
    """Return what the further cells of a primary's witnesses cost, or None if it has none."""
    knowledge = Knowledge(problem, ~problem.keep, ("outsider",))
    pattern = Pattern(problem.must.copy())
    costs = np.where(problem.keep, np.inf, problem.costs)
    witnesses = Witnesses(problem, knowledge, cheapest=cheapest)
    _, failed = witnesses.of(primary, pattern, thorough=2, costs=costs)
    return None if failed else float(problem.costs[pattern.suppressed & ~problem.must].sum())


@pytest.mark.parametrize("kind", ["2-D", "linked"])
def test_integer_programs_choose_witnesses_whose_cells_cost_less_than_those_of_linear_programs(
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
