"""What a class of equal records gives away of the sensitive variables.

Distinct and entropy l-diversity (Machanavajjhala et al. 2007) and t-closeness with equal ground distance
(Li, Li and Venkatasubramanian 2007), over the classes as they are published.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import functions as f

from pipelines.engine.column_names import column
from pipelines.engine.row_hash import digest
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
    keys = [f"__digest{half}" for half in (0, 1)]
    value, n, share = f.col("value"), f.col("n"), f.col("share")
    counts = (
        comparison.protected.select(*digest(comparison.joint_keys), column(name).alias("value"))
        .groupBy(*keys, value)
        .agg(f.count(f.lit(1)).alias("n"))
    )
    whole = counts.groupBy(value.alias("other")).agg(
        (f.sum(n) / f.lit(max(comparison.records, 1))).alias("share")
    )
    classes = (
        counts.join(f.broadcast(whole), value.eqNullSafe(f.col("other")), how="inner")
        .groupBy(*keys)
        .agg(
            f.sum(n).alias("members"),
            f.count(f.lit(1)).alias("distinct"),
            f.max(n).alias("most"),
            f.sum(n * f.log(n.cast("double"))).alias("logs"),
            f.collect_list(f.struct(n.cast("double").alias("n"), share)).alias("values"),
        )
    )
    members = f.col("members").cast("double")
    excess = f.aggregate(
        f.col("values"),
        f.lit(0.0),
        lambda total, each: total + f.greatest(f.lit(0.0), each["n"] / members - each["share"]),
    )
    row = classes.agg(
        f.sum("members").alias("records"),
        f.sum("most").alias("guessed"),
        f.sum(f.when(f.col("distinct") == 1, f.col("members")).otherwise(0)).alias("homogeneous"),
        f.min("distinct").alias("least"),
        f.min(f.log(members) - f.col("logs") / members).alias("entropy"),
        f.max(excess).alias("t"),
    ).first()
    assert row is not None
    return Homogeneity(
        records=int(row["records"] or 0),
        homogeneous=int(row["homogeneous"] or 0),
        least_distinct=int(row["least"] or 0),
        least_entropy_diversity=round(float(math.exp(row["entropy"] or 0.0)), DIGITS),
        largest_t=round(float(row["t"] or 0.0), DIGITS),
        guessed=int(row["guessed"] or 0),
    )


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
