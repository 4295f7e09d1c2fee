"""Figures of a preview: risk and loss with their errors, and the limits of the specification."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from microguard.pipelines.gate.plain_names import metric_in_words
from microguard.pipelines.workbench.blocks import Estimate
from microguard.pipelines.workbench.clustering import Counts
from microguard.schemas.errors import Failure
from microguard.schemas.requirements.requirement import MetricKey, Requirement

LOSS, CHANGED = MetricKey("information_loss"), MetricKey("categories_changed")


@dataclass(frozen=True)
class Limit:
    """Limit of the specification on a figure.

    Attributes
    ----------
    requirement : Requirement
    estimate : Estimate
    failure : Failure or None
        Failure with its remedy; None if every value within the error meets the limit.
    """

    requirement: Requirement
    estimate: Estimate
    failure: Failure | None

    @classmethod
    def judge(cls, requirement: Requirement, estimate: Estimate) -> Limit:
        """Compare a limit with every value within the error of an estimate."""
        value, ends = estimate.value, (estimate.value - estimate.error, estimate.value + estimate.error)
        unmet = next((each for each in (value, *ends) if not requirement.met(each)), None)
        words = metric_in_words(requirement.key)
        return cls(requirement, estimate, None if unmet is None else requirement.failure(unmet, words))

    @property
    def verdict(self) -> str:
        """Return "kept", "exceeded", or "within the error" if the estimate cannot decide."""
        if self.failure is None:
            return "kept"
        low, high = self.estimate.value - self.estimate.error, self.estimate.value + self.estimate.error
        at_least, at_most = self.requirement.at_least, self.requirement.at_most
        beyond = (at_most is not None and low > at_most) or (at_least is not None and high < at_least)
        return "exceeded" if beyond else "within the error"

    @property
    def words(self) -> str:
        """Return the name of the limited figure in words."""
        return metric_in_words(self.requirement.key)


# compared by identity, because the comparison of arrays has no single truth value
@dataclass(frozen=True, eq=False)
class Preview:
    """Risk and loss of one specification.

    Attributes
    ----------
    records, used, clustered : int
        Records of the file, records that are protected, and records in the drawn blocks.
    k : int
        The k of the specification.
    counts : mapping of group to Counts
        Equivalence classes before protection, and records in small ones: counted on all records.
    metrics : mapping of MetricKey to Estimate
        Shares of the records, and losses.
    losses : mapping of quasi-identifier to Estimate
        SSE/SST of a numeric variable, share of changed values of others.
    before, after : mapping of quasi-identifier to array
        Values of the clustered records: numbers, or codes of categories.
    names : mapping of quasi-identifier to its categories
    effort : str
        Effort with which the losses were computed.
    notes : tuple of str
        Differences between the preview and a run.
    promises_k : bool
        Whether the method of the specification promises that k records share each combination of a group.
    is_of_method : bool
        Whether risk and loss are those of the method of the specification.
    rejection : Failure or None
        Failure if a run would reject more records than the specification allows.
    """

    records: int
    used: int
    clustered: int
    k: int
    counts: Mapping[str, Counts]
    metrics: Mapping[MetricKey, Estimate]
    losses: Mapping[str, Estimate]
    limits: tuple[Limit, ...]
    effort: str
    before: Mapping[str, np.ndarray] = field(default_factory=dict)
    after: Mapping[str, np.ndarray] = field(default_factory=dict)
    names: Mapping[str, Iterable[str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    promises_k: bool = True
    is_of_method: bool = True
    rejection: Failure | None = None

    @property
    def sample(self) -> str:
        """Return a sentence that states which records the figures describe."""
        if self.clustered >= self.used:
            return f"Risk and loss are computed on all {self.used:,} records that are protected."
        return (
            f"Risk and loss are estimated on {self.clustered:,} of {self.used:,} records: whole blocks of "
            "neighbouring records, namely all blocks whose records differ most and some of the others. The "
            "same file and specification give the same blocks."
        )
