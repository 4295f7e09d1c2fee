"""Tests of cuts of contributors, against the optimum that the exact method proves."""

import numpy as np
import pytest
from microguard.sdc.errors import ImpossibleProtection
from microguard.sdc.suppression import KINDS, suppress
from microguard.sdc.suppression.contributor_cuts import ContributorCuts
from microguard.sdc.suppression.cuts import Pool
from microguard.sdc.suppression.local_cuts import LocalCuts
from microguard.sdc.suppression.relaxation import Relaxation
from microguard.sdc.suppression.separation import Separation
from microguard.sdc.suppression.witnesses import Witnesses

from tests.sdc.suppression.tables import protects, tiny_problem

#: No sliding levels: another method searches tables that have them.
_TABLES = [
    (kind, seed, problem)
    for kind in ("2-D", "3-D", "hierarchical", "linked")
    for seed in range(10)
    if not (problem := tiny_problem(kind, seed)).sliding_level.any()
]


def test_contributor_cuts_are_violated_by_a_failing_pattern_and_satisfied_by_the_optimum() -> None:
    failed = passed = 0
    for _, _, problem in _TABLES:
        try:
            best = suppress(problem, algorithm="exact").suppressed
            outsider = suppress(problem, attackers=("outsider",), algorithm="exact").suppressed
        except ImpossibleProtection:
            continue
        separation = Separation(problem, KINDS)
        attacks = ContributorCuts(Witnesses(problem, separation.knowledge), separation)
        for suppressed in (outsider, best, outsider):  # witnesses of earlier patterns are used again
            cuts, pattern = attacks.of(suppressed)
            assert (pattern is not None) == protects(problem, suppressed, KINDS)
            assert bool(cuts) == (pattern is None)
            assert all(cut.violated(suppressed.astype(float)) for cut in cuts)
            assert not any(cut.violated(best.astype(float)) for cut in cuts)
            if pattern is not None:
                assert np.array_equal(pattern.suppressed, suppressed)
                assert set(pattern.witnesses) == set(np.flatnonzero(problem.primary))
            failed, passed = failed + (pattern is None), passed + (pattern is not None)
    assert failed >= 5
    assert passed >= 5


def test_a_completed_pattern_protects_by_cuts_that_the_optimum_satisfies() -> None:
    opened = 0
    for _, _, problem in _TABLES:
        try:
            best = suppress(problem, algorithm="exact").suppressed
            outsider = suppress(problem, attackers=("outsider",), algorithm="exact").suppressed
        except ImpossibleProtection:
            continue
        separation, pool = Separation(problem, KINDS), Pool(problem.cells)
        relaxation = Relaxation(problem, pool)
        witnesses = Witnesses(problem, separation.knowledge)
        local = LocalCuts(problem, separation.knowledge, witnesses.near, seed=1)
        attacks = ContributorCuts(witnesses, separation)
        pattern = attacks.completed(outsider, relaxation, local)
        assert protects(problem, pattern.suppressed, KINDS)
        assert pattern.suppressed[outsider].all()
        assert set(pattern.witnesses) == set(np.flatnonzero(problem.primary))
        assert not any(cut.violated(best.astype(float)) for cut in pool.cuts)
        assert bool(pool.cuts) == (not protects(problem, outsider, KINDS))
        opened += bool(pool.cuts)
    assert opened >= 5


@pytest.mark.parametrize("kinds", [KINDS, KINDS[:1]])
def test_a_proof_of_the_search_of_large_tables_is_the_optimum(kinds: tuple[str, ...]) -> None:
    proofs = 0
    for _, _, problem in _TABLES:
        try:
            best = suppress(problem, attackers=kinds, algorithm="exact")
        except ImpossibleProtection:
            continue
        found = suppress(problem, attackers=kinds, algorithm="heuristic")
        assert found.lower_bound <= best.cost + 1e-6
        if found.optimal:
            proofs += 1
            assert found.cost == pytest.approx(best.cost)
    assert proofs >= 10
