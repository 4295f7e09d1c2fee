"""Distance-based record linkage and interval disclosure: what an intruder links who holds the originals.

Domingo-Ferrer and Torra 2001; Mateo-Sanz, Sebe and Domingo-Ferrer 2004. Each drawn original looks for the
nearest of all protected records of its region, in one pass over them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as f

from pipelines.engine.column_names import column
from pipelines.measures.comparison import Comparison
from pipelines.measures.measure import Measure
from pipelines.measures.pairs import Pairs
from sdc.risk.linkage import inside_interval, nearer_and_tied

#: Half-length of the interval in standard deviations.
WIDTH = 0.1
#: Distinct protected records that one search tree holds: what a task keeps in memory.
TREE_RECORDS = 100_000
#: Distance between two regions: more than any two records are apart.
_REGION_APART = 1e6
#: Categories that are told apart by a coordinate each; those that are rarer share one.
MOST_CATEGORIES = 20


@dataclass(frozen=True)
class RecordLinkage:
    """What is linked, or is inside an interval, of the drawn records.

    Attributes
    ----------
    sampled, of : int
    linked : float
        Expected share whose own protected record is the nearest; of t as near ones the intruder picks any.
    inside : mapping of numeric variable to share
        Of values within `WIDTH` standard deviations of the published one.
    inside_all : float or None
        Share of records whose every numeric variable is; None where there is none.
    """

    sampled: int
    of: int
    linked: float
    inside: dict[str, float]
    inside_all: float | None


@dataclass(frozen=True)
class _Places:
    """Records as points: numbers in standard deviations, a mismatch of categories 1, regions far apart.

    Attributes
    ----------
    means, divisors : (p,) arrays
    categories : tuple of mapping of category to place, by nominal variable
        Of the frequent ones; any other has the last place.
    regions : mapping of region to number
        Of those that have drawn records; others are out of reach.
    """

    means: np.ndarray
    divisors: np.ndarray
    categories: tuple[dict[str | None, int], ...]
    regions: dict[str, int]

    def points(self, numbers: np.ndarray, nominal: list[np.ndarray], regions: np.ndarray) -> np.ndarray:
        """Coordinates of records: (n, p) numbers, (n,) categories of each variable, (n,) regions."""
        scaled = np.nan_to_num((numbers - self.means) / self.divisors, nan=0.0)
        indicators = [
            (codes[:, None] == np.arange(len(known) + 1)) / np.sqrt(2.0)
            for known, codes in zip(self.categories, nominal, strict=True)
        ]
        return np.column_stack([scaled, *indicators, regions * _REGION_APART])

    def category_codes(self, place: int, values: Iterable[str | None]) -> np.ndarray:
        """Places of categories of one variable."""
        known = self.categories[place]
        return np.array([known.get(value, len(known)) for value in values], dtype=np.int64)


def _take(comparison: Comparison) -> RecordLinkage | None:
    pairs = comparison.pairs
    if pairs is None:
        return None
    places = _places(pairs, comparison)
    before = _points(pairs, places, before=True)
    own_distance = np.sqrt(np.sum((before - _points(pairs, places, before=False)) ** 2, axis=1))
    nearer, tied = _among_all(comparison, pairs, places, before, own_distance)
    inside = inside_interval(pairs.numbers_before, pairs.numbers_after, WIDTH) if pairs.numeric else None
    linked = np.sum(1.0 / np.maximum(tied[~nearer], 1)) / len(pairs)
    return RecordLinkage(
        sampled=len(pairs),
        of=pairs.of,
        linked=float(linked),
        inside={} if inside is None else dict(zip(pairs.numeric, map(float, inside), strict=False)),
        inside_all=None if inside is None else float(inside[-1]),
    )


def _places(pairs: Pairs, comparison: Comparison) -> _Places:
    scales = [comparison.scales[name] for name in pairs.numeric]
    categories = []
    for place, values in enumerate(pairs.categories):
        counts = np.bincount(pairs.codes_before[:, place], minlength=len(values))
        frequent = np.argsort(-counts, kind="stable")[:MOST_CATEGORIES]
        categories.append({_text(values[code]): position for position, code in enumerate(frequent)})
    return _Places(
        np.array([scale.mean for scale in scales]),
        np.array([scale.divisor for scale in scales]),
        tuple(categories),
        {str(name): number for number, name in enumerate(pairs.region_names)},
    )


def _text(value: object) -> str | None:
    return None if value is None or value != value else str(value)


def _points(pairs: Pairs, places: _Places, before: bool) -> np.ndarray:
    numbers = pairs.numbers_before if before else pairs.numbers_after
    codes = pairs.codes_before if before else pairs.codes_after
    nominal = [
        places.category_codes(place, map(_text, values))[codes[:, place]]
        for place, values in enumerate(pairs.categories)
    ]
    return places.points(numbers, nominal, pairs.regions)


def _among_all(
    comparison: Comparison, pairs: Pairs, places: _Places, before: np.ndarray, own_distance: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`nearer_and_tied` of the drawn records among all protected ones."""
    region = comparison.specification.region
    numbers = [column(name).cast("double").alias(f"x{i}") for i, name in enumerate(pairs.numeric)]
    nominal = [column(name).cast("string").alias(f"c{i}") for i, name in enumerate(pairs.nominal)]
    where = f.lit("") if region is None else column(region).cast("string")
    names = [f"x{i}" for i in range(len(numbers))] + [f"c{i}" for i in range(len(nominal))] + ["region"]

    p, q = len(numbers), len(nominal)  # of columns, which do not travel to tasks

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        nearer, tied = np.zeros(len(own_distance), dtype=bool), np.zeros(len(own_distance), dtype=np.int64)
        for classes in _distinct(batches, names):
            regions = np.array([places.regions.get(each, -1) for each in classes["region"].to_pylist()])
            classes, regions = classes.filter(pa.array(regions >= 0)), regions[regions >= 0]
            x = [classes[f"x{i}"].to_numpy() for i in range(p)]
            codes = [places.category_codes(i, classes[f"c{i}"].to_pylist()) for i in range(q)]
            points = places.points(_side_by_side(x, len(classes)), codes, regions)
            left = np.flatnonzero(~nearer)
            closer, alike = nearer_and_tied(before[left], own_distance[left], points, classes["n"].to_numpy())
            nearer[left], tied[left] = closer, tied[left] + alike
        yield pa.RecordBatch.from_pydict({"at": np.arange(len(own_distance)), "nearer": nearer, "tied": tied})

    by_record = (
        comparison.protected.select(*numbers, *nominal, where.alias("region"))
        .mapInArrow(task, "at bigint, nearer boolean, tied bigint")
        .groupBy("at")
        .agg(f.bool_or("nearer").alias("nearer"), f.sum("tied").alias("tied"))
        .toArrow()
        .sort_by("at")
    )
    return by_record["nearer"].to_numpy(), by_record["tied"].to_numpy()


def _side_by_side(columns: list[np.ndarray], rows: int) -> np.ndarray:
    return np.column_stack(columns) if columns else np.empty((rows, 0))


def _distinct(batches: Iterable[pa.RecordBatch], names: list[str]) -> Iterator[pa.Table]:
    """Distinct records with their number ``n``, at most about `TREE_RECORDS` at a time."""
    waiting: list[pa.Table] = []
    for batch in batches:
        counted = pa.Table.from_batches([batch]).group_by(names).aggregate([([], "count_all")])
        waiting.append(counted)
        if sum(map(len, waiting)) >= TREE_RECORDS:
            yield _together(waiting, names)
            waiting = []
    if waiting:
        yield _together(waiting, names)


def _together(parts: list[pa.Table], names: list[str]) -> pa.Table:
    summed = pa.concat_tables(parts).group_by(names).aggregate([("count_all", "sum")])
    return summed.rename_columns([*names, "n"])


def _attacks(section: RecordLinkage, k: int) -> Iterator[tuple[float, str]]:
    yield (
        section.linked,
        "Whoever holds the original records and takes the nearest published one finds the right one in "
        f"{100 * section.linked:.3g} % of the cases; 1/k is {100 / k:.3g} %.",
    )


RECORD_LINKAGE: Measure[Comparison, RecordLinkage] = Measure(
    name="record_linkage", section=RecordLinkage, take=_take, attacks=_attacks
)
