"""The measures of protected records, in the order of the page: a new one is a row here, and its file."""

from __future__ import annotations

from typing import Any

from pipelines.measures.attribute_disclosure.determined_variables import DETERMINED
from pipelines.measures.blocks import BLOCKS
from pipelines.measures.cell_keys import CELL_KEYS
from pipelines.measures.certificates import CERTIFICATES
from pipelines.measures.comparison import Comparison
from pipelines.measures.control_tables import BY_DIMENSION, BY_REGION, TABLES
from pipelines.measures.data_changes import CHANGED
from pipelines.measures.diversity import DIVERSITY
from pipelines.measures.dominance import DOMINANCE
from pipelines.measures.edit_rules import EDIT_RULES
from pipelines.measures.empty_cells import VANISHED, VANISHED_BY_REGION
from pipelines.measures.estimates import ESTIMATES
from pipelines.measures.homogeneity import HOMOGENEITY
from pipelines.measures.household_risk import HOUSEHOLD_RISK
from pipelines.measures.individual_risk import INDIVIDUAL_RISK
from pipelines.measures.k_map import K_MAP
from pipelines.measures.loss import LOSS
from pipelines.measures.measure import Measure
from pipelines.measures.moments import CORRELATIONS, MOMENTS
from pipelines.measures.record_linkage import RECORD_LINKAGE
from pipelines.measures.risk_before_and_after import RISK
from pipelines.measures.suda2 import SPECIAL_UNIQUES
from pipelines.measures.uniques import UNIQUES
from pipelines.measures.weighted_tables import WEIGHTED_TABLES

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
