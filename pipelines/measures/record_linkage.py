"""Compute distance-based record linkage and interval disclosure, for an intruder who has the original
records.

For each sampled original record, one pass over all protected records of its region finds the nearest one
(Domingo-Ferrer and Torra 2001; Mateo-Sanz, Sebe and Domingo-Ferrer 2004).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.measure import Measure
from microguard.pipelines.measures.pairs import Pairs
from microguard.sdc.risk.linkage import Points, inside_interval, nearer_and_tied
from pyspark.sql import functions as f

#: Half-length of the disclosure interval in standard deviations.
WIDTH = 0.1
#: Number of the most frequent categories that are distinguished; all rarer categories count as one.
MOST_CATEGORIES = 20


@dataclass(frozen=True)
class RecordLinkage:
    """Sampled records that are linked, or whose value is in the disclosure interval.

    Attributes
    ----------
    sampled, of : int
    linked : float
        Expected share of records whose own protected record is the nearest; among t equally near records the
        intruder picks one at random.
    inside : mapping of numeric variable to share
        Share of values within `WIDTH` standard deviations of the published value.
    inside_all : float or None
        Share of records for which all numeric variables are inside; None without numeric variables.
    """

    sampled: int
    of: int
    linked: float
    inside: dict[str, float]
    inside_all: float | None


@dataclass(frozen=True)
class _Measure:
    """The distance between records: numbers in standard deviations, a mismatch of categories counts 1.

    Attributes
    ----------
    means, divisors : (p,) arrays
    categories : tuple of lists
        Frequent categories of each nominal variable; all others count as one further category.
    regions : list of str
        Regions with sampled records; records of other regions are not compared.
    """

    means: np.ndarray
    divisors: np.ndarray
    categories: tuple[list[str | None], ...]
    regions: list[str]

    def points(self, numbers: list[pa.Array], nominal: list[pa.Array], regions: pa.Array) -> Points:
        """Return the columns of records, (n,) each; a missing number becomes the mean."""
        columns = [np.asarray(column.to_numpy(zero_copy_only=False), np.float64) for column in numbers]
        codes = [_places_in(column, known) for column, known in zip(nominal, self.categories, strict=True)]
        where = _places_in(regions, self.regions)
        scaled = (_side_by_side(columns, len(where), np.float64) - self.means) / self.divisors
        return Points(
            np.nan_to_num(scaled, nan=0.0),
            _side_by_side(codes, len(where), np.int64),
            np.where(where < len(self.regions), where, -1),
        )


def _places_in(values: pa.Array, known: Sequence[str | None]) -> np.ndarray:
    """Return the position of each value among the known values; for unknown values their number."""
    places = pc.index_in(values, value_set=pa.array(known, pa.string()))
    return pc.fill_null(places, len(known)).to_numpy(zero_copy_only=False).astype(np.int64)


def _side_by_side(columns: Sequence[np.ndarray], rows: int, kind: type) -> np.ndarray:
    return np.column_stack(columns) if columns else np.empty((rows, 0), kind)


def _measure(pairs: Pairs, comparison: Comparison) -> _Measure:
    scales = [comparison.scales[name] for name in pairs.numeric]
    categories = []
    for place, values in enumerate(pairs.categories):
        counts = np.bincount(pairs.codes_before[:, place], minlength=len(values))
        frequent = np.argsort(-counts, kind="stable")[:MOST_CATEGORIES]
        categories.append([_text(values[code]) for code in frequent])
    return _Measure(
        np.array([scale.mean for scale in scales]),
        np.array([scale.divisor for scale in scales]),
        tuple(categories),
        list(map(str, pairs.region_names)),
    )


def _text(value: object) -> str | None:
    return None if value is None or value != value else str(value)


def _points(pairs: Pairs, measure: _Measure, before: bool) -> Points:
    numbers = pairs.numbers_before if before else pairs.numbers_after
    codes = pairs.codes_before if before else pairs.codes_after
    nominal = [
        pa.array([_text(value) for value in values], pa.string()).take(pa.array(codes[:, place]))
        for place, values in enumerate(pairs.categories)
    ]
    regions = pa.array(list(map(str, pairs.region_names)), pa.string()).take(pa.array(pairs.regions))
    return measure.points([pa.array(column) for column in numbers.T], nominal, regions)


@dataclass(frozen=True)
class _Linkage:
    """A `Summary` with one key: `nearer_and_tied` of the sampled records among all records of one pass.

    Attributes
    ----------
    measure : _Measure
    before : Points
        The sampled records before protection, (n,).
    own_distance : (n,) float array
        Distance of each sampled record to its own protected record.
    numbers, nominal : int
        Number of columns of each kind.
    """

    measure: _Measure
    before: Points
    own_distance: np.ndarray
    numbers: int
    nominal: int

    def begin(self) -> _TaskLinkage:
        """Return the result for no records."""
        return _TaskLinkage(self)

    def combined(self, parts: pa.Table) -> pa.Table:
        """Combine the results of tasks."""
        found = parts.group_by("at", use_threads=False).aggregate([("nearer", "any"), ("tied", "sum")])
        return found.sort_by("at")


class _TaskLinkage:
    """The numbers of nearer and tied records among the records that one task has read."""

    def __init__(self, linkage: _Linkage) -> None:
        self._linkage, n = linkage, len(linkage.own_distance)
        self._nearer, self._tied = np.zeros(n, dtype=bool), np.zeros(n, dtype=np.int64)

    def add(self, records: pa.Table) -> None:
        """Compare some records with the sampled records for which no nearer record was found yet."""
        linkage, columns = self._linkage, [each.combine_chunks() for each in records.columns]
        p, q = linkage.numbers, linkage.nominal
        places = linkage.measure.points(columns[:p], columns[p : p + q], columns[-1])
        left = np.flatnonzero(~self._nearer)
        closer, alike = nearer_and_tied(linkage.before[left], linkage.own_distance[left], places)
        self._nearer[left], self._tied[left] = closer, self._tied[left] + alike

    def parts(self) -> Iterator[tuple[int, pa.Table]]:
        """Return the result for each sampled record."""
        at = np.arange(len(self._tied))
        yield 0, pa.table({"at": at, "nearer": self._nearer, "tied": self._tied})


def _among_all(
    comparison: Comparison, pairs: Pairs, measure: _Measure, before: Points, own_distance: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return `nearer_and_tied` of the sampled records among all protected ones."""
    region = comparison.specification.region
    columns = {f"x{i}": column(name).cast("double") for i, name in enumerate(pairs.numeric)}
    columns |= {f"c{i}": column(name).cast("string") for i, name in enumerate(pairs.nominal)}
    columns["region"] = f.lit("") if region is None else column(region).cast("string")
    linkage = _Linkage(measure, before, own_distance, len(pairs.numeric), len(pairs.nominal))
    found = comparison.summary_of_protected(columns, linkage)[0]
    return found["nearer_any"].to_numpy(), found["tied_sum"].to_numpy()


class RecordLinkageMeasure(Measure[Comparison, RecordLinkage]):
    """Compute distance-based record linkage and interval disclosure."""

    name = "record_linkage"
    section = RecordLinkage

    def compute(self, comparison: Comparison) -> RecordLinkage | None:
        """Compute the section; None if the measure does not apply."""
        pairs = comparison.pairs
        if pairs is None:
            return None
        measure = _measure(pairs, comparison)
        before = _points(pairs, measure, before=True)
        own_distance = before.distances(_points(pairs, measure, before=False))
        nearer, tied = _among_all(comparison, pairs, measure, before, own_distance)
        inside = inside_interval(pairs.numbers_before, pairs.numbers_after, WIDTH) if pairs.numeric else None
        linked = np.sum(1.0 / np.maximum(tied[~nearer], 1)) / len(pairs)
        return RecordLinkage(
            sampled=len(pairs),
            of=pairs.of,
            linked=float(linked),
            inside={} if inside is None else dict(zip(pairs.numeric, map(float, inside), strict=False)),
            inside_all=None if inside is None else float(inside[-1]),
        )

    def attacks(self, section: RecordLinkage, k: int) -> Iterator[tuple[float, str]]:
        """Return the shares of records that attackers identify or infer, with sentences."""
        yield (
            section.linked,
            "An attacker who has the original records and takes the nearest published record finds the "
            f"correct one in {100 * section.linked:.3g} % of the cases; 1/k is {100 / k:.3g} %.",
        )
