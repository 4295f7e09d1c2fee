"""Compute the risk that a household is identified through one of its members.

Hundepool et al. 2012, section 3.3.4: whoever finds one member has found them all, so the risk of a household
is that of finding any of its records. Exact, over all households of both files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.measures.by_class import CLASS, by_class, class_hash
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.individual_risk import DIGITS
from microguard.pipelines.measures.measure import Measure
from microguard.sdc.risk.individual import class_risk
from pyspark.sql import functions as f

_WEIGHT = "weight"


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


def _missed(columns: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """Return for each household the logarithm of the probability that none of its records is identified."""
    _, place, members = np.unique(columns[CLASS], return_inverse=True, return_counts=True)
    risk = _risk(place, members, columns.get(_WEIGHT))
    with np.errstate(divide="ignore"):  # who is found for certain: minus infinity
        missed = np.log1p(-risk)[place]
    households, first, home = np.unique(columns["household"], return_index=True, return_inverse=True)
    return {"file": columns["file"][first], CLASS: households, "missed": np.bincount(home, missed)}


def _risk(place: np.ndarray, members: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return the risk of a record of each class, (m,); without weights the file is the population."""
    return 1.0 / members if weights is None else class_risk(members, np.bincount(place, weights))


def _found(columns: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """Return for each file the complete households, and the sum and maximum of their risks."""
    _, first, home = np.unique(columns[CLASS], return_index=True, return_inverse=True)
    risk = -np.expm1(np.bincount(home, columns["missed"]))
    files, file, households = np.unique(columns["file"][first], return_inverse=True, return_counts=True)
    largest = np.zeros(len(files))
    np.maximum.at(largest, file, risk)
    return {"file": files, "households": households, "sum": np.bincount(file, risk), "largest": largest}


class HouseholdRiskMeasure(Measure[Comparison, HouseholdRisk]):
    """Compute the risk that a household is identified through one of its members."""

    name = "household_risk"
    section = HouseholdRisk

    def compute(self, comparison: Comparison) -> HouseholdRisk | None:
        """Compute the risk; None without households, and in a register, which keeps none of its records."""
        specification = comparison.specification
        household = specification.household
        if household is None or household not in comparison.protected.columns:
            return None
        weight = [column(name).cast("double").alias(_WEIGHT) for name in filter(None, [specification.weight])]
        before, after = (
            frame.select(
                f.lit(file).alias("file"),
                class_hash(comparison.joint_keys, f.lit(file)),
                f.xxhash64(f.lit(file), column(household)).alias("household"),
                *weight,
            )
            for file, frame in enumerate((comparison.screened.frame, comparison.protected))
        )
        records = comparison.screened.remaining + comparison.records
        parts = by_class(
            before.unionByName(after), records, _missed, f"file int, {CLASS} long, missed double"
        )
        lines = by_class(parts, records, _found, "file int, households long, sum double, largest double")
        by_file = (
            lines.groupBy("file")
            .agg(
                f.sum("households").alias("households"),
                f.sum("sum").alias("sum"),
                f.max("largest").alias("largest"),
            )
            .toArrow()
            .sort_by("file")
        )
        figures = (*by_file["sum"].to_pylist(), *by_file["largest"].to_pylist())
        households = int(by_file["households"][0].as_py())
        return HouseholdRisk(households, *(float(f"{value:.{DIGITS}g}") for value in figures))

    def attacks(self, section: HouseholdRisk, k: int) -> Iterator[tuple[float, str]]:
        """Return what an attacker reaches: shares of the records, with sentences."""
        after, before = (
            expected / max(section.households, 1)
            for expected in (section.expected_after, section.expected_before)
        )
        yield (
            after,
            "Whoever knows the protected variables of everybody would be expected to find "
            f"{100 * after:.3g} % of the households through one of their members "
            f"({section.expected_after:,.0f} of {section.households:,}); before, {100 * before:.3g} %.",
        )


HOUSEHOLD_RISK = HouseholdRiskMeasure()
