"""Individual risk of re-identification, with the sampling weights where there are any, added up.

Benedetti and Franconi 1998: the expected reciprocal of the units of the population that a class stands for.
Every class of both files, in one aggregation; `sdc` values the classes in the tasks. Without weights a class
of n units has the risk 1/n n times, so that the classes that were counted before are the sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as f

from pipelines.engine.column_names import column
from pipelines.engine.row_hash import DIGESTS, digest
from pipelines.measures.comparison import Comparison
from pipelines.measures.measure import Measure
from schemas.specification.model import WHOLE
from sdc.risk.individual import class_risk

#: Digits kept of sums whose order Spark decides.
DIGITS = 9


@dataclass(frozen=True)
class IndividualRisk:
    """Risk on the region and all quasi-identifiers together.

    Attributes
    ----------
    records : int
    weighted : bool
        Whether the file is a sample with weights, rather than everybody.
    expected_before, expected_after : float
        Records that an intruder who knows everybody's values is expected to identify: the sum of the risks.
    largest_before, largest_after : float
        Risk of the most exposed record.
    """

    records: int
    weighted: bool
    expected_before: float
    expected_after: float
    largest_before: float
    largest_after: float


def _take(comparison: Comparison) -> IndividualRisk:
    specification = comparison.specification
    if specification.weight is None and not specification.groups:
        before, after = comparison.exposure.risks[WHOLE], comparison.joint_risk_after
        expected = [float(each.classes) for each in (before, after)]
        largest = [1.0 / max(each.smallest, 1) for each in (before, after)]
        return IndividualRisk(comparison.records, False, *expected, *largest)
    return _of_classes(comparison)


def _of_classes(comparison: Comparison) -> IndividualRisk:
    weight = comparison.specification.weight
    units = f.lit(1.0) if weight is None else column(weight).cast("double")
    before, after = (
        frame.select(f.lit(file).alias("file"), *digest(comparison.joint_keys), units.alias("w"))
        for file, frame in enumerate((comparison.screened.frame, comparison.protected))
    )
    sums = (f.count(f.lit(1)).cast("double").alias("f"), f.sum("w").alias("units"))
    classes = before.unionByName(after).groupBy("file", *DIGESTS).agg(*sums)
    by_file = (
        classes.select("file", "f", "units")
        .mapInArrow(_valued, "file int, risk double, largest double")
        .groupBy("file")
        .agg(f.sum("risk").alias("risk"), f.max("largest").alias("largest"))
        .toArrow()
        .sort_by("file")
    )
    expected, largest = by_file["risk"].to_pylist(), by_file["largest"].to_pylist()
    return IndividualRisk(
        comparison.records,
        weight is not None,
        *(float(f"{value:.{DIGITS}g}") for value in (*expected, *largest)),
    )


def _valued(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Sum and maximum of the risks of the classes of each file, a line a batch and file."""
    for batch in batches:
        files = batch["file"].to_numpy()
        records, units = batch["f"].to_numpy(), batch["units"].to_numpy()
        risk = class_risk(records, units)
        for file in np.unique(files):
            here = files == file
            yield pa.RecordBatch.from_pydict(
                {
                    "file": pa.array([int(file)], pa.int32()),
                    "risk": pa.array([float(np.sum((records * risk)[here]))]),
                    "largest": pa.array([float(risk[here].max())]),
                }
            )


def _attacks(section: IndividualRisk, k: int) -> Iterator[tuple[float, str]]:
    after, before = (
        expected / max(section.records, 1) for expected in (section.expected_after, section.expected_before)
    )
    yield (
        after,
        "Whoever knows the protected variables of everybody would be expected to identify "
        f"{100 * after:.3g} % of the records ({section.expected_after:,.0f} of {section.records:,}"
        f"{', the sampling taken into account' if section.weighted else ''}); before, {100 * before:.3g} %.",
    )


INDIVIDUAL_RISK: Measure[Comparison, IndividualRisk] = Measure(
    name="individual_risk", section=IndividualRisk, take=_take, attacks=_attacks
)
