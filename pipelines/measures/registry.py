"""Measures of a release by its content, in page order. To add a measure, add its module and a row here.

A row names the module of a measure, which is imported only if a release has that measure. A run of numeric
records therefore imports no table measures, and a page imports only the measures of its evidence.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from microguard.pipelines.measures.measure import Measure
from microguard.schemas.specification.model import Specification

if TYPE_CHECKING:
    from microguard.pipelines.measures.comparison import Comparison

_RECORDS, _TABLES = "microguard.pipelines.measures", "microguard.pipelines.tables"


@dataclass(frozen=True)
class Row:
    """One row of the registry: a measure.

    Attributes
    ----------
    name : str
        Name of the section in ``quality.json``.
    path : str
        "module:object" of a measure, or of a class that needs no arguments.
    needs : str, optional
        Property of the specification without which the measure computes nothing and limits nothing.
    """

    name: str
    path: str
    needs: str | None = None


MEASURES: dict[str, tuple[Row, ...]] = {
    "records": (
        Row("risk", f"{_RECORDS}.risk_before_and_after:RiskMeasure"),
        Row("individual_risk", f"{_RECORDS}.individual_risk:IndividualRiskMeasure"),
        Row("household_risk", f"{_RECORDS}.household_risk:HouseholdRiskMeasure", "household"),
        Row("k_map", f"{_RECORDS}.k_map:KMapMeasure", "population"),
        Row("record_linkage", f"{_RECORDS}.record_linkage:RecordLinkageMeasure"),
        Row("special_uniques", f"{_RECORDS}.suda2:SpecialUniquesMeasure"),
        Row("uniques_published", f"{_RECORDS}.uniques:UniquesMeasure"),
        Row("homogeneity", f"{_RECORDS}.homogeneity:HomogeneityMeasure", "sensitive"),
        Row("determined", f"{_RECORDS}.attribute_disclosure.determined_variables:DeterminedMeasure"),
        Row(
            "contradicted",
            f"{_RECORDS}.attribute_disclosure.contradicted_columns:ContradictedMeasure",
            "secretly_changed",
        ),
        Row("changed", f"{_RECORDS}.data_changes:ChangedMeasure"),
        Row("loss", f"{_RECORDS}.loss:LossMeasure"),
        Row("moments", f"{_RECORDS}.moments:MomentsMeasure"),
        Row("correlations", f"{_RECORDS}.moments:CorrelationsMeasure"),
        Row("estimates", f"{_RECORDS}.estimates:EstimatesMeasure", "numeric"),
        Row("dominance", f"{_RECORDS}.dominance:DominanceMeasure", "clustered"),
        Row("diversity", f"{_RECORDS}.diversity:DiversityMeasure", "sensitive"),
        Row("edit_rules", f"{_RECORDS}.edit_rules:EditRulesMeasure", "rules"),
        Row("by_dimension", f"{_RECORDS}.control_tables:BY_DIMENSION"),
        Row("by_region", f"{_RECORDS}.control_tables:BY_REGION"),
        Row("tables", f"{_RECORDS}.control_tables:TablesMeasure"),
        Row("weighted_tables", f"{_RECORDS}.weighted_tables:WeightedTablesMeasure", "control_tables"),
        Row("cell_keys", f"{_RECORDS}.cell_keys:CellKeysMeasure", "control_tables"),
        Row("vanished", f"{_RECORDS}.empty_cells:VANISHED", "control_tables"),
        Row("vanished_by_region", f"{_RECORDS}.empty_cells:VANISHED_BY_REGION", "control_tables"),
        Row("exchanged_areas", f"{_RECORDS}.exchanged_areas:ExchangedAreasMeasure", "swapped"),
        Row("coarsening", f"{_RECORDS}.coarsening:CoarseningMeasure", "coarsened"),
        Row("certificates", f"{_RECORDS}.certificates:CertificatesMeasure", "nominal"),
        Row("blocks", f"{_RECORDS}.blocks:BlocksMeasure"),
    ),
    "table": (
        Row("table", f"{_TABLES}.measures:TABLE"),
        Row("attacker", f"{_TABLES}.measures:ATTACKER"),
        Row("noise", f"{_TABLES}.cell_keys.measures:NOISE"),
        Row("amount_noise", f"{_TABLES}.cell_keys.amount_measures:AMOUNT_NOISE"),
        Row("fit", f"{_TABLES}.measures:FIT"),
        Row("changes", f"{_TABLES}.measures:CHANGES"),
        Row("metrics", f"{_TABLES}.measures:METRICS"),
        Row("adjustment", f"{_TABLES}.measures:ADJUSTMENT"),
        Row("suppression", f"{_TABLES}.suppression.measures:Suppressed"),
        Row("intervals", f"{_TABLES}.suppression.measures:IntervalsLeft"),
    ),
}


def measures_of(content: str, names: Collection[str] | None = None) -> tuple[Measure[Any, Any], ...]:
    """Import the measures for a content (records or tables), in the order of the page.

    Parameters
    ----------
    content : {"records", "table"}
    names : collection of str, optional
        Only measures whose names are among these.
    """
    rows = [row for row in MEASURES[content] if names is None or row.name in names]
    found = [resolve_name(row.path) for row in rows]
    return tuple(each() if isinstance(each, type) else each for each in found)


def record_measures(specification: Specification) -> tuple[Measure[Comparison, Any], ...]:
    """Import the measures that apply to the records of a specification."""
    rows = MEASURES["records"]
    names = [row.name for row in rows if row.needs is None or getattr(specification, row.needs)]
    return measures_of("records", names)
