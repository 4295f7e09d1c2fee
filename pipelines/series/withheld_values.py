"""Batches of new records that are published without sensitive values, because they have too few distinct
ones.

A batch is the set of units of a stratum that one update clusters. The time of clustering depends on the
number of units only. If a batch had to wait for further values, as in microguard 0.5, readers could infer
that its units share a value, and that the unit which ends the wait has another value. A batch with too few
distinct values is therefore published without its sensitive values. Further batches, chosen by a keyed draw,
are also published without them, so that readers cannot conclude from missing values that a batch had too few
(`sdc.risk.too_few_values`).
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.compat import apply_in_arrow
from microguard.pipelines.engine.frames import with_constants
from microguard.pipelines.intake.category_normalisation import with_category_code
from microguard.pipelines.records.block import sensitive_codes
from microguard.pipelines.records.protect_by_microaggregation import closeness
from microguard.pipelines.series.settings import ORIGIN, PATTERN, REGION
from microguard.schemas.specification.model import Specification
from microguard.sdc.risk.too_few_values import too_few_values_probability, withholding_probability
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

#: Key in the plan of a generation that states whether updates withhold values (earlier versions held back
#: units instead).
WITHHOLDS = "withholds"
#: Bits of the missing pattern that contain the history of a unit, so that units of two histories are in two
#: strata.
HISTORY_BITS, HISTORY_SHIFT = 0x7FFFFFFF, 32
#: Number of records of the whole register that are added to those of a region when the shares of values are
#: estimated.
PRIOR_RECORDS = 20
#: Number of the most frequent values that have their own shares, and number of groups for all other values.
FREQUENT, GROUPS = 32, 32
_STRATUM, _HELD = "__stratum_region", "__held"


def pattern_with_history() -> Column:
    """Return the missing pattern of a record combined with the history of its unit."""
    history = f.col(ORIGIN).bitwiseAND(f.lit(HISTORY_BITS))
    return f.col(PATTERN) + f.shiftleft(history, HISTORY_SHIFT)


def is_withheld(too_few: bool, probability: float, draw: float) -> bool:
    """Return whether the sensitive values of a batch are withheld.

    Parameters
    ----------
    too_few : bool
        Whether the batch has too few distinct values.
    probability : float
        Prior probability of `too_few`, without looking at the values.
    draw : float
        Keyed pseudo-random uniform number from 0 to 1.
    """
    return too_few or draw < withholding_probability(probability)


@dataclass(frozen=True)
class Batches:
    """Batches whose sensitive values are withheld.

    Attributes
    ----------
    region : str or None
        Column of the region.
    names : tuple of str
        Sensitive variables.
    held : pyarrow.Table
        Region and pattern of each of these batches.
    withheld : int
        Number of their records.
    """

    region: str | None
    names: tuple[str, ...]
    held: pa.Table
    withheld: int

    def without_values(self, arrivals: DataFrame) -> DataFrame:
        """Return the new records; the sensitive values of these batches are missing."""
        if not len(self.held):
            return arrivals
        held = arrivals.sparkSession.createDataFrame(
            self.held.rename_columns([f"__h{i}" for i in range(self.held.num_columns)])
        ).withColumn(_HELD, f.lit(True))
        same = f.col("__h1") == f.col(PATTERN)
        if self.region is not None:
            same = same & f.col("__h0").eqNullSafe(column(self.region))
        joined = arrivals.join(f.broadcast(held), same, how="left")
        shown = [
            f.when(f.col(_HELD).isNull(), column(name)).alias(name) if name in self.names else column(name)
            for name in arrivals.columns
        ]
        return joined.select(*shown)


def batches_of(
    arrivals: DataFrame,
    published: DataFrame,
    waited: DataFrame | None,
    specification: Specification,
    secret: bytes,
) -> Batches:
    """Decide which batches are published without their sensitive values.

    Parameters
    ----------
    arrivals : DataFrame
        New records: the published columns with their original values, and `PATTERN` with the history.
    published : DataFrame
        Region and sensitive variables of all records of earlier updates, as they were published.
    waited : DataFrame or None
        Strata (`REGION`, `PATTERN`, `ORIGIN`) whose units waited for values under an earlier version. Their
        values are always withheld, because readers know that the units waited.
    specification : Specification
    secret : bytes
        Key of the draws of this update.
    """
    region, names = specification.region, specification.sensitive
    of_region = f.lit(None).cast("string") if region is None else column(region)
    apart = closeness(arrivals, specification)
    keyed = arrivals.select(of_region.alias(_STRATUM), PATTERN, *[column(name) for name in names])
    counts = _counted(keyed, names, apart, specification.method.min_diversity)
    known = {
        name: _shares(published.withColumn(_STRATUM, of_region), name, apart.get(name, 0.0)) for name in names
    }
    before = set()
    if waited is not None:
        rows = waited.select(REGION, pattern_with_history().alias(PATTERN)).collect()
        before = {(row[REGION], row[PATTERN]) for row in rows}
    held = []
    for row in counts.to_pylist():
        place = row[_STRATUM], row[PATTERN]
        probability = min(
            1.0,
            sum(
                too_few_values_probability(
                    known[name](place[0]), row["n"], specification.method.min_diversity
                )
                for name in names
            ),
        )
        if place in before or is_withheld(row["too_few"], probability, _draw(secret, place)):
            held.append(row)
    chosen = pa.Table.from_pylist(held, counts.schema)
    records = sum(row["n"] for row in held)
    return Batches(region, tuple(names), chosen.select([_STRATUM, PATTERN]), records)


def _counted(keyed: DataFrame, names: Sequence[str], apart: Mapping[str, float], least: int) -> pa.Table:
    """Count the records of each batch, and determine whether it has too few distinct values; the result is
    sorted.
    """
    kind = keyed.schema[_STRATUM].dataType.simpleString()

    def batch(table: pa.Table) -> pa.Table:
        codes = [column for name in names for column in sensitive_codes(table[name], apart.get(name, 0.0)).T]
        too_few = any(len(np.unique(each[each >= 0])) < least for each in codes)
        place = {name: table[name].slice(0, 1).combine_chunks() for name in (_STRATUM, PATTERN)}
        return pa.table(place | {"n": pa.array([len(table)]), "too_few": pa.array([too_few])})

    counts = apply_in_arrow(
        keyed, [_STRATUM, PATTERN], batch, f"{_STRATUM} {kind}, {PATTERN} bigint, n bigint, too_few boolean"
    )
    return counts.toArrow().sort_by([(_STRATUM, "ascending"), (PATTERN, "ascending")])


def _shares(published: DataFrame, name: str, apart: float) -> Callable[[Any], np.ndarray]:
    """Return a function from a region to the shares of values that readers expect for its next record.

    Numeric values are counted in intervals of values that are close to each other.
    """
    if apart > 0.0:
        coded = with_constants(published, {"__width": 2 * apart})
        coded = coded.withColumn("__code", f.floor(column(name).cast("double") / f.col("__width")))
    else:
        coded = with_category_code(published, name, "__code")
    counts = coded.where(f.col("__code").isNotNull()).groupBy(_STRATUM, "__code").count().toArrow()
    codes, of = np.unique(counts["__code"].to_numpy(), return_inverse=True)
    records = counts["count"].to_numpy()
    frequent = np.argsort(-np.bincount(of, records, len(codes)), kind="stable")[:FREQUENT]
    group = FREQUENT + codes % GROUPS
    group[frequent] = np.arange(len(frequent))
    whole = np.bincount(group[of], records, FREQUENT + GROUPS)
    whole = whole / max(whole.sum(), 1.0)
    rows: dict[Any, list[int]] = {}
    for row, region in enumerate(counts[_STRATUM].to_pylist()):
        rows.setdefault(region, []).append(row)

    def shares(region: Any) -> np.ndarray:
        here = rows.get(region, [])
        own = np.bincount(group[of[here]], records[here], FREQUENT + GROUPS)
        expected: np.ndarray = (own + PRIOR_RECORDS * whole) / (own.sum() + PRIOR_RECORDS)
        return expected

    return shares


def _draw(secret: bytes, place: tuple[Any, Any]) -> float:
    """Return a keyed uniform number from 0 to 1 for a stratum."""
    digest = hmac.digest(secret, repr(place).encode(), "sha256")
    return int.from_bytes(digest[:8], "big") / 2.0**64
