"""Information loss of the numeric quasi-identifiers, computed from the published values, and its bounds.

The tasks have computed sums over records for each block, in units that all blocks share. Here the sums are
added in the order of the blocks, so that the result does not depend on which task finished first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from microguard.pipelines.evidence import plots
from microguard.pipelines.measures.block_reports import BlockReports
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.measure import Measure
from microguard.schemas.requirements.requirement import MetricKey, Requirement
from microguard.schemas.specification.model import Specification

MORE = "raise method.effort, lower release.k, protect fewer variables together, or accept more in [quality]"


@dataclass(frozen=True)
class Loss:
    """Information loss of one clustering in standardised units; the weights of variables do not affect SSE
    and SST.

    Attributes
    ----------
    sse, sst, information_loss : float
        SSE and SST of the published numeric variables; the loss is SSE/SST.
    objective, lower_bound, whole_file_lower_bound : float or None
        Cost of the clusterings before rounding, nominal variables and weights of variables included; lower
        bound given the blocks; lower bound for any clustering of the file. None if not proved for every
        record of the release.
    by_variable : mapping of variable to its SSE/SST
    weighted_by : str or None
        The sampling weight that is used for all these numbers.
    trimmed : int
        Records whose weight is trimmed in the published values of their clusters.
    sampled : int or None
        Number of sampled records; None if all are compared. A method without blocks is measured on a sample.
    """

    sse: float
    sst: float
    information_loss: float
    objective: float | None
    lower_bound: float | None
    whole_file_lower_bound: float | None
    by_variable: dict[str, float]
    weighted_by: str | None = None
    trimmed: int = 0
    sampled: int | None = None


def _total(comparison: Comparison, reports: BlockReports | None, name: str) -> float | None:
    """Sum a number over the blocks; return None if a block does not have it, or if a record is in no
    block.
    """
    if reports is None:
        return None
    numbers = [report[name] for report in reports.blocks if report.get(name) is not None]
    whole = len(numbers) == len(reports.blocks) and reports.records == comparison.records
    return math.fsum(numbers) if whole else None


def _information_loss(section: Mapping[str, Loss]) -> float:
    sst = sum(part.sst for part in section.values())
    return sum(part.sse for part in section.values()) / sst if sst > 0 else 0.0


class LossMeasure(Measure[Comparison, dict[str, Loss]]):
    """Information loss of the numeric quasi-identifiers, and its proved bounds."""

    name = "loss"
    section = dict[str, Loss]

    def compute(self, comparison: Comparison) -> dict[str, Loss] | None:
        """Compute the section; return None if the measure does not apply."""
        section = {}
        groups = {group.name: group for group in comparison.specification.clusterings}
        for name, moments in comparison.moments.items():
            scales = comparison.scales_of(name)
            if scales:
                reports = comparison.reports.get(name)
                section[name] = Loss(
                    sse=float(moments.sse.sum()),
                    sst=float(moments.sst.sum()),
                    information_loss=moments.information_loss,
                    objective=_total(comparison, reports, "objective"),
                    lower_bound=_total(comparison, reports, "lower_bound"),
                    whole_file_lower_bound=_total(comparison, reports, "file_bound"),
                    by_variable={
                        variable: float(sse / sst) if sst > 0 else 0.0
                        for variable, sse, sst in zip(scales, moments.sse, moments.sst, strict=True)
                    },
                    weighted_by=comparison.specification.weighted_by(groups[name]),
                    trimmed=sum(report.get("trimmed", 0) for report in (reports.blocks if reports else ())),
                    sampled=None if reports else len(comparison.pairs or ()),
                )
        return section or None

    def metrics(self, section: Mapping[str, Loss], comparison: Comparison) -> dict[MetricKey, float]:
        """Return the numbers that the gate may limit."""
        return {MetricKey("information_loss"): _information_loss(section)}

    def limits(self, specification: Specification) -> Iterator[Requirement]:
        """Return the limits of `[quality]` on these numbers."""
        limit = specification.quality.max_information_loss
        if limit is not None and specification.numeric:
            line = "[quality] max_information_loss = {above}"
            yield Requirement(MetricKey("information_loss"), MORE, at_most=limit, line=line)

    def disclosed(self, section: dict[str, Loss]) -> Mapping[str, float]:
        """Return the numbers that `publish.disclose` may make public."""
        return {"information_loss": _information_loss(section)}

    def plots(self, section: Mapping[str, Loss], k: int) -> dict[str, Any]:
        """Draw the section."""
        return {name: plots.loss_plot(part.by_variable) for name, part in section.items()}

    def headline(self, section: Mapping[str, Loss], k: int) -> Iterator[str]:
        """Return the sentences that the approver must read first."""
        yield f"The numeric variables lost {100 * _information_loss(section):.3g} % of their variation."
