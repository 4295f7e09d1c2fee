"""Requirements as a Great Expectations suite over a metrics frame of one row.

Great Expectations takes five seconds to import: import this module only to judge a suite.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

os.environ["GX_ANALYTICS_ENABLED"] = "false"

import great_expectations as gx
import great_expectations.expectations as gxe
import pandas as pd
from great_expectations.core.expectation_suite import ExpectationSuite
from microguard.pipelines.gate.plain_names import plain_name
from microguard.schemas.requirements.requirement import MetricKey, Requirement

NO_VALUES = {"result_format": "BOOLEAN_ONLY"}
"""Result format for records; it prevents observed values in results and Data Docs."""
OBSERVED = {"result_format": "BASIC", "partial_unexpected_count": 0}
"""Result format for metrics; it includes the observed counts, shares and errors."""


def expectation_suite(name: str, requirements: Sequence[Requirement]) -> ExpectationSuite:
    """Build a suite with one expectation for each requirement; each applies to the column of its metric."""
    return gx.ExpectationSuite(
        name=name,
        expectations=[
            gxe.ExpectColumnMaxToBeBetween(
                column=requirement.key.column,
                min_value=requirement.at_least,
                max_value=requirement.at_most,
                description=plain_name(requirement),
                meta={"remedy": requirement.remedy},
            )
            for requirement in requirements
        ],
    )


def metrics_frame(metrics: Mapping[MetricKey, float], requirements: Sequence[Requirement]) -> pd.DataFrame:
    """Build a frame of one row with one column for each required metric.

    Raises
    ------
    KeyError
        If a required metric was not computed: a requirement that was not judged must not count as met.
    """
    return pd.DataFrame(
        {requirement.key.column: [float(metrics[requirement.key])] for requirement in requirements}
    )
