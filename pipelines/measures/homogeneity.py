"""What a class of equal records gives away of the sensitive variables.

Distinct and entropy l-diversity (Machanavajjhala et al. 2007) and t-closeness with equal ground distance
(Li, Li and Venkatasubramanian 2007), over the classes as they are published.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from pyspark.sql import functions as f

from pipelines.engine.column_names import column
from pipelines.engine.row_hash import content_of
from pipelines.measures.by_class import CLASS, by_class, class_hash
from pipelines.measures.comparison import Comparison
from pipelines.measures.measure import Measure
from schemas.requirements.records import MetricKey, Requirement
from schemas.specification.model import Specification

REMEDY = (
    "raise method.min_diversity or release.k, coarsen the variable, raise the limit, or have a steward "
    "accept it by name in quality.accept"
)
#: Digits that are kept of sums whose order Spark decides.
DIGITS = 9
_EXTREMES = "least bigint, entropy double, t double"


@dataclass(frozen=True)
class Homogeneity:
    """What classes give away of one sensitive variable.

    Attributes
    ----------
    records, homogeneous : int
        Records, and those in classes with one value of the variable.
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


def _take(comparison: Comparison) -> dict[str, Homogeneity] | None:
    section = {name: _of_variable(comparison, name) for name in comparison.specification.sensitive}
    return section or None


def _of_variable(comparison: Comparison, name: str) -> Homogeneity:
    frame, value = comparison.protected, column(name)
    whole = frame.groupBy(value.alias("other")).agg(
        (f.count(f.lit(1)) / f.lit(max(comparison.records, 1))).alias("share")
    )
    shared = frame.join(f.broadcast(whole), value.eqNullSafe(f.col("other")), how="inner")
    rows = shared.select(
        class_hash(comparison.joint_keys), f.xxhash64(*content_of([name])).alias("value"), "share"
    )
    sums = ("records", "homogeneous", "guessed")
    row = (
        by_class(rows, comparison.records, _of_classes, f"{' bigint, '.join(sums)} bigint, {_EXTREMES}")
        .agg(*[f.sum(name).alias(name) for name in sums], f.min("least").alias("least"),
             f.min("entropy").alias("entropy"), f.max("t").alias("t"))
        .first()
    )  # fmt: skip
    assert row is not None
    return Homogeneity(
        records=int(row["records"] or 0),
        homogeneous=int(row["homogeneous"] or 0),
        least_distinct=int(row["least"] or 0),
        least_entropy_diversity=round(float(math.exp(row["entropy"] or 0.0)), DIGITS),
        largest_t=round(float(row["t"] or 0.0), DIGITS),
        guessed=int(row["guessed"] or 0),
    )


def _of_classes(columns: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """What the classes of a task give away, in one line."""
    order = np.lexsort((columns["value"], columns[CLASS]))
    classes, values, shares = (columns[name][order] for name in (CLASS, "value", "share"))
    fresh = np.concatenate([[True], classes[1:] != classes[:-1]])
    cells = np.flatnonzero(fresh | np.concatenate([[True], values[1:] != values[:-1]]))
    n = np.diff(cells, append=len(order))
    starts = np.flatnonzero(fresh[cells])  # of the classes, among their cells
    members, distinct = np.add.reduceat(n, starts), np.diff(starts, append=len(n))
    entropy = np.log(members) - np.add.reduceat(n * np.log(n), starts) / members
    excess = np.maximum(0.0, n / np.repeat(members, distinct) - shares[cells])
    return {
        "records": np.array([members.sum()]),
        "homogeneous": np.array([members[distinct == 1].sum()]),
        "guessed": np.array([np.maximum.reduceat(n, starts).sum()]),
        "least": np.array([distinct.min()]),
        "entropy": np.array([entropy.min()]),
        "t": np.array([np.add.reduceat(excess, starts).max()]),
    }


def _metrics(section: Mapping[str, Homogeneity], comparison: Comparison) -> dict[MetricKey, float]:
    metrics: dict[MetricKey, float] = {}
    for name, part in section.items():
        metrics[MetricKey("homogeneous", name)] = part.homogeneous / max(part.records, 1)
        metrics[MetricKey("entropy_diversity", name)] = part.least_entropy_diversity
        metrics[MetricKey("t", name)] = part.largest_t
    return metrics


def _limits(specification: Specification) -> Iterator[Requirement]:
    quality = specification.quality
    most = quality.default_limit("max_homogeneous")
    for name in specification.sensitive:
        if most is not None:
            yield Requirement(MetricKey("homogeneous", name), REMEDY, at_most=most)
        if quality.min_entropy_diversity is not None:
            least = quality.min_entropy_diversity
            yield Requirement(MetricKey("entropy_diversity", name), REMEDY, at_least=least)
        if quality.max_t is not None:
            yield Requirement(MetricKey("t", name), REMEDY, at_most=quality.max_t)


def _attacks(section: Mapping[str, Homogeneity], k: int) -> Iterator[tuple[float, str]]:
    for name, part in section.items():
        share = part.homogeneous / part.records if part.records else 0.0
        text = (
            f"Whoever finds a person's class learns {name} for certain in {100 * share:.3g} % of the cases."
        )
        yield share, text


HOMOGENEITY: Measure[Comparison, dict[str, Homogeneity]] = Measure(
    name="homogeneity",
    section=dict[str, Homogeneity],
    take=_take,
    metrics=_metrics,
    limits=_limits,
    attacks=_attacks,
)
