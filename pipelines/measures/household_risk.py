"""Households that would be found through one of their members, where the records name them.

Hundepool et al. 2012, section 3.3.4: whoever finds one member has found them all, so the risk of a household
is that of finding any of its records. Exact, over all households of both files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import functions as f

from pipelines.engine.column_names import column
from pipelines.measures.comparison import Comparison
from pipelines.measures.individual_risk import DIGITS, HALVES, class_counts, records_by_class
from pipelines.measures.measure import Measure
from sdc.risk.individual import class_risk


@dataclass(frozen=True)
class HouseholdRisk:
    """Risk of households on the region and all quasi-identifiers together.

    Attributes
    ----------
    households : int
    expected_before, expected_after : float
        Households that an intruder who knows everybody's values is expected to find: the sum of the risks.
    largest_before, largest_after : float
        Risk of the most exposed household.
    """

    households: int
    expected_before: float
    expected_after: float
    largest_before: float
    largest_after: float


def _take(comparison: Comparison) -> HouseholdRisk | None:
    specification = comparison.specification
    if specification.household is None:
        return None
    household = column(specification.household).alias("household")
    frames = (comparison.screened.frame, comparison.protected)
    parts = [
        records_by_class(frame, file, comparison.joint_keys, specification.weight, household)
        for file, frame in enumerate(frames)
    ]
    records = parts[0].unionByName(parts[1])
    risks = class_counts(records).mapInArrow(_valued, "file int, __digest0 long, __digest1 long, risk double")
    risk = f.col("risk")
    of_household = f.when(f.max(risk) >= 1.0, 1.0).otherwise(-f.expm1(f.sum(f.log1p(-risk))))
    by_file = (
        records.join(risks, ["file", *HALVES])
        .groupBy("file", "household")
        .agg(of_household.alias("risk"))
        .groupBy("file")
        .agg(
            f.count(f.lit(1)).alias("households"), f.sum("risk").alias("sum"), f.max("risk").alias("largest")
        )
        .toArrow()
        .sort_by("file")
    )
    figures = (*by_file["sum"].to_pylist(), *by_file["largest"].to_pylist())
    households = int(by_file["households"][0].as_py())
    return HouseholdRisk(households, *(float(f"{value:.{DIGITS}g}") for value in figures))


def _valued(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The classes with the risk of each of their records."""
    for batch in batches:
        risk = class_risk(batch["f"].to_numpy(), batch["units"].to_numpy())
        kept = {name: batch[name] for name in ("file", *HALVES)}
        yield pa.RecordBatch.from_pydict({**kept, "risk": pa.array(risk)})


def _attacks(section: HouseholdRisk, k: int) -> Iterator[tuple[float, str]]:
    yield (
        section.expected_after / max(section.households, 1),
        "Whoever knows the protected variables of everybody would be expected to find "
        f"{section.expected_after:,.0f} of {section.households:,} households through one of their members; "
        f"before, {section.expected_before:,.0f}.",
    )


HOUSEHOLD_RISK: Measure[Comparison, HouseholdRisk] = Measure(
    name="household_risk", section=HouseholdRisk, take=_take, attacks=_attacks
)
