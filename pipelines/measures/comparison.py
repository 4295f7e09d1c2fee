"""The original and the protected records of a release, which the measures of records compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from microguard.pipelines.intake.fixed_point import Scale
from microguard.pipelines.intake.numeric_parsing import numeric_columns
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.pipelines.measures.block_reports import BlockReports
from microguard.pipelines.measures.classes import Classes, classes_of
from microguard.pipelines.measures.exposure import Exposure
from microguard.pipelines.measures.frequency_tables import frequency_tables
from microguard.pipelines.measures.pairs import Pairs, pairs_of
from microguard.pipelines.measures.table_errors import Table, TableErrors, table_errors
from microguard.schemas.specification.model import WHOLE, Specification
from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class Comparison:
    """A protection and what it was made from.

    Attributes
    ----------
    specification : Specification
    screened : ValidatedInput
        The original records: all that were accepted.
    exposure : Exposure
        Their risk, measured before.
    protected : DataFrame
        All records to be published, with the published columns and what k counts.
    records : int
        How many these are.
    reports : mapping of clustering to BlockReports
        What was protected now; of a register those whose class is born tonight.
    scales : mapping of numeric quasi-identifier to Scale
    drawn : DataFrame, optional
        Published records with what some of them were (`pipelines.measures.pairs`); by default `protected`.
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
    def keys(self) -> list[str]:
        """The region, where there is one: part of every combination."""
        return [] if self.specification.region is None else [self.specification.region]

    @property
    def joint_keys(self) -> list[str]:
        """The region and all quasi-identifiers."""
        return [*self.keys, *self.specification.quasi_identifiers]

    def scales_of(self, clustering: str) -> dict[str, Scale]:
        """Scales of the numeric variables of a clustering."""
        group = next(group for group in self.specification.clusterings if group.name == clustering)
        return {name: self.scales[name] for name in group.variables if name in self.scales}

    @cached_property
    def classes_before(self) -> Classes:
        """Classes of the original records on the region and all quasi-identifiers."""
        if WHOLE in self.exposure.classes:
            return self.exposure.classes[WHOLE]
        frame, records = self.screened.frame, self.screened.remaining
        return classes_of(frame, self.joint_keys, self.specification, records)

    @cached_property
    def classes_after(self) -> Classes:
        """Those of the protected ones; `alone` by each of `joins`."""
        specification = self.specification
        return classes_of(
            self.protected,
            self.joint_keys,
            specification,
            self.records,
            further=joins(specification),
            sensitive=specification.sensitive,
            numbers=self.sensitive_numbers,
        )

    @cached_property
    def sensitive_numbers(self) -> Mapping[str, Column]:
        """Sensitive variables that hold numbers, as double columns."""
        return numeric_columns(self.protected, self.specification.sensitive, self.specification)

    @cached_property
    def pairs(self) -> Pairs | None:
        """Some records before and after; None where they do not travel together."""
        drawn = self.protected if self.drawn is None else self.drawn
        return pairs_of(drawn, self.specification, self.screened.remaining)

    @cached_property
    def tables_before(self) -> Mapping[Table, pa.Table]:
        """The control tables of the original records, weighted ones beside them."""
        return self._tables_of(self.screened.frame)

    @cached_property
    def tables_after(self) -> Mapping[Table, pa.Table]:
        """The control tables of the protected records; their frequencies are published."""
        return self._tables_of(self.protected)

    @cached_property
    def table_errors(self) -> tuple[TableErrors, ...]:
        """Errors of each control table."""
        return table_errors(self.tables_before, self.tables_after, self.specification.region)

    def _tables_of(self, frame: DataFrame) -> Mapping[Table, pa.Table]:
        return frequency_tables(frame, self.specification.control_tables, self.specification.weights)


def joined_columns(specification: Specification) -> tuple[str, ...]:
    """Columns published as they are by which an attacker may know records; sensitive ones are looked for."""
    known = {specification.region, *specification.sensitive}
    return tuple(name for name in specification.published_as_it_is if name not in known)


def known_sensitive(specification: Specification) -> tuple[str, ...]:
    """Return sensitive variables by which an attacker may find others: none where there is a single one."""
    return specification.sensitive if len(specification.sensitive) > 1 else ()


def joins(specification: Specification) -> list[tuple[str, ...]]:
    """What the protected variables are joined with: each of `joined_columns`, all of them (none where groups
    of variables are joined already), and each sensitive variable that has others beside it.
    """
    joined, known = joined_columns(specification), known_sensitive(specification)
    jointly = [joined] if joined or known or specification.groups else []
    return [*((name,) for name in joined), *jointly, *((name,) for name in known)]
