"""Tests of witnesses in which all cells deviate by the same amount, against enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from microguard.sdc.suppression import SuppressionProblem, unit_witnesses
from microguard.sdc.suppression.attackers import WATCHED
from microguard.sdc.suppression.knowledge import OUTSIDER, Knowledge
from microguard.sdc.suppression.pattern import Pattern
from microguard.sdc.suppression.unit_witnesses import UnitWitnesses
from microguard.sdc.suppression.witnesses import Witnesses
from scipy import sparse

from tests.sdc.suppression.tables import KINDS_OF_TABLES, tiny_problem

KINDS = ("outsider", "single", "pair", "unit")


def _lightest(problem: SuppressionProblem, knowledge: Knowledge, place: int, suppressed: np.ndarray) -> float:
    """Return the weight of the lightest unit table that raises a cell by its level, by enumeration."""
    relations = np.asarray(problem.relations.todense()).astype(np.int8)
    used = np.flatnonzero(suppressed & (np.maximum(knowledge.fall, knowledge.rise) > 0))
    signs = np.array(list(product((-1, 0, 1), repeat=len(used))), dtype=np.int8)
    signs = signs[signs[:, np.searchsorted(used, place)] == 1]
    signs = signs[(signs @ relations[:, used].T == 0).all(axis=1)]
    level = problem.upper_level[place]
    signs = signs[
        ((signs <= 0) | (knowledge.rise[used] >= level)).all(axis=1)
        & ((signs >= 0) | (knowledge.fall[used] >= level)).all(axis=1)
    ]
    weights = np.where(knowledge.watched[used], WATCHED, 1.0)
    weights[used == place] = 0.0
    return float((np.abs(signs) @ weights).min(initial=np.inf))


def test_unit_witness_has_the_least_weight_of_an_enumeration() -> None:
    found_some = 0
    for seed in range(8):
        problem = tiny_problem("2-D", seed)
        knowledge = Knowledge(problem, ~problem.keep, KINDS)
        units = UnitWitnesses(problem.relations, knowledge)
        suppressed = problem.must | (np.random.default_rng(seed).random(problem.cells) < 0.7)
        for primary in np.flatnonzero(problem.primary & (problem.upper_level > 0)).tolist():
            if knowledge.rise[primary] < problem.upper_level[primary]:
                continue
            best = _lightest(problem, knowledge, primary, suppressed)
            found = units.of(primary, OUTSIDER, float(problem.upper_level[primary]), suppressed)
            assert (found is None) == (best == np.inf)
            if found is not None:
                weights = np.where(knowledge.watched[found[0]], WATCHED, 1.0)
                assert weights[found[0] != primary].sum() == best
                found_some += 1
    assert found_some > 5


@pytest.mark.parametrize("number", [0, 24, 30])
def test_unit_witness_search_skips_a_primary_cell_in_no_constraint_or_in_too_many(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compiled search reserves memory for 24 constraints with a nonzero sum and checks no bounds."""
    monkeypatch.setattr(unit_witnesses, "_search", lambda *_: pytest.fail("searched"))
    values = np.full(31, 10.0)
    relations = -np.eye(30, 31, 1)
    relations[:, 0] = 1
    relations = relations[:number] if number else relations[:1] - relations[1:2]
    primary = np.arange(31) == 0
    level = np.where(primary, 1.0, 0.0)
    problem = SuppressionProblem(values, sparse.csr_matrix(relations), primary, level, level)
    units = UnitWitnesses(problem.relations, Knowledge(problem, ~problem.keep, ("outsider",)))
    assert units.of(0, OUTSIDER, 1.0, np.ones(31, dtype=bool)) is None


@pytest.mark.parametrize("kind", KINDS_OF_TABLES)
def test_unit_witnesses_satisfy_constraints_and_the_knowledge_of_each_attacker(kind: str) -> None:
    found_some = 0
    for seed in range(12):
        problem = tiny_problem(kind, seed)
        knowledge = Knowledge(problem, ~problem.keep, KINDS)
        units = UnitWitnesses(problem.relations, knowledge)
        suppressed = ~problem.keep
        for primary in np.flatnonzero(problem.primary).tolist():
            for attacker in (OUTSIDER, *range(knowledge.count)):
                for side in (1.0, -1.0):
                    found = units.of(primary, attacker, side, suppressed)
                    if found is None:
                        continue
                    found_some += 1
                    cells, d = found
                    table = np.zeros(problem.cells)
                    table[cells] = d
                    assert table[primary] == side
                    assert suppressed[cells].all()
                    assert not (problem.relations @ table).any()
                    fall, rise = knowledge.bounds(attacker, cells)
                    other = cells != primary
                    assert (d >= -fall)[other].all()
                    assert (d <= rise)[other].all()
    assert found_some > 20


@pytest.mark.parametrize("cheapest", [False, True])
def test_no_attacker_excludes_the_witnesses_and_some_attackers_share_them(*, cheapest: bool) -> None:
    shared = 0
    for kind, seed in product(KINDS_OF_TABLES, range(12)):
        problem = tiny_problem(kind, seed)
        if problem.sliding_level.any():
            continue
        knowledge = Knowledge(problem, ~problem.keep, KINDS)
        witnesses = Witnesses(problem, knowledge, cheapest=cheapest)
        pattern = Pattern(~problem.keep)
        for primary in np.flatnonzero(problem.primary).tolist():
            found, failed = witnesses.of(primary, pattern, thorough=2)
            if failed:
                continue
            groups = [group for attacker, group in found.items() if attacker != OUTSIDER]
            shared += len({id(group) for group in groups}) < len(groups)
            for attacker in set(range(knowledge.count)) - set(knowledge.knowing(primary).tolist()):
                group = found.get(attacker, found[OUTSIDER])
                mirrored = attacker not in found and len(group) == 1 and problem.lower_level[primary] > 0
                for one, side in product(group, (1, -1) if mirrored else (1,)):
                    other = one.cells != primary
                    fall, rise = (part[other] for part in knowledge.bounds(attacker, one.cells))
                    d, slack = side * one.deviations[other], 1e-6 * np.abs(one.deviations[other])
                    assert (d >= -fall - slack).all()
                    assert (d <= rise + slack).all()
    assert shared > 3
