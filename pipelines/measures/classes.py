"""Compute the statistics of all equivalence classes of a file in one pass.

A class holds the records that are equal on some variables. After one shuffle a task has every record of its
classes in memory (`pipelines.measures.by_class`). It counts them and returns one row.

Distinct and entropy l-diversity (Machanavajjhala et al. 2007) and t-closeness with equal ground distance
(Li, Li and Venkatasubramanian 2007); individual risk by Benedetti and Franconi 1998.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.row_hash import content_of
from microguard.pipelines.intake.category_normalisation import with_code_and_share
from microguard.pipelines.intake.numeric_parsing import Range
from microguard.pipelines.measures.by_class import CLASS, WEIGHT, by_class, class_hash
from microguard.schemas.specification.model import Specification
from microguard.sdc.risk.individual import class_risk
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as f

if TYPE_CHECKING:
    from microguard.pipelines.measures.households import Households

#: Significant decimals of sums, as Spark decides the order of summation.
DIGITS = 9

#: Code of a missing value among hashes of values.
MISSING = -(1 << 63)
#: Least number of distinct values in a task that has no class with values.
NO_CLASS = (1 << 63) - 1
_COUNTS = ("records", "classes", "classes_below_k", "records_below_k", "uniques")
_HOLDER = "holder"
#: Two sensitive numbers are one value if they differ by less than this share of the number and of its range.
CLOSE = 0.01


@dataclass(frozen=True)
class Risk:
    """Count the combinations of some variables.

    Attributes
    ----------
    records, classes : int
        Records, and distinct combinations of them.
    classes_below_k, records_below_k : int
        Combinations held by fewer than k units, and their records.
    uniques : int
        Combinations held by one unit.
    smallest : int
        Units of the rarest combination; 0 where there are no records.
    """

    records: int
    classes: int
    classes_below_k: int
    records_below_k: int
    uniques: int
    smallest: int


@dataclass(frozen=True)
class Homogeneity:
    """Statistics of one sensitive variable within the classes.

    Attributes
    ----------
    records, homogeneous : int
        Records, and those in classes with one value of the variable at most, or numbers that are `CLOSE`.
    least_distinct : int
        Of the values of a class.
    least_entropy_diversity : float
        Least exp(entropy) of a class: 1 where it is homogeneous.
    largest_t : float
        Largest total variation distance between a class and the whole file.
    guessed : int or None
        Records whose value is the most frequent of their class: what guessing by the class attains. None in
        the evidence of earlier versions.
    """

    records: int
    homogeneous: int
    least_distinct: int
    least_entropy_diversity: float
    largest_t: float
    guessed: int | None = None


@dataclass(frozen=True)
class Classes:
    """Statistics of the classes of a file.

    Attributes
    ----------
    risk : Risk
    identified : float
        Records that an intruder who knows everybody's values is expected to identify: the sum of their
        individual risks, by the sampling weights where there are any.
    most_exposed : float
        Risk of the most exposed record.
    alone : tuple of int
        For each list of further columns the records that no other unit's equals on them and on the class.
    homogeneity : mapping of sensitive variable to Homogeneity
    households : Households or None
    """

    risk: Risk
    identified: float
    most_exposed: float
    alone: tuple[int, ...] = ()
    homogeneity: Mapping[str, Homogeneity] = field(default_factory=dict)
    households: Households | None = None


def classes_of(
    frame: DataFrame,
    names: Sequence[str],
    specification: Specification,
    records: int,
    *,
    further: Sequence[Sequence[str]] = (),
    sensitive: Sequence[str] = (),
    numbers: Mapping[str, Column] | None = None,
    apart: Mapping[str, float] | None = None,
    whole: DataFrame | None = None,
    household: str | None = None,
) -> Classes:
    """Compute the statistics of the classes of a frame.

    NULL, NaN and -0.0 count as one value each (-0.0 as 0.0). All spellings of a sensitive text are one value,
    and NULL is no value. Classes are compared by hashes; the guarantee is counted on the written files
    without them.

    Parameters
    ----------
    frame : DataFrame
    names : sequence of str
        What the records of a class are equal on.
    specification : Specification
        k, what it counts, and the sampling weight.
    records : int
        Of the frame.
    further : sequence of lists of columns
        For `Classes.alone`.
    sensitive : sequence of str
        For `Classes.homogeneity`.
    numbers : mapping of name to double column
        Those of them that are magnitudes.
    apart : mapping of name to float, optional
        Largest difference of numbers that are `CLOSE`, of each in `numbers`; computed without it.
    whole : DataFrame, optional
        Records with the same sensitive values, from which their shares are counted; by default `frame`.
    household : str, optional
        For `Classes.households`.
    """
    numbers = numbers or {}
    columns = [class_hash(names)]
    if specification.counted is not None:
        columns.append(f.xxhash64(*content_of([specification.counted])).alias(_HOLDER))
    if specification.weight is not None:
        columns.append(column(specification.weight).cast("double").alias(WEIGHT))
    columns += [
        f.xxhash64(*content_of([*names, *each])).alias(f"further{i}") for i, each in enumerate(further)
    ]
    for i, name in enumerate(sensitive):
        of_file = frame if whole is None else whole
        frame = with_code_and_share(frame, name, f"__value{i}", f"__share{i}", of_file, records)
        columns += [f.coalesce(f.col(f"__value{i}"), f.lit(MISSING)).alias(f"value{i}")]
        columns += [f.col(f"__share{i}").alias(f"share{i}")]
        if name in numbers:
            missing = f.lit(float("nan"))
            columns += [f.coalesce(numbers[name], missing).alias(f"number{i}")]
    apart = close(frame, numbers) if apart is None else apart
    places = {i: apart[name] for i, name in enumerate(sensitive) if name in apart}
    look = _Look(
        specification.release.k, len(further), len(sensitive), places, specification.withholds_values
    )
    if household is None:
        lines = by_class(frame.select(*columns), records, look, look.schema).collect()
        return _together(lines, len(further), sensitive)
    from microguard.pipelines.measures.households import HOUSEHOLD, by_class_and_household, split

    columns.append(f.xxhash64(column(household)).alias(HOUSEHOLD))
    rows = by_class_and_household(frame.select(*columns), records, look, look.schema)
    lines, households = split(rows)
    return replace(_together(lines, len(further), sensitive), households=households)


def close(frame: DataFrame, numbers: Mapping[str, Column]) -> dict[str, float]:
    """Return by variable the largest difference of numbers that are `CLOSE` in the file."""
    ranges = [(f.max(each) - f.min(each)).alias(str(i)) for i, each in enumerate(numbers.values())]
    row = frame.agg(*ranges).first() if ranges else None
    return {} if row is None else {name: CLOSE * (row[str(i)] or 0.0) for i, name in enumerate(numbers)}


def close_within(ranges: Mapping[str, Range], names: Collection[str]) -> dict[str, float]:
    """Return the codes of `close` for variables whose ranges are known."""
    return {name: CLOSE * ((ranges[name].largest or 0.0) - (ranges[name].smallest or 0.0)) for name in names}


@dataclass(frozen=True)
class _Look:
    """Compute the statistics of the classes of one task, as one row."""

    k: int
    further: int
    sensitive: int
    close: Mapping[int, float]
    withholds: bool = False

    @property
    def columns(self) -> dict[str, str]:
        """Return the type of each column of the row, in their order."""
        counts, figures = [*_COUNTS, "smallest"], ["identified", "most_exposed"]
        counts += [f"alone{i}" for i in range(self.further)]
        for i in range(self.sensitive):
            counts += [f"homogeneous{i}", f"guessed{i}", f"distinct{i}"]
            figures += [f"entropy{i}", f"t{i}"]
        return dict.fromkeys(counts, "bigint") | dict.fromkeys(figures, "double")

    @property
    def schema(self) -> str:
        return ", ".join(f"{name} {kind}" for name, kind in self.columns.items())

    def __call__(self, columns: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        _, place, members = np.unique(columns[CLASS], return_inverse=True, return_counts=True)
        units = _holders(place, columns[_HOLDER]) if _HOLDER in columns else members
        if WEIGHT in columns:
            risk = class_risk(members, np.bincount(place, columns[WEIGHT]))
        else:
            risk = 1.0 / members
        rare = units < self.k
        line = {
            "records": len(place),
            "classes": len(members),
            "classes_below_k": np.count_nonzero(rare),
            "records_below_k": members[rare].sum(),
            "uniques": np.count_nonzero(units == 1),
            "smallest": units.min(),
            "identified": np.sum(members * risk),
            "most_exposed": risk.max(),
        }
        for i in range(self.further):
            line[f"alone{i}"] = _once(columns[f"further{i}"], columns.get(_HOLDER))
        for i in range(self.sensitive):
            value, share = columns[f"value{i}"], columns[f"share{i}"]
            shown = np.ones(len(place), bool)
            if self.withholds:
                shown = (np.bincount(place, value != MISSING) > 0)[place]
            one, given_away = _given_away(place[shown], value[shown], share[shown], len(members))
            if i in self.close:
                one = one | _close_together(place, columns[f"number{i}"], self.close[i])
            given_away["homogeneous"] = members[one].sum()
            line |= {f"{name}{i}": value for name, value in given_away.items()}
        return {name: np.array([line[name]]) for name in self.columns}


def _holders(place: np.ndarray, holder: np.ndarray) -> np.ndarray:
    """Count the different holders of each class, (m,)."""
    order = np.lexsort((holder, place))
    classes, holders = place[order], holder[order]
    fresh = np.concatenate([[True], (classes[1:] != classes[:-1]) | (holders[1:] != holders[:-1])])
    return np.bincount(classes[fresh])


def _once(hashes: np.ndarray, holder: np.ndarray | None) -> int:
    """Count records whose hash occurs once or at one holder only: repeated records of a holder do not hide
    it.
    """
    if holder is not None:
        _, place, members = np.unique(hashes, return_inverse=True, return_counts=True)
        return int(members[_holders(place, holder) == 1].sum())
    ordered = np.sort(hashes)
    fresh = np.concatenate([[True], ordered[1:] != ordered[:-1], [True]])
    return int(np.count_nonzero(fresh[1:] & fresh[:-1]))


def _given_away(
    place: np.ndarray, value: np.ndarray, share: np.ndarray, classes_of_task: int
) -> tuple[np.ndarray, dict[str, float]]:
    """Return the classes with at most one value of a sensitive variable, (m,), and the statistics of all.

    A missing value is no value. Classes without records, whose values are withheld, have no part in either.
    """
    homogeneous = np.zeros(classes_of_task, bool)
    if len(place) == 0:
        return homogeneous, {"guessed": 0, "distinct": NO_CLASS, "entropy": math.inf, "t": 0.0}
    order = np.lexsort((value, place))
    classes, values, shares = place[order], value[order], share[order]
    fresh = np.concatenate([[True], classes[1:] != classes[:-1]])
    cells = np.flatnonzero(fresh | np.concatenate([[True], values[1:] != values[:-1]]))
    n = np.diff(cells, append=len(order))
    starts = np.flatnonzero(fresh[cells])  # positions of the first cell of each class
    members, of_class = np.add.reduceat(n, starts), np.diff(starts, append=len(n))
    distinct = np.add.reduceat((values[cells] != MISSING).astype(np.int64), starts)
    entropy = np.log(members) - np.add.reduceat(n * np.log(n), starts) / members
    excess = np.maximum(0.0, n / np.repeat(members, of_class) - shares[cells])
    homogeneous[classes[cells[starts]]] = distinct <= 1
    return homogeneous, {
        "guessed": np.maximum.reduceat(n, starts).sum(),
        "distinct": distinct.min(),
        "entropy": entropy.min(),
        "t": np.add.reduceat(excess, starts).max(),
    }


def _close_together(place: np.ndarray, number: np.ndarray, close: float) -> np.ndarray:
    """Return the classes whose known numbers are `CLOSE` to each other, (m,) bool."""
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    least, most = (each.reduceat(number[order], starts) for each in (np.fmin, np.fmax))
    of_number = CLOSE * np.maximum(np.abs(least), np.abs(most))
    return np.asarray((most - least < close) & (most - least <= of_number))


def _together(lines: Sequence[Row], further: int, sensitive: Sequence[str]) -> Classes:
    """Combine the rows of all tasks."""
    counts = {name: sum(line[name] for line in lines) for name in _COUNTS}
    shown = [[line for line in lines if line[f"distinct{i}"] < NO_CLASS] for i in range(len(sensitive))]
    return Classes(
        risk=Risk(**counts, smallest=min((line["smallest"] for line in lines), default=0)),
        identified=float(sum(line["identified"] for line in lines)),
        most_exposed=max((line["most_exposed"] for line in lines), default=0.0),
        alone=tuple(sum(line[f"alone{i}"] for line in lines) for i in range(further)),
        homogeneity={
            name: Homogeneity(
                records=counts["records"],
                homogeneous=sum(line[f"homogeneous{i}"] for line in lines),
                least_distinct=min((line[f"distinct{i}"] for line in shown[i]), default=0),
                least_entropy_diversity=round(
                    math.exp(min((line[f"entropy{i}"] for line in shown[i]), default=0.0)), DIGITS
                ),
                largest_t=round(max((line[f"t{i}"] for line in lines), default=0.0), DIGITS),
                guessed=sum(line[f"guessed{i}"] for line in lines),
            )
            for i, name in enumerate(sensitive)
        },
    )
