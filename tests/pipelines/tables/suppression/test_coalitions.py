"""Counts for contributors are those of a linear program for each sensitive cell and coalition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from microguard.pipelines.guarantees.coalitions import Coalitions
from microguard.pipelines.guarantees.deviations import Knowledge
from microguard.pipelines.guarantees.feasible_intervals import too_narrow
from microguard.pipelines.guarantees.original_cells import UNIT, OriginalCells
from microguard.sdc.suppression import KINDS, SuppressionProblem
from scipy.optimize import linprog

from tests.benchmarks.tabular.suppression_tables import generated_problem
from tests.pipelines.tables.suppression.test_chunks import original


def farthest(problem: SuppressionProblem, free: np.ndarray, known: Knowledge, cell: int) -> np.ndarray:
    """Return how far a cell can fall and rise if some cells have no published value."""
    columns = np.flatnonzero(free)
    bounds = np.column_stack([-known.fall[columns], known.rise[columns]])
    lines = problem.relations[:, columns]
    reached = []
    for side in (1.0, -1.0):
        found = linprog(
            np.where(columns == cell, side, 0.0), A_eq=lines, b_eq=np.zeros(lines.shape[0]), bounds=bounds
        )
        assert found.status == 0
        reached.append(-found.fun)
    return np.array(reached)


def narrow(problem: SuppressionProblem, hidden: np.ndarray, known: Knowledge, cell: int, prior: bool) -> bool:
    """Return whether an interval is narrower than the levels, which prior knowledge may reduce."""
    levels, sliding = np.array([known.lower[cell], known.upper[cell]]), known.sliding[cell]
    if prior:
        most = farthest(problem, np.ones(problem.cells, bool), known, cell)
        levels, sliding = np.minimum(levels, most), min(sliding, most.sum())
    reached = farthest(problem, hidden, known, cell)
    slack = 1e-5 * max(sliding, levels.max())
    return bool((reached < levels - slack).any() or reached.sum() < sliding - slack)


def counted_alone(
    problem: SuppressionProblem, hidden: np.ndarray, given: OriginalCells
) -> dict[str, set[int]]:
    """Return the cells that each kind of attacker narrows, by programs over all cells for each of them."""
    assert given.sliding is not None
    assert given.contributed is not None
    arrays = (given.fall, given.rise, given.lower, given.upper, given.sliding)
    known = Knowledge(*(np.array(each, dtype=float) for each in arrays))
    asked = np.maximum(known.lower + known.upper, known.sliding)
    judged = hidden & (asked >= UNIT)
    found: dict[str, set[int]] = {kind: set() for kind in KINDS}
    found["outsider"] = set(np.flatnonzero(given.sensitive & ~judged).tolist())
    coalitions = Coalitions(given.contributed, hidden, KINDS, known, given.units)
    for cell in np.flatnonzero(given.sensitive & judged).tolist():
        if narrow(problem, hidden, known, cell, prior=False):
            found["outsider"].add(cell)
            continue
        for position in np.flatnonzero(coalitions.uncertain(cell)).tolist():
            with known.replaced(coalitions.cells[position], coalitions.known[position]):
                if narrow(problem, hidden, known, cell, prior=True):
                    for kind in coalitions.kinds[position]:
                        found[kind].add(cell)
    return found


@pytest.mark.parametrize(
    "sliding", [pytest.param(0.0, marks=pytest.mark.long, id="levels"), pytest.param(1.5, id="sliding")]
)
def test_counts_are_those_of_one_program_for_each_cell_and_coalition(sliding: float) -> None:
    """Witnesses that serve several coalitions and cells leave no attacker out."""
    narrowed = dict.fromkeys(KINDS, 0)
    problem = generated_problem([(3, 2), (3,)], 60, seed=1)
    random = np.random.default_rng(1)
    given = original(problem)
    given = replace(given, sliding=sliding * (given.lower + given.upper))
    for share in (0.3, 0.7):
        hidden = problem.must | (random.random(problem.cells) < share)
        alone = counted_alone(problem, hidden, given)
        counts = too_narrow(problem.relations, hidden, given, KINDS)
        assert counts == {kind: len(cells) for kind, cells in alone.items()}
        for kind, number in counts.items():
            narrowed[kind] += number
    assert all(narrowed.values())
