"""Compilation of kernels ahead of time, once per machine: ``python -m microguard.sdc.precompile [PART ...]``.

A kernel that was not compiled ahead of time is compiled at its first call, by every worker of a cluster that
calls the kernel. Each part calls public functions on instances so small that only compilation takes time.
`sdc.kernels.compile` chooses the folder of the compiled code.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from microguard.sdc.algorithms.microaggregation import MICROAGGREGATION
from microguard.sdc.clusters.diversity import Diversity
from microguard.sdc.clusters.dominance import dominated
from microguard.sdc.clusters.weight_shares import spread
from microguard.sdc.cta import CellTable, adjust
from microguard.sdc.cta.annealing.quadratic_model import QuadraticModel
from microguard.sdc.cta.controlled_rounding.controlled_rounding import (
    controlled_rounding,
    with_adjacent_multiples,
)
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.default_kernels import clusters, link
from microguard.sdc.kernels.compile import forget_earlier
from microguard.sdc.microaggregation import individual_ranking, microaggregate
from microguard.sdc.nominal import anonymise, partition
from microguard.sdc.safe import safe
from microguard.sdc.stop import Deadline
from microguard.sdc.suppression import SuppressionProblem
from microguard.sdc.suppression.knowledge import OUTSIDER, Knowledge
from microguard.sdc.suppression.unit_witnesses import UnitWitnesses


def combinations() -> None:
    """Compile the kernels that `protect` uses by default for nominal records (key combinations)."""
    anonymise(_frame(), 3, 2, effort="fast")
    anonymise(_frame(), 3, 2, max_absolute_error={1: 5, 2: 5}, effort="fast")
    link(np.empty((3, 0)))


def microaggregation() -> None:
    """Compile the kernels of all microaggregation algorithms."""
    points, keys = np.random.default_rng(0).normal(size=(12, 2)), np.arange(12)
    for name, algorithm in MICROAGGREGATION.items():
        variables = 1 if name in ("univariate-optimal", "genetic") else 2
        for effort in algorithm.efforts:
            microaggregate(points[:, :variables], 3, algorithm=name, effort=effort)
    diversity = Diversity.of(keys[:, np.newaxis] % 3, 2)
    for effort in ("fast", "standard", "thorough"):
        microaggregate(points, 3, effort=effort, diversity=diversity)
    for method in ("optimal", "fixed-size", "k-ward", "genetic-average"):
        individual_ranking(points, 3, algorithm=method)
    spread(points, keys // 3, 1.0 + 9.0 * (keys % 3 == 0), 0.6)
    dominated(points[:, 0], keys // 3, 1, 85)


def nominal() -> None:
    """Compile the kernels of all algorithms for nominal records."""
    for name in ("own-hhg", "own-eec", "own-hhe", "chi-exact"):
        anonymise(_frame(), 3, 2, algorithm=name)
    partition(_frame(), 3)
    safe(_frame(), 3, 2, keep_records=True)


def tables() -> None:
    """Compile the kernels of all table algorithms, with start solutions by annealing and by belief
    propagation.
    """
    table = _table([0, 6, 12])
    problem = Problem.from_table(table, "at-least")
    model = QuadraticModel.for_problem(problem)  # belief propagation is used in three and more dimensions
    model.refine(np.zeros(problem.size, dtype=np.int8), 1, 0, Deadline.after(None))
    for name in ("local-search", "learning", "hybrid-swaps", "exact"):
        adjust(table, algorithm=name, effort="fast")
    adjust(_table([0, 1, 2, 5, 6, 7, 10, 11, 12, 15]), algorithm="local-search", effort="fast")
    names = [str(cell) for cell in range(table.cells)]
    controlled_rounding(with_adjacent_multiples(table, 1000), 1000, bytes(32), names)
    levels = table.lower_protection, table.upper_protection
    suppression = SuppressionProblem(table.values, table.relations, table.sensitive, *levels)
    outsider = Knowledge(suppression, ~suppression.keep, ("outsider",))
    everything = np.ones(table.cells, dtype=bool)
    UnitWitnesses(suppression.relations, outsider).of(0, OUTSIDER, 0.2, everything)


PARTS: dict[str, Callable[[], None]] = {
    part.__name__: part for part in (clusters, combinations, microaggregation, nominal, tables)
}


def precompile(parts: Sequence[str] = ()) -> None:
    """Compile all kernels of the named parts (default: all) for the argument types of their callers."""
    for name in parts or PARTS:
        PARTS[name]()
    forget_earlier()


def _frame() -> pd.DataFrame:
    codes = np.random.default_rng(0).integers(0, 3, (30, 3))
    return pd.DataFrame(codes, columns=["a", "b", "c"])


def _table(cells: Sequence[int]) -> CellTable:
    """Return a 4 x 4 table with its totals; the cells at the given positions are sensitive."""
    inner = np.arange(1.0, 17.0).reshape(4, 4)
    whole = np.block([[inner, inner.sum(1, keepdims=True)], [inner.sum(0, keepdims=True), inner.sum()]])
    size = whole.shape[0]
    position = np.arange(whole.size).reshape(whole.shape)
    lines = [*position, *position.T]
    relations = np.zeros((len(lines), whole.size))
    for row, line in enumerate(lines):
        relations[row, line] = [1] * (size - 1) + [-1]
    values = whole.ravel()
    sensitive = np.isin(np.arange(whole.size), cells)
    return CellTable(
        values=values,
        relations=relations,
        sensitive=sensitive,
        lower_protection=np.where(sensitive, 0.2 * values, 0),
        upper_protection=np.where(sensitive, 0.2 * values, 0),
        lower_capacity=values,
        upper_capacity=values,
        costs=np.ones(whole.size),
    )


if __name__ == "__main__":
    logging.getLogger("microguard").setLevel(logging.ERROR)  # suppress the log message about compilation
    precompile(sys.argv[1:])
