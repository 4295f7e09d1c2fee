"""The gate: compare measured metrics with requirements, and refuse a release that does not meet them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from microguard.pipelines.gate.expectations import met_by_expectations
from microguard.pipelines.gate.plain_names import metric_in_words
from microguard.schemas.errors import Failure, GateRefused, ProtectionFailed, refusal_text
from microguard.schemas.requirements.requirement import MetricKey, Requirement

EXPECTATIONS = "expectations"


@dataclass(frozen=True)
class Verdict:
    """One requirement and the measured metric.

    Attributes
    ----------
    check : str
        ``input`` or ``release``.
    metric, variable, dimension : str, str or None, int or None
        What was measured.
    found, limit : float or None
        Measured value and limit; `found` is None if the metric was not measured.
    passed : bool
    promised : bool
        Whether a failure is a broken promise rather than a missed limit of quality.
    sense : str or None
        ``at least`` or ``at most`` the limit; None in evidence of earlier versions.
    """

    check: str
    metric: str
    variable: str | None
    dimension: int | None
    found: float | None
    limit: float | None
    passed: bool
    promised: bool
    sense: str | None = None


@dataclass(frozen=True)
class Verdicts:
    """The verdicts on all requirements.

    Attributes
    ----------
    rows : tuple of Verdict
    broken : tuple of Failure
        Failed requirements of promises.
    failures : tuple of Failure
        Limits that are not met, with what was found, what was expected, and what to do.
    """

    rows: tuple[Verdict, ...]
    broken: tuple[Failure, ...]
    failures: tuple[Failure, ...]

    @property
    def passed(self) -> bool:
        """Whether every requirement is met."""
        return not self.failures and not self.broken


def judge(
    check: str,
    requirements: Iterable[Requirement],
    metrics: Mapping[MetricKey, float],
    evidence: Path | None = None,
) -> Verdicts:
    """Judge metrics by requirements, by our own code and by Great Expectations; both must find them met.

    Parameters
    ----------
    check : str
        ``input`` or ``release``.
    requirements : iterable of Requirement
    metrics : mapping of MetricKey to float
        The metrics; a requirement whose metric is absent counts as not met.
    evidence : Path, optional
        Folder for the results of Great Expectations; by default they are not written.
    """
    required = tuple(requirements)
    present = [requirement for requirement in required if requirement.key in metrics]
    expected = met_by_expectations(check, present, metrics, evidence)
    rows: list[Verdict] = []
    broken: list[Failure] = []
    failures: list[Failure] = []
    for requirement in required:
        measured = float(metrics[requirement.key]) if requirement.key in metrics else None
        passed = (
            measured is not None and requirement.met(measured) and expected.get(requirement.key.column, False)
        )
        rows.append(_verdict(check, requirement, measured, passed))
        if not passed:
            failure = requirement.failure(measured, metric_in_words(requirement.key))
            (broken if requirement.promised else failures).append(failure)
    return Verdicts(tuple(rows), tuple(broken), tuple(failures))


def refuse(verdicts: Verdicts) -> None:
    """Raise if a promise is broken or a limit is not met.

    Raises
    ------
    ProtectionFailed
        If the written files differ from the protected data, or break a promise.
    GateRefused
    """
    if verdicts.broken:
        head = "The written files do not meet the guarantee. Nothing was published."
        raise ProtectionFailed(refusal_text(head, verdicts.broken), verdicts.broken)
    if verdicts.failures:
        count = f"{len(verdicts.failures)} of {len(verdicts.rows)} checks failed"
        head = f"The gate refuses this release: {count}. Nothing was published."
        raise GateRefused(refusal_text(head, verdicts.failures), verdicts.failures)


def _verdict(check: str, requirement: Requirement, measured: float | None, passed: bool) -> Verdict:
    key = requirement.key
    limit = requirement.at_most if requirement.at_least is None else requirement.at_least
    return Verdict(
        check=check,
        metric=key.metric,
        variable=key.variable or None,
        dimension=key.dimension or None,
        found=measured,
        limit=limit,
        passed=passed,
        promised=requirement.promised,
        sense="at most" if requirement.at_least is None else "at least",
    )
