"""Sum of the individual risks of re-identification, with sampling weights if there are any.

The individual risk is the expected reciprocal of the number of population units that a class represents
(Benedetti and Franconi 1998). Without weights, each of the n units of a class has the risk 1/n, so that the
sum of the risks is the number of classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.measure import Measure

#: Decimals of sums; more would depend on Spark's order of summation.
DIGITS = 9


@dataclass(frozen=True)
class IndividualRisk:
    """Individual risk on the region and all quasi-identifiers together.

    Attributes
    ----------
    records : int
        Number of published records.
    weighted : bool
        Whether the file is a sample with weights; otherwise it is the whole population.
    expected_before, expected_after : float
        Expected number of records that an intruder who knows everybody's values identifies: the sum of the
        risks.
    largest_before, largest_after : float
        Risk of the most exposed record.
    records_before : int or None
        Number of original records; None if it equals `records`. In a series, both differ.
    """

    records: int
    weighted: bool
    expected_before: float
    expected_after: float
    largest_before: float
    largest_after: float
    records_before: int | None = None


class IndividualRiskMeasure(Measure[Comparison, IndividualRisk]):
    """Sum of the individual risks of re-identification, with sampling weights if there are any."""

    name = "individual_risk"
    section = IndividualRisk

    def compute(self, comparison: Comparison) -> IndividualRisk:
        """Compute the section; return None if the measure does not apply."""
        original = comparison.screened.remaining
        differs = original if original != comparison.records else None
        specification, both = comparison.specification, (comparison.classes_before, comparison.classes_after)
        if specification.weight is None and not specification.groups:
            expected = [float(each.risk.classes) for each in both]
            largest = [1.0 / max(each.risk.smallest, 1) for each in both]
            figures, weighted = [*expected, *largest], False
        else:
            figures = [each.identified for each in both] + [each.most_exposed for each in both]
            figures = [float(f"{value:.{DIGITS}g}") for value in figures]
            weighted = specification.weight is not None
        before, after, most_before, most_after = figures
        return IndividualRisk(
            comparison.records, weighted, before, after, most_before, most_after, records_before=differs
        )

    def attacks(self, section: IndividualRisk, k: int) -> Iterator[tuple[float, str]]:
        """Return the shares of records that attackers identify or infer, with sentences."""
        after = section.expected_after / max(section.records, 1)
        before = section.expected_before / max(section.records_before or section.records, 1)
        yield (
            after,
            "An intruder who knows the protected variables of everybody is expected to identify "
            f"{100 * after:.3g} % of the records ({section.expected_after:,.0f} of "
            f"{section.records:,}{', the sampling taken into account' if section.weighted else ''}); "
            f"before protection, {100 * before:.3g} %.",
        )
