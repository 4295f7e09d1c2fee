"""Preview of risk and loss of a specification in this process, without Spark, within two seconds.

Figures that are counted on all records are exact. Figures that depend on clusters are estimated from blocks
(`clustering`), with their errors. Groups of variables are clustered one by one, as in a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from microguard.pipelines.measures.registry import record_measures
from microguard.pipelines.workbench.blocks import Estimate
from microguard.pipelines.workbench.clustering import Clustering
from microguard.pipelines.workbench.data import Data
from microguard.pipelines.workbench.figures import CHANGED, LOSS, Limit, Preview
from microguard.pipelines.workbench.used_records import UsedRecords
from microguard.schemas.errors import Failure
from microguard.schemas.method_registry import method_row
from microguard.schemas.requirements.requirement import MetricKey
from microguard.schemas.specification.model import Specification

METHOD = "microaggregation"
"""Method by which risk and loss are computed, whatever the specification chooses."""


def preview(
    data: Data, specification: Specification, show: Callable[[Preview], None] = lambda _: None
) -> Preview:
    """Measure a specification on the records in memory.

    Parameters
    ----------
    show : callable
        Called with the figures at effort fast, before the effort of the specification is measured.

    Raises
    ------
    InputRejected, SpecificationError
        If a variable cannot be measured.
    """
    used = UsedRecords(data, specification)
    groups = {
        group.name: Clustering(used, group.variables, 1 / len(specification.clusterings))
        for group in specification.clusterings
    }
    clusterings = list(groups.values())
    first = _measured(data, used, groups)
    if not any(each.searches for each in clusterings):
        return first
    show(first)
    losses = dict(first.losses)
    for each in clusterings:
        if each.searches:
            factor = each.factor_of_effort()
            names = [*each.numeric, *each.nominal]
            losses |= {name: losses[name].times(factor) for name in names}
    corrected = replace(first, losses=losses, effort=specification.method.effort)
    return _with_means(corrected, used)


def _measured(data: Data, used: UsedRecords, groups: Mapping[str, Clustering]) -> Preview:
    """Return the figures measured with effort fast."""
    specification, clusterings = used.specification, list(groups.values())
    found = [each.clustered() for each in clusterings]
    losses: dict[str, Estimate] = {}
    before: dict[str, np.ndarray] = {}
    after: dict[str, np.ndarray] = {}
    for each, clustered in zip(clusterings, found, strict=True):
        if clustered is not None:
            losses |= each.losses(clustered)
            before |= clustered.before
            after |= clustered.after
    metrics: dict[MetricKey, Estimate] = {}
    if len(found) == 1 and found[0] is not None:
        metrics = clusterings[0].risks(found[0])
    guarantees = method_row("records", specification.method.name).guarantees
    figures = Preview(
        records=data.profile.records,
        used=len(used.rows),
        clustered=min((0 if each is None else len(each.rows) for each in found), default=0),
        k=specification.release.k,
        counts={name: each.counts() for name, each in groups.items()},
        metrics=metrics,
        losses=losses,
        limits=(),
        effort="fast",
        before=before,
        after=after,
        names={name: used.columns[name].names for name in used.nominal if name in before},
        notes=tuple(_notes(data, used, clusterings)),
        promises_k="k-anonymity" in guarantees,
        is_of_method=specification.method.name == METHOD,
        rejection=_rejection(used),
    )
    return _with_means(figures, used)


def _rejection(used: UsedRecords) -> Failure | None:
    """Return the failure of a run that would reject more records than the specification allows."""
    most = used.specification.missing.max_rejected
    if used.rejected <= most:
        return None
    keep = all(name in used.numeric for name in used.lacking)
    return Failure(
        "records_rejected",
        "records that are rejected because a value is missing",
        f"{used.rejected:,}",
        f"at most {most:,}",
        'protect records without a number in clusters of their own (missing.numeric = "own_cluster"), or '
        "raise missing.max_rejected"
        if keep
        else "mend the records, or raise missing.max_rejected",
        '[missing] numeric = "own_cluster"' if keep else f"[missing] max_rejected = {used.rejected}",
    )


def _notes(data: Data, used: UsedRecords, clusterings: Sequence[Clustering]) -> Iterable[str]:
    """Yield notes on how these figures differ from those of a run."""
    specification, k = used.specification, used.specification.release.k
    if used.rejected:
        names = ", ".join(f"{name} ({count:,})" for name, count in used.lacking.items())
        yield (
            f"{used.rejected:,} of {data.profile.records:,} records are left out, because a run rejects "
            f"records without a value of: {names}."
        )
    if used.one_of_each_unit:
        yield "k counts units: one record of each unit is measured."
    if specification.groups:
        yield (
            "Groups are protected separately: k holds within each group, and anyone who knows variables of "
            "several groups may find a unique record. The shares of unique and of homogeneous records are "
            "not estimated here. Check predicts whether their limits are met."
        )
    if not used.numeric:
        yield (
            "In a run, variables without numbers are protected by counts of combinations; here records are "
            "clustered. Check predicts whether the limits are met by the method itself."
        )
    left_out = max((each.left_out for each in clusterings), default=0)
    if left_out:
        strata = max(each.small_strata for each in clusterings)
        yield (
            f"{left_out:,} records are in {strata:,} strata (regions and missing patterns) of fewer than k "
            f"= {k} records. Risk and loss exclude them. A run merges, suppresses or refuses them."
        )
    if specification.ordinal or specification.hierarchical:
        yield (
            "Ordinal and hierarchical variables are clustered like nominal ones here: a run uses the "
            "distances between their categories, and loses less information."
        )
    if specification.method.representative == "medoid":
        yield "Clusters publish their means here; with medoids, the loss is larger."
    if specification.method.name != METHOD:
        yield "The figures are those of microaggregation, and not of the chosen method."
    if specification.weight is not None and specification.method.weighted:
        yield "Losses here count each record once; those of a run are weighted."
    if data.profile.cut:
        yield (
            f"The file has more records: only the first {data.profile.records:,} are measured. For the "
            "whole file, losses are smaller, and counts before protection are larger."
        )


def _with_means(found: Preview, used: UsedRecords) -> Preview:
    """Add the means of the losses over the variables, and judge the limits."""
    metrics = dict(found.metrics)
    for key, names in ((LOSS, used.numeric), (CHANGED, used.nominal)):
        each = [found.losses[name] for name in names if name in found.losses]
        if each:
            metrics[key] = Estimate(
                float(np.mean([one.value for one in each])), float(np.mean([one.error for one in each]))
            )
    return replace(found, metrics=metrics, limits=tuple(_limits(metrics, used.specification)))


def _limits(metrics: Mapping[MetricKey, Estimate], specification: Specification) -> Iterable[Limit]:
    for measure in record_measures(specification):
        for requirement in measure.limits(specification):
            estimate = metrics.get(requirement.key)
            if estimate is not None:
                yield Limit.judge(requirement, estimate)
