"""Risk that a household is identified through one of its members.

An intruder who identifies one member has identified the whole household, so the risk of a household is the
probability of identifying any of its records (Hundepool et al. 2012, section 3.3.4). The risk is exact, over
all households of both files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.individual_risk import DIGITS
from microguard.pipelines.measures.measure import Measure


@dataclass(frozen=True)
class HouseholdRisk:
    """Risk of households on the region and all quasi-identifiers together.

    Attributes
    ----------
    households : int
    expected_before, expected_after : float
        Expected number of households that an intruder who knows everybody's values identifies: the sum of the
        risks.
    largest_before, largest_after : float
        Risk of the most exposed household.
    """

    households: int
    expected_before: float
    expected_after: float
    largest_before: float
    largest_after: float


class HouseholdRiskMeasure(Measure[Comparison, HouseholdRisk]):
    """Risk that a household is identified through one of its members."""

    name = "household_risk"
    section = HouseholdRisk

    def compute(self, comparison: Comparison) -> HouseholdRisk | None:
        """Compute the risk; return None without households, and for a register, which stores no original
        records.
        """
        household = comparison.specification.household
        if household is None or household not in comparison.protected.columns:
            return None
        before, after = comparison.classes_before.households, comparison.classes_after.households
        assert before is not None
        assert after is not None
        figures = (before.expected, after.expected, before.largest, after.largest)
        return HouseholdRisk(before.households, *(float(f"{value:.{DIGITS}g}") for value in figures))

    def attacks(self, section: HouseholdRisk, k: int) -> Iterator[tuple[float, str]]:
        """Return the shares of records that attackers identify or infer, with sentences."""
        after, before = (
            expected / max(section.households, 1)
            for expected in (section.expected_after, section.expected_before)
        )
        yield (
            after,
            "An intruder who knows the protected variables of everybody is expected to find "
            f"{100 * after:.3g} % of the households through one of their members "
            f"({section.expected_after:,.0f} of {section.households:,}); before protection, "
            f"{100 * before:.3g} %.",
        )
