"""Tests of cuts on few constraints."""

import numpy as np
from microguard.sdc.errors import ImpossibleProtection
from microguard.sdc.suppression import suppress
from microguard.sdc.suppression.knowledge import OUTSIDER, Knowledge
from microguard.sdc.suppression.local_cuts import LocalCuts
from microguard.sdc.suppression.neighbourhoods import Neighbourhoods

from tests.sdc.suppression.tables import tiny_problem


def test_local_cuts_are_violated_by_the_pattern_and_satisfied_by_the_optimum() -> None:
    most = 0
    for kind in ("2-D", "hierarchical", "linked"):
        for seed in range(8):
            problem = tiny_problem(kind, seed)
            try:
                best = suppress(problem, attackers=("outsider",), algorithm="exact").suppressed
            except ImpossibleProtection:
                continue
            local = LocalCuts(
                problem,
                Knowledge(problem, ~problem.keep, ("outsider",)),
                Neighbourhoods(problem.relations),
                0,
            )
            pattern = problem.must.copy()
            for cell in np.flatnonzero(problem.primary & (problem.upper_level > 0)).tolist():
                cuts = local.of(pattern, (cell, OUTSIDER, float(problem.upper_level[cell])))
                assert all(cut.violated(pattern.astype(float)) for cut in cuts)
                assert not any(cut.violated(best.astype(float)) for cut in cuts)
                most = max(most, len(cuts))
    assert most >= 2
