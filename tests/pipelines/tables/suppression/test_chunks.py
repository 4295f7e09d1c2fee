"""Patterns, intervals and counts do not depend on where and in which order chunks are computed."""

from __future__ import annotations

import pickle
from dataclasses import fields
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.guarantees import feasible_intervals
from microguard.pipelines.guarantees.feasible_intervals import too_narrow
from microguard.pipelines.guarantees.original_cells import Contributed, OriginalCells
from microguard.pipelines.tables.chunks_in_tasks import mapper_of
from microguard.sdc.errors import SolverFailed
from microguard.sdc.suppression import KINDS, SuppressionProblem, audit, in_turn, suppress

from tests.benchmarks.tabular.suppression_tables import generated_problem

AUDIT = import_module("microguard.sdc.suppression.audit")


@pytest.fixture
def many_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AUDIT, "_CHUNK", 4)
    monkeypatch.setattr(feasible_intervals, "_READERS", 4)
    monkeypatch.setattr(feasible_intervals, "_CONTRIBUTORS", 4)


@pytest.fixture(scope="module")
def problem() -> SuppressionProblem:
    return generated_problem([(3, 3), (3,)], 200, seed=1)


def backwards(function: Any, chunks: Any) -> list[Any]:
    """Compute the last chunk first, each by a copy of the function."""
    return [pickle.loads(pickle.dumps(function))(chunk) for chunk in reversed(chunks)][::-1]


def original(problem: SuppressionProblem) -> OriginalCells:
    given = problem.contributions
    assert given is not None
    return OriginalCells(
        pd.DataFrame(),
        np.array(problem.values),
        np.array(problem.lower_level),
        np.array(problem.upper_level),
        np.array(problem.primary),
        problem.values - problem.lower_bound,
        problem.upper_bound - problem.values,
        contributed=Contributed(given.cell, given.unit, given.amount),
    )


def everything(problem: SuppressionProblem, mapper: Any) -> list[Any]:
    """Return the pattern, its audit, and the audit and the count of a pattern that does not protect."""
    found = suppress(problem, effort="fast", mapper=mapper)
    bare = audit(problem, problem.must, mapper=mapper)
    counts = [
        too_narrow(problem.relations, hidden, original(problem), kinds, mapper)
        for hidden in (found.suppressed, problem.must)
        for kinds in (KINDS, KINDS[:1])
    ]
    audits = [getattr(one, field.name) for one in (found.audit, bare) for field in fields(one)]
    return [found.suppressed, found.cost, found.lower_bound, *audits, *counts]


def assert_same(ones: list[Any], others: list[Any]) -> None:
    assert len(ones) == len(others)
    for one, other in zip(ones, others, strict=True):
        assert np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other


@pytest.mark.usefixtures("many_chunks")
def test_results_are_the_same_in_any_order_of_chunks_and_by_copies(problem: SuppressionProblem) -> None:
    chunks: list[int] = []

    def counted(function: Any, parts: Any) -> list[Any]:
        chunks.append(len(parts))
        return backwards(function, parts)

    assert_same(everything(problem, in_turn), everything(problem, counted))
    assert min(chunks[:3]) > 1


@pytest.mark.spark
@pytest.mark.usefixtures("many_chunks")
def test_results_are_the_same_in_spark_tasks(spark: Any, problem: SuppressionProblem) -> None:
    assert_same(everything(problem, in_turn), everything(problem, mapper_of(spark)))


@pytest.mark.spark
def test_an_error_of_a_chunk_keeps_its_text(spark: Any) -> None:
    with pytest.raises(SolverFailed, match="cell 3 could not be solved"):
        mapper_of(spark)(_fails, [2, 3])


def _fails(cell: int) -> int:
    if cell == 3:
        raise SolverFailed(f"cell {cell} could not be solved")
    return cell


@pytest.mark.parametrize("seed", range(4))
def test_counts_are_those_of_single_cells_and_coalitions(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In chunks of one, no cell is served by the witness of another one."""
    problem = generated_problem([(3, 3), (3,)], 150, seed=seed)
    random = np.random.default_rng(seed)
    patterns = [problem.must | (random.random(problem.cells) < share) for share in (0.0, 0.3, 0.7)]

    def counts() -> list[dict[str, int]]:
        return [
            too_narrow(problem.relations, each, original(problem), kinds)
            for each in patterns
            for kinds in (KINDS, KINDS[:1])
        ]

    together = counts()
    for size in ("_READERS", "_CONTRIBUTORS"):
        monkeypatch.setattr(feasible_intervals, size, 1)
    assert together == counts()
    assert any(together[0].values())
