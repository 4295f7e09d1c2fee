"""The figures of a preview: risk and loss with their errors, and the limits that they are held to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from microguard.pipelines.gate.plain_names import metric_in_words
from microguard.pipelines.workbench.blocks import Estimate
from microguard.schemas.errors import Failure
from microguard.schemas.requirements.requirement import MetricKey, Requirement

LOSS, CHANGED, JOINTLY = (
    MetricKey("information_loss"),
    MetricKey("categories_changed"),
    MetricKey("unique_jointly"),
)


@dataclass(frozen=True)
class Limit:
    """A limit of the specification on a figure.

    Attributes
    ----------
    requirement : Requirement
    estimate : Estimate
    failure : Failure or None
        With its remedy, if the estimate does not meet the limit.
    """

    requirement: Requirement
    estimate: Estimate
    failure: Failure | None

    @property
    def words(self) -> str:
        """The figure in words."""
        return metric_in_words(self.requirement.key)


@dataclass(frozen=True)
class Preview:
    """Risk and loss of one specification.

    Attributes
    ----------
    records, used, clustered : int
        Records of the file, records that are protected, and records in the drawn blocks.
    classes, below_k, uniques : int
        Equivalence classes before protection, and records in small ones: counted on all records.
    metrics : mapping of MetricKey to Estimate
        Shares of the records, and losses.
    losses : mapping of quasi-identifier to Estimate
        SSE/SST of a numeric variable, share of changed values of others.
    before, after : mapping of quasi-identifier to array
        Values of the clustered records: numbers, or codes of categories.
    names : mapping of quasi-identifier to its categories
    effort : str
        Effort that the losses are of.
    notes : tuple of str
        What the preview leaves out.
    """

    records: int
    used: int
    clustered: int
    classes: int
    below_k: int
    uniques: int
    metrics: Mapping[MetricKey, Estimate]
    losses: Mapping[str, Estimate]
    limits: tuple[Limit, ...]
    effort: str
    before: Mapping[str, np.ndarray] = field(default_factory=dict)
    after: Mapping[str, np.ndarray] = field(default_factory=dict)
    names: Mapping[str, Iterable[str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def sample(self) -> str:
        """What the figures are of, as a sentence."""
        if self.clustered >= self.used:
            return f"Risk and loss are computed on all {self.used:,} records that are protected."
        return (
            f"Risk and loss are estimated on {self.clustered:,} of {self.used:,} records: whole blocks of "
            "neighbouring records, all of those that differ most and some of the others. The same file and "
            "specification give the same blocks."
        )
