"""Algorithms that a specification may choose: the rows of `sdc.algorithms`, by strategy.

A specification is refused when it is read if the row of the algorithm does not support its options.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from microguard.sdc.algorithms.algorithm import EFFORTS, UNPROVED, Algorithm, Effort
from microguard.sdc.algorithms.microaggregation import MICROAGGREGATION
from microguard.sdc.algorithms.nominal import FREQUENCY
from microguard.sdc.algorithms.safe import SAFE

Representative = Literal["auto", "mean", "median", "medoid", "control_tables", "mode"]
Unit = Literal["record", "household", "unit"]
Kinds = Literal["nominal", "numeric", "mixed"]
"""Kinds of the quasi-identifiers that are clustered together."""
Strategy = Literal["microaggregation", "frequency", "safe", "other"]
"""Protection strategy of a clustering: clusters of records, or frequencies of key combinations protected by a
search, a program or SAFE. "other" is a third-party method, which has no clusterings."""

ALGORITHMS: Mapping[Strategy, Mapping[str, Algorithm]] = {
    "microaggregation": MICROAGGREGATION,
    "frequency": FREQUENCY,
    "safe": SAFE,
}
STRATEGIES: Mapping[str, tuple[Strategy, ...]] = {
    "microaggregation": ("microaggregation", "frequency"),
    "safe": ("safe",),
}
"""Strategies of each method."""

REPRESENTATIVES: dict[Kinds, tuple[str, ...]] = {
    "numeric": ("auto", "mean", "median", "medoid"),
    "nominal": ("auto", "control_tables", "mode", "medoid"),
    "mixed": ("auto", "mean", "median", "medoid", "mode"),
}
"""Values that may be published for a cluster."""
BY_CONTROL_TABLES: tuple[str, ...] = ("auto", "control_tables")
"""Representatives of nominal variables that are chosen by the errors of control tables, without clusters."""

MAX_RECORDS_BY_EFFORT: dict[Effort, int] = {
    "fast": 100_000,
    "standard": 100_000,
    "thorough": 5_000,
    "exact": 200,
}
"""Maximum number of records of a block if blocking.max_records is "auto"."""


def algorithms(strategy: Strategy, kinds: Kinds, variables: int, weighted: bool = False) -> tuple[str, ...]:
    """Return the names that `method.algorithm` may have for this number of quasi-identifiers, "auto" first.

    If the records are `weighted`, return only algorithms that use weights.
    """
    able = (
        name
        for name, row in ALGORITHMS[strategy].items()
        if (row.nominal or kinds == "numeric")
        and (variables == 1 or not row.one_variable)
        and (row.record_weights or not weighted)
    )
    return ("auto", *able)


def all_algorithms(method: str) -> tuple[str, ...]:
    """Return all algorithm names of a method, "auto" first."""
    return ("auto", *dict.fromkeys(name for each in STRATEGIES[method] for name in ALGORITHMS[each]))


def efforts(strategy: Strategy, algorithm: str, weighted: bool = False) -> tuple[Effort, ...]:
    """Return the efforts of an algorithm.

    For "auto", an effort is included if some algorithm supports it and the weights.
    """
    if algorithm != "auto":
        return ALGORITHMS[strategy][algorithm].efforts
    return UNPROVED if weighted else EFFORTS


def max_records(strategy: Strategy, algorithm: str, effort: Effort) -> int:
    """Return the maximum number of records of a block if blocking.max_records is "auto"."""
    most = MAX_RECORDS_BY_EFFORT[effort]
    row = ALGORITHMS.get(strategy, {}).get(algorithm)
    return most if row is None or row.max_records is None else min(most, row.max_records)


def rows_taken(method: str, algorithm: str) -> tuple[Algorithm, ...]:
    """Return the registry rows that an algorithm's name, or "auto", can select."""
    tables = [ALGORITHMS[strategy] for strategy in STRATEGIES[method]]
    if algorithm == "auto":
        return tuple(row for table in tables for row in table.values())
    return tuple(table[algorithm] for table in tables if algorithm in table)
