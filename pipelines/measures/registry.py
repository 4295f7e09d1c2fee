"""The measures of protected records, in the order of the page: a new one is a row here, and its file."""

from __future__ import annotations

from typing import Any

from pipelines.measures.blocks import BLOCKS
from pipelines.measures.certificates import CERTIFICATES
from pipelines.measures.comparison import Comparison
from pipelines.measures.control_tables import BY_DIMENSION, BY_REGION, TABLES
from pipelines.measures.determined import DETERMINED
from pipelines.measures.diversity import DIVERSITY
from pipelines.measures.dominance import DOMINANCE
from pipelines.measures.edit_rules import EDIT_RULES
from pipelines.measures.homogeneity import HOMOGENEITY
from pipelines.measures.loss import LOSS
from pipelines.measures.measure import Measure
from pipelines.measures.moments import CORRELATIONS, MOMENTS
from pipelines.measures.risk_before_and_after import RISK
from pipelines.measures.uniques import UNIQUES
from pipelines.measures.vanished import VANISHED

RECORD_MEASURES: tuple[Measure[Comparison, Any], ...] = (
    RISK,
    UNIQUES,
    HOMOGENEITY,
    DETERMINED,
    LOSS,
    MOMENTS,
    CORRELATIONS,
    DOMINANCE,
    DIVERSITY,
    EDIT_RULES,
    BY_DIMENSION,
    BY_REGION,
    TABLES,
    VANISHED,
    CERTIFICATES,
    BLOCKS,
)
