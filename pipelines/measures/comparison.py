"""Original and protected records of a release, which all measures of records compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.intake.fixed_point import Scale
from microguard.pipelines.intake.numeric_parsing import Range, numeric_columns, ranges_of
from microguard.pipelines.intake.totals import total_sums
from microguard.pipelines.intake.validate import REGION, ValidatedInput
from microguard.pipelines.measures.block_reports import BlockReports
from microguard.pipelines.measures.classes import Classes, classes_of, close_within
from microguard.pipelines.measures.exposure import Exposure
from microguard.pipelines.measures.frequency_tables import Tabulation, frequency_tables
from microguard.pipelines.measures.one_pass import Summary, in_one_pass
from microguard.pipelines.measures.pairs import ORIGINAL, Pairs, pair_columns, pairs_from, pairs_of
from microguard.pipelines.measures.table_errors import Table, TableErrors, table_errors
from microguard.schemas.specification.model import WHOLE, Specification
from microguard.sdc.measures.moments import Moments
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

#: Column that contains the sampled records in `Comparison.sums`.
_PAIRS = "pairs"


@dataclass(frozen=True)
class Comparison:
    """A protection, and the original records.

    Attributes
    ----------
    specification : Specification
    screened : ValidatedInput
        The original records: all that were accepted.
    exposure : Exposure
        Their risk before protection.
    protected : DataFrame
        All records to be published, with the published columns and the unit that k counts.
    records : int
        Number of records to be published.
    reports : mapping of clustering to BlockReports
        Reports on the records protected in this run; for a register, on the classes that this update creates.
    scales : mapping of numeric quasi-identifier to Scale
    drawn : DataFrame, optional
        Published records, some of them with their original values (`pipelines.measures.pairs`); by default
        `protected`.
    """

    specification: Specification
    screened: ValidatedInput
    exposure: Exposure
    protected: DataFrame
    records: int
    reports: Mapping[str, BlockReports]
    scales: Mapping[str, Scale]
    drawn: DataFrame | None = None

    @property
    def records_before(self) -> DataFrame | None:
        """Return the originals of the published records; None if earlier releases published some of them."""
        return self.screened.frame if self.drawn is None else None

    @property
    def keys(self) -> list[str]:
        """Return the region, if any, which is part of every key combination."""
        return [] if self.specification.region is None else [self.specification.region]

    @property
    def joint_keys(self) -> list[str]:
        """Return the region and all quasi-identifiers."""
        return [*self.keys, *self.specification.quasi_identifiers]

    @cached_property
    def moments(self) -> Mapping[str, Moments]:
        """Return the moments of the numeric variables of each clustering, summed over all records of its
        blocks.

        For a method without blocks, these are the moments of the sampled records (`pairs`).
        """
        if self.reports or self.pairs is None:
            return {name: reports.moments for name, reports in self.reports.items()}
        scales = [self.scales[name] for name in self.pairs.numeric]
        before, after = (
            (numbers - [scale.mean for scale in scales]) / [scale.divisor for scale in scales]
            for numbers in (self.pairs.numbers_before, self.pairs.numbers_after)
        )
        return {WHOLE: Moments.from_values(before, after)}

    def scales_of(self, clustering: str) -> dict[str, Scale]:
        """Return the scales of the numeric variables of a clustering."""
        group = next(group for group in self.specification.clusterings if group.name == clustering)
        return {name: self.scales[name] for name in group.variables if name in self.scales}

    @cached_property
    def classes_before(self) -> Classes:
        """Return the classes of the original records on the region and all quasi-identifiers."""
        if WHOLE in self.exposure.classes:
            return self.exposure.classes[WHOLE]
        frame, records = self.screened.frame, self.screened.remaining
        household = self.specification.household
        return classes_of(frame, self.joint_keys, self.specification, records, household=household)

    @cached_property
    def classes_after(self) -> Classes:
        """Return the classes of the protected records; `alone` counts unique records for each entry of
        `joins`.
        """
        specification, household = self.specification, self.specification.household
        return classes_of(
            self.protected,
            self.joint_keys,
            specification,
            self.records,
            further=joins(specification),
            sensitive=specification.sensitive,
            numbers=self.sensitive_numbers,
            apart=self._apart,
            whole=self.screened.frame if self.drawn is None else None,
            household=household if household in self.protected.columns else None,
        )

    @cached_property
    def sensitive_numbers(self) -> Mapping[str, Column]:
        """Return the sensitive variables whose values are numbers, as double columns."""
        return numeric_columns(self.protected, self.specification.sensitive, self.specification, self._ranges)

    @property
    def seldom_shared(self) -> tuple[str, ...]:
        """Return the sensitive variables with numbers, dates or times, whose values few persons share."""
        return tuple(name for name, each in self._ranges.items() if each.mostly_in_digits)

    @cached_property
    def _ranges(self) -> Mapping[str, Range]:
        """Return the ranges of sensitive values; compute them again if earlier releases published some of the
        records.
        """
        known = self.screened.untouched.ranges if self.drawn is None else None
        if known is not None:
            return known
        return ranges_of(self.protected, self.specification.sensitive, self.specification)

    @property
    def _apart(self) -> Mapping[str, float]:
        return close_within(self._ranges, self.sensitive_numbers)

    @cached_property
    def pairs(self) -> Pairs | None:
        """Return sampled records before and after protection; None if their original values are not
        stored.
        """
        specification, records = self.specification, self.screened.remaining
        if self.drawn is not None:
            return pairs_of(self.drawn, specification, records)
        if _PAIRS not in self.sums.column_names:
            return None
        drawn = pc.list_flatten(self.sums[_PAIRS])
        return pairs_from(pa.Table.from_struct_array(drawn), specification, records)

    @cached_property
    def sums(self) -> pa.Table:
        """Return the number of protected records and their `total_sums` in each region.

        The values of sampled records before and after are added if the frame has the original ones.
        """
        specification, keys = self.specification, [column(name).alias(REGION) for name in self.keys]
        sums = total_sums(specification.numeric, specification.weights)
        if self.drawn is None and ORIGINAL in self.protected.columns:
            pair = f.when(f.col(ORIGINAL).isNotNull(), f.struct(*pair_columns(specification)))
            sums.append(f.collect_list(pair).alias(_PAIRS))
        return self.protected.groupBy(*keys).agg(f.count(f.lit(1)).alias("records"), *sums).toArrow()

    @cached_property
    def tables_before(self) -> Mapping[Table, pa.Table]:
        """Return the control tables of the original records, unweighted and weighted."""
        return self._tables_of(self.screened.frame)

    @cached_property
    def tables_after(self) -> Mapping[Table, pa.Table]:
        """Return the control tables of the protected records; their frequencies are published."""
        return self._tables_of(self.protected)

    @cached_property
    def table_errors(self) -> tuple[TableErrors, ...]:
        """Return the errors of each control table."""
        return table_errors(self.tables_before, self.tables_after, self.specification.region)

    def summary_of_protected(self, columns: Mapping[str, Column], summary: Summary) -> dict[int, pa.Table]:
        """Compute a summary of the protected records (`in_one_pass`), and `tables_after` in the same pass."""
        specification = self.specification
        tabulation = Tabulation.of(self.protected, specification.control_tables, specification.weights)
        known = "tables_after" in vars(self)
        *cells, found = in_one_pass(
            self.protected, [*([] if known else tabulation.requests), (columns, summary)]
        )
        if cells:
            vars(self)["tables_after"] = tabulation.tables_in(cells[0])
        return found

    def _tables_of(self, frame: DataFrame) -> Mapping[Table, pa.Table]:
        return frequency_tables(frame, self.specification.control_tables, self.specification.weights)


def joined_columns(specification: Specification) -> tuple[str, ...]:
    """Return the unmodified columns by which an attacker may identify a record; sensitive ones are
    excluded.
    """
    known = {specification.region, *specification.sensitive}
    return tuple(name for name in specification.published_as_it_is if name not in known)


def known_sensitive(specification: Specification) -> tuple[str, ...]:
    """Return the sensitive variables from which an attacker may infer another one; () for a single
    variable.
    """
    return specification.sensitive if len(specification.sensitive) > 1 else ()


def joins(specification: Specification) -> list[tuple[str, ...]]:
    """Return the sets of columns that are joined with the protected variables, one set after the other.

    The sets are each single column of `joined_columns`, all of these together (no column if groups of
    variables are joined), and each sensitive variable if there are several.
    """
    joined, known = joined_columns(specification), known_sensitive(specification)
    jointly = [joined] if joined or known or specification.groups else []
    return [*((name,) for name in joined), *jointly, *((name,) for name in known)]
