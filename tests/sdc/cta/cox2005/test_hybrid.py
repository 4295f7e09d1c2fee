"""Tests of the hybrid heuristic: it keeps solutions found at the deadline."""

from microguard.sdc.cta.cox2005.hybrid import HybridParams, hybrid
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.cta.program.search import Search

from tests.sdc.cta.tables import random_grid


class PassesDuringTheProgram:
    """Deadline that passes after its first check."""

    remaining = 60.0
    looks = 0

    @property
    def passed(self):
        self.looks += 1
        return self.looks > 1


def test_hybrid_keeps_a_solution_found_at_the_deadline():
    search = Search(Problem.from_table(random_grid((3, 3), 0), "exact"), PassesDuringTheProgram())
    hybrid(search, HybridParams(group_counts=(4,)))
    assert search.best is not None
    assert search.best.feasible
