"""Risks of the records of each household, combined in the same pass as the statistics of classes.

An intruder who identifies one member has identified the whole household, so the risk of a household is the
probability of identifying any of its records (Hundepool et al. 2012, section 3.3.4). The risk is exact, over
all households of a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from microguard.pipelines.measures.by_class import CLASS, WEIGHT, by_class
from microguard.sdc.risk.individual import class_risk
from pyspark.sql import DataFrame, Row

HOUSEHOLD = "household"
_IS_HOUSEHOLD, _MISSED = "is_household", "missed"
_FOUND = ("households", "expected", "largest")
Work = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]


@dataclass(frozen=True)
class Households:
    """Risk of the households of a file.

    Attributes
    ----------
    households : int
    expected : float
        Expected number of households that an intruder who knows everybody's values identifies: the sum of the
        risks.
    largest : float
        Risk of the most exposed household.
    """

    households: int
    expected: float
    largest: float


def by_class_and_household(frame: DataFrame, records: int, work: Work, schema: str) -> list[Row]:
    """Return the rows of `by_class` for a frame with the column `HOUSEHOLD`, and additional rows for
    `households_in`.

    The records of a household are in several classes. A second shuffle sums one number for each household and
    task; the rows of `work` pass through this shuffle unchanged.
    """
    parts = by_class(
        frame,
        records,
        _WithMissed(work),
        f"{schema}, {_IS_HOUSEHOLD} boolean, {CLASS} bigint, {_MISSED} double",
    )
    numbers = f"{_FOUND[0]} bigint, {_FOUND[1]} double, {_FOUND[2]} double"
    return by_class(parts, records, _found, f"{schema}, {_IS_HOUSEHOLD} boolean, {numbers}").collect()


def split(rows: Sequence[Row]) -> tuple[list[Row], Households]:
    """Separate the rows of `by_class_and_household` into the rows of classes and the risk of households."""
    found = [row for row in rows if row[_IS_HOUSEHOLD]]
    risk = Households(
        sum(row[_FOUND[0]] for row in found),
        sum(row[_FOUND[1]] for row in found),
        max((row[_FOUND[2]] for row in found), default=0.0),
    )
    return [row for row in rows if not row[_IS_HOUSEHOLD]], risk


@dataclass(frozen=True)
class _WithMissed:
    """Function that returns the row of another function, followed by a row for each household of the task.

    The household row has the logarithm of the probability that none of the household's records is identified.
    """

    work: Work

    def __call__(self, columns: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        line = self.work(columns)
        _, place, members = np.unique(columns[CLASS], return_inverse=True, return_counts=True)
        risk = 1.0 / members
        if WEIGHT in columns:
            risk = class_risk(members, np.bincount(place, columns[WEIGHT]))
        # the household is identified with certainty, so the logarithm is minus infinity
        with np.errstate(divide="ignore"):
            missed = np.log1p(-risk)[place]
        households, home = np.unique(columns[HOUSEHOLD], return_inverse=True)
        rows = {name: _padded(values, len(households), after=True) for name, values in line.items()}
        return {
            **rows,
            _IS_HOUSEHOLD: np.repeat([False, True], [1, len(households)]),
            CLASS: _padded(households, 1),
            _MISSED: _padded(np.bincount(home, missed), 1),
        }


def _found(columns: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """Return the rows of classes unchanged, and one row with the complete households and their risks."""
    of_household = columns[_IS_HOUSEHOLD].astype(bool)
    _, home = np.unique(columns[CLASS][of_household], return_inverse=True)
    risk = -np.expm1(np.bincount(home, columns[_MISSED][of_household]))
    found = dict(zip(_FOUND, (len(risk), risk.sum(), risk.max(initial=0.0)), strict=True))
    lines = np.count_nonzero(~of_household)
    rows = {
        name: _padded(values[~of_household], 1, after=True)
        for name, values in columns.items()
        if name not in (CLASS, _MISSED)
    }
    rows[_IS_HOUSEHOLD][-1] = True
    return rows | {name: np.append(np.zeros(lines, type(value)), value) for name, value in found.items()}


def _padded(values: np.ndarray, rows: int, after: bool = False) -> np.ndarray:
    """Return the values padded with `count` zeros before or after them."""
    zeros = np.zeros(rows, values.dtype)
    return np.concatenate([values, zeros] if after else [zeros, values])
