"""The measures of protected records, in the order of the page: a new one is a row here, and its file."""

from __future__ import annotations

from typing import Any

from microguard.pipelines.measures.attribute_disclosure.determined_variables import DETERMINED
from microguard.pipelines.measures.blocks import BLOCKS
from microguard.pipelines.measures.cell_keys import CELL_KEYS
from microguard.pipelines.measures.certificates import CERTIFICATES
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.control_tables import BY_DIMENSION, BY_REGION, TABLES
from microguard.pipelines.measures.data_changes import CHANGED
from microguard.pipelines.measures.diversity import DIVERSITY
from microguard.pipelines.measures.dominance import DOMINANCE
from microguard.pipelines.measures.edit_rules import EDIT_RULES
from microguard.pipelines.measures.empty_cells import VANISHED, VANISHED_BY_REGION
from microguard.pipelines.measures.estimates import ESTIMATES
from microguard.pipelines.measures.homogeneity import HOMOGENEITY
from microguard.pipelines.measures.household_risk import HOUSEHOLD_RISK
from microguard.pipelines.measures.individual_risk import INDIVIDUAL_RISK
from microguard.pipelines.measures.k_map import K_MAP
from microguard.pipelines.measures.loss import LOSS
from microguard.pipelines.measures.measure import Measure
from microguard.pipelines.measures.moments import CORRELATIONS, MOMENTS
from microguard.pipelines.measures.record_linkage import RECORD_LINKAGE
from microguard.pipelines.measures.risk_before_and_after import RISK
from microguard.pipelines.measures.suda2 import SPECIAL_UNIQUES
from microguard.pipelines.measures.uniques import UNIQUES
from microguard.pipelines.measures.weighted_tables import WEIGHTED_TABLES

RECORD_MEASURES: tuple[Measure[Comparison, Any], ...] = (
    RISK,
    INDIVIDUAL_RISK,
    HOUSEHOLD_RISK,
    K_MAP,
    RECORD_LINKAGE,
    SPECIAL_UNIQUES,
    UNIQUES,
    HOMOGENEITY,
    DETERMINED,
    CHANGED,
    LOSS,
    MOMENTS,
    CORRELATIONS,
    ESTIMATES,
    DOMINANCE,
    DIVERSITY,
    EDIT_RULES,
    BY_DIMENSION,
    BY_REGION,
    TABLES,
    WEIGHTED_TABLES,
    CELL_KEYS,
    VANISHED,
    VANISHED_BY_REGION,
    CERTIFICATES,
    BLOCKS,
)
