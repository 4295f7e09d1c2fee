"""Microaggregation: protect each clustering by clusters of at least k records, or by frequencies."""

from __future__ import annotations

from collections.abc import Mapping

from microguard.pipelines.guarantees.guarantee import Guarantee
from microguard.pipelines.guarantees.k_anonymity import Group, KAnonymity
from microguard.pipelines.guarantees.l_diversity import LDiversity
from microguard.pipelines.guarantees.record_files import RecordFiles
from microguard.pipelines.intake.validate import ValidatedInput, merge_strata, pattern_mask
from microguard.pipelines.job import Job
from microguard.pipelines.measures.block_reports import BlockReports
from microguard.pipelines.method import RecordMethod
from pyspark.sql import DataFrame


class Microaggregation(RecordMethod):
    """Clusters of at least k records, or frequencies of key combinations that are 0 or at least k."""

    limits = (
        "Microaggregation reduces variances. Totals of these records (weighted ones, if means are "
        "weighted) may equal the original totals: a total that must be protected in a table must not be "
        "published from the same microdata.",
        "Medians and medoids publish true values.",
        "A zero in a protected table is not evidence of absence.",
    )

    def guarantees(self) -> tuple[Guarantee[RecordFiles], ...]:
        """Promise k-anonymity of each group of variables, and l-diversity if min_diversity is above 1."""
        specification, method = self.specification, self.specification.method
        region = () if specification.region is None else (specification.region,)
        groups = tuple(Group(each.name, tuple(each.variables), region) for each in specification.clusterings)
        anonymous = KAnonymity(specification.release.k, method.unit, groups, not specification.groups)
        if method.min_diversity == 1:
            return (anonymous,)
        diverse = LDiversity(
            method.min_diversity,
            tuple(specification.sensitive),
            groups,
            specification.withholds_values,
        )
        return (anonymous, diverse)

    def protect(
        self, job: Job, screened: ValidatedInput, frame: DataFrame, release_id: str
    ) -> tuple[DataFrame, Mapping[str, BlockReports]]:
        """Protect one clustering after the other; each time, the records are written to files."""
        specification, reports = self.specification, {}
        for group in specification.clusterings:
            if specification.strategy(group) == "microaggregation":
                from microguard.pipelines.records.protect_by_microaggregation import (
                    protect_by_microaggregation,
                )

                pattern = pattern_mask(group, specification)
                strata = merge_strata(screened.strata, pattern)
                frame, reports[group.name] = protect_by_microaggregation(
                    job, frame, strata, pattern, group, screened.scales, screened, release_id
                )
            else:  # imported here, so that a run imports only the strategies that it needs
                from microguard.pipelines.records.protect_by_frequency import protect_by_frequency

                frame, reports[group.name] = protect_by_frequency(job, frame, group, release_id)
        return frame, reports
