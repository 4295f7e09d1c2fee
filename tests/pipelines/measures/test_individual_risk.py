"""Tests of the individual risk: the shares before and after protection refer to their own records."""

from types import SimpleNamespace

import pytest
from microguard.pipelines.measures.classes import Risk
from microguard.pipelines.measures.individual_risk import IndividualRiskMeasure
from microguard.pipelines.measures.risk_before_and_after import RiskBeforeAndAfter, RiskMeasure


def comparison(before, after):
    """Return what the measure reads of a file of unique records, in classes of 3 after protection."""
    risks = [Risk(before, before, before, before, before, 1), Risk(after, after // 3, 0, 0, 0, 3)]
    first, second = (SimpleNamespace(risk=risk) for risk in risks)
    return SimpleNamespace(
        specification=SimpleNamespace(weight=None, groups=()),
        records=after,
        screened=SimpleNamespace(remaining=before),
        classes_before=first,
        classes_after=second,
    )


@pytest.mark.parametrize(("before", "after", "stored"), [(252, 255, 252), (255, 255, None)])
def test_risk_before_protection_is_a_share_of_the_original_records(before, after, stored):
    measure = IndividualRiskMeasure()
    section = measure.compute(comparison(before, after))
    assert section.records_before == stored
    ((share, sentence),) = measure.attacks(section, 3)
    assert share == pytest.approx(1 / 3)
    assert sentence.endswith("before protection, 100 %.")


@pytest.mark.parametrize(
    ("uniques", "smallest", "now"), [(0, 3, "now each has at least 3."), (20, 1, "now 20 have.")]
)
def test_headline_of_a_release_with_unique_combinations_counts_them(uniques, smallest, now):
    part = RiskBeforeAndAfter(Risk(90, 30, 23, 23, 23, 1), Risk(90, 30, 20, 20, uniques, smallest))
    (sentence,) = RiskMeasure().headline({"all": part}, 3)
    assert sentence == f"Before protection, 23 combinations had a single record; {now}"
