"""Statistics of all equivalence classes of a file, computed in one pass.

A class contains the records that are equal in some variables. After one shuffle a task has every record of
its classes in memory (`pipelines.measures.by_class`). The task counts the records and returns one row.

The statistics are distinct and entropy l-diversity (Machanavajjhala et al. 2007), t-closeness with equal
ground distance (Li, Li and Venkatasubramanian 2007), and the individual risk of Benedetti and Franconi
(1998).
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

#: Significant decimals of sums; more would depend on Spark's order of summation.
DIGITS = 9

#: Code of a missing value among the hashes of values.
MISSING = -(1 << 63)
#: Minimum number of distinct values reported by a task in which no class has values.
NO_CLASS = (1 << 63) - 1
_COUNTS = ("records", "classes", "classes_below_k", "records_below_k", "uniques")
_HOLDER = "holder"
#: Maximum relative difference, of the number and of its range, between sensitive numbers that count as one
#: value.
CLOSE = 0.01


@dataclass(frozen=True)
class Risk:
    """Risk counts of the combinations of some variables.

    Attributes
    ----------
    records, classes : int
        Number of records, and of their distinct combinations.
    classes_below_k, records_below_k : int
        Combinations of fewer than k units, and the records with these combinations.
    uniques : int
        Combinations of a single unit.
    smallest : int
        Units of the rarest combination; 0 without records.
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
        Records, and records in classes with at most one value of the variable, or with numbers that are all
        `CLOSE`.
    least_distinct : int
        Smallest number of distinct values in a class.
    least_entropy_diversity : float
        Smallest exp(entropy) of a class: 1 for a homogeneous class.
    largest_t : float
        Largest total variation distance between a class and the whole file.
    guessed : int or None
        Records that have the most frequent value of their class, which is the number of right guesses by
        class. None in the evidence of earlier versions.
    known, once : int or None
        Records with a value, and those whose value no other unit of the file has. None in the evidence of
        earlier versions.
    values : int or None
        Distinct values of the records. None in the evidence of earlier versions.
    """

    records: int
    homogeneous: int
    least_distinct: int
    least_entropy_diversity: float
    largest_t: float
    guessed: int | None = None
    known: int | None = None
    once: int | None = None
    values: int | None = None


@dataclass(frozen=True)
class Classes:
    """Statistics of the equivalence classes of a file.

    Attributes
    ----------
    risk : Risk
    identified : float
        Expected number of records that an intruder who knows everybody's values identifies: the sum of the
        individual risks, with the sampling weights if there are any.
    most_exposed : float
        Risk of the most exposed record.
    alone : tuple of int
        For each list of further columns, the number of records that are unique by unit in these columns and
        the class.
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
    """Compute the statistics of the equivalence classes of a frame.

    NULL, NaN and -0.0 count as one value each (-0.0 as 0.0). All spellings of a sensitive text are one value,
    and NULL is no value. Classes are compared by hashes; the guarantee is counted on the written files
    without them.

    Parameters
    ----------
    frame : DataFrame
    names : sequence of str
        Variables in which the records of a class are equal.
    specification : Specification
        Provides k, the unit that k counts, and the sampling weight.
    records : int
        Number of records of the frame.
    further : sequence of lists of columns
        Lists of columns for `Classes.alone`.
    sensitive : sequence of str
        Variables for `Classes.homogeneity`.
    numbers : mapping of name to double column
        The sensitive variables that are magnitudes.
    apart : mapping of name to float, optional
        Largest difference of numbers that count as `CLOSE`, for each variable in `numbers`; by default
        computed.
    whole : DataFrame, optional
        Records with the same sensitive values, from which their shares are counted; by default `frame`.
    household : str, optional
        Household column for `Classes.households`.
    """
    numbers = numbers or {}
    columns, unit = [class_hash(names)], None
    if specification.counted is not None:
        unit = f.xxhash64(*content_of([specification.counted]))
        columns.append(unit.alias(_HOLDER))
    if specification.weight is not None:
        columns.append(column(specification.weight).cast("double").alias(WEIGHT))
    columns += [
        f.xxhash64(*content_of([*names, *each])).alias(f"further{i}") for i, each in enumerate(further)
    ]
    for i, name in enumerate(sensitive):
        of_file = frame if whole is None else whole
        added = (f"__value{i}", f"__share{i}", f"__sole{i}")
        frame = with_code_and_share(frame, name, *added, of_file, records, unit)
        columns += [f.coalesce(f.col(f"__value{i}"), f.lit(MISSING)).alias(f"value{i}")]
        columns += [f.col(f"__share{i}").alias(f"share{i}"), f.col(f"__sole{i}").alias(f"sole{i}")]
        if name in numbers:
            missing = f.lit(float("nan"))
            columns += [f.coalesce(numbers[name], missing).alias(f"number{i}")]
    apart = close(frame, numbers) if apart is None else apart
    places = {i: apart[name] for i, name in enumerate(sensitive) if name in apart}
    k, withholds = specification.release.k, specification.withholds_values
    look = _Look(k, len(further), len(sensitive), places, withholds, records)
    if household is None:
        lines = by_class(frame.select(*columns), records, look, look.schema).collect()
        return _together(lines, len(further), sensitive)
    from microguard.pipelines.measures.households import HOUSEHOLD, by_class_and_household, split

    columns.append(f.xxhash64(column(household)).alias(HOUSEHOLD))
    rows = by_class_and_household(frame.select(*columns), records, look, look.schema)
    lines, households = split(rows)
    return replace(_together(lines, len(further), sensitive), households=households)


def close(frame: DataFrame, numbers: Mapping[str, Column]) -> dict[str, float]:
    """Return for each variable the largest difference of numbers that count as `CLOSE` in the file."""
    ranges = [(f.max(each) - f.min(each)).alias(str(i)) for i, each in enumerate(numbers.values())]
    row = frame.agg(*ranges).first() if ranges else None
    return {} if row is None else {name: CLOSE * (row[str(i)] or 0.0) for i, name in enumerate(numbers)}


def close_within(ranges: Mapping[str, Range], names: Collection[str]) -> dict[str, float]:
    """Return the result of `close` for variables whose ranges are known."""
    return {name: CLOSE * ((ranges[name].largest or 0.0) - (ranges[name].smallest or 0.0)) for name in names}


@dataclass(frozen=True)
class _Look:
    """Statistics of the classes of one task, computed as one row."""

    k: int
    further: int
    sensitive: int
    close: Mapping[int, float]
    withholds: bool = False
    of_file: int = 0

    @property
    def columns(self) -> dict[str, str]:
        """Return the type of each column of the row, in order."""
        counts, figures = [*_COUNTS, "smallest"], ["identified", "most_exposed"]
        counts += [f"alone{i}" for i in range(self.further)]
        for i in range(self.sensitive):
            counts += [f"{name}{i}" for name in ("homogeneous", "guessed", "distinct", "known", "once")]
            figures += [f"entropy{i}", f"t{i}", f"values{i}"]
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
            known = value != MISSING
            given_away["known"] = int(np.count_nonzero(known))
            given_away["once"] = int(np.count_nonzero(columns[f"sole{i}"][known]))
            given_away["values"] = float(np.sum(1 / (share[known] * self.of_file)))  # a share is n / of_file
            line |= {f"{name}{i}": value for name, value in given_away.items()}
        return {name: np.array([line[name]]) for name in self.columns}


def _holders(place: np.ndarray, holder: np.ndarray) -> np.ndarray:
    """Count the distinct units in each class, (m,)."""
    order = np.lexsort((holder, place))
    classes, holders = place[order], holder[order]
    fresh = np.concatenate([[True], (classes[1:] != classes[:-1]) | (holders[1:] != holders[:-1])])
    return np.bincount(classes[fresh])


def _once(hashes: np.ndarray, holder: np.ndarray | None) -> int:
    """Count the records whose hash occurs only once, or for one unit only (repeated records of a unit count
    as one).
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
    """Return for each class whether a sensitive variable has at most one value in it, (m,), and the
    statistics of all classes.

    A missing value is not a value. Classes without records, whose values are withheld, are not included in
    either result.
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
    """Return for each class whether its known numbers are `CLOSE` to each other, (m,) bool."""
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    least, most = (each.reduceat(number[order], starts) for each in (np.fmin, np.fmax))
    of_number = CLOSE * np.maximum(np.abs(least), np.abs(most))
    return np.asarray((most - least < close) & (most - least <= of_number))


def _together(lines: Sequence[Row], further: int, sensitive: Sequence[str]) -> Classes:
    """Combine the rows of all tasks into the statistics of the file."""
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
                known=sum(line[f"known{i}"] for line in lines),
                once=sum(line[f"once{i}"] for line in lines),
                values=math.floor(round(sum(line[f"values{i}"] for line in lines), DIGITS)),
            )
            for i, name in enumerate(sensitive)
        },
    )
