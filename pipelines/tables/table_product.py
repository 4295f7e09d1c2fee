"""Common parts of all products of tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import pyarrow as pa
from microguard.pipelines.evidence.evidence import Counts
from microguard.pipelines.guarantees.original_cells import OriginalCells
from microguard.pipelines.guarantees.tables import TableGuarantee
from microguard.pipelines.intake.read import Microdata
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.pipelines.job import Job
from microguard.pipelines.measures.measure import Measure, Measured
from microguard.pipelines.method import record_method
from microguard.pipelines.publication.stage import Staged
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.cells.finished import cells_of_table
from microguard.pipelines.tables.cells.identity import (
    identical_members,
    measures_of,
    origin_of,
    with_other_weights,
)
from microguard.pipelines.tables.cells.microdata import cells_of_microdata
from microguard.pipelines.tables.chunks_in_tasks import mapper_of
from microguard.pipelines.tables.contributor_map import has_contributors, write_contributors
from microguard.pipelines.tables.files import stage_tables
from microguard.pipelines.tables.groupings import CodeGroups
from microguard.pipelines.tables.manifest import layout_of, table_manifest
from microguard.pipelines.tables.nested_codes import with_parents_of_codes
from microguard.pipelines.tables.nested_columns import (
    refuse_nested_columns,
    refuse_unknown_columns,
    refuse_unrelated_columns,
)
from microguard.pipelines.tables.precision import with_digits_of_data
from microguard.pipelines.tables.published_before import (
    CHANGED,
    Places,
    PublishedCell,
    PublishedValues,
    in_common,
    of_the_same_records,
)
from microguard.pipelines.tables.published_cells import published_cells
from microguard.pipelines.tables.read_back import WrittenTable, verify_written_table
from microguard.pipelines.tables.renamed_columns import refuse_renamed_columns
from microguard.pipelines.tables.rescaled_duplicates import refuse_other_units
from microguard.schemas.errors import GateRefused, InputRejected
from microguard.schemas.requirements.requirement import Requirement
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table_input import as_input, table_of
from microguard.sdc.errors import SdcError

Comparison = TypeVar("Comparison")
NO_TABLE = (
    "The input cannot be tabulated: {error}. Nothing was published. Correct the input, or [table] if it "
    "describes another input."
)


@dataclass(frozen=True)
class ProtectedTable(Generic[Comparison]):
    """A protected table and its original cells.

    Attributes
    ----------
    comparison : original cells next to protected ones
    contents : mapping
        File name -> content to be published.
    standing : PublishedValues
        The cells of the table that were published before; they keep their values.
    origin : mapping
        ``source``, ``period`` and ``release_id`` of its cells.
    """

    comparison: Comparison
    contents: Mapping[str, pa.Table]
    standing: PublishedValues
    origin: Mapping[str, str]


class TableProduct(ABC, Generic[Comparison]):
    """Table of one specification, with the tables that are linked with it."""

    content = "table"
    measures: tuple[Measure[Any, Any], ...]

    def __init__(self, specification: Specification, guarantee: TableGuarantee) -> None:
        self.specification = specification
        self.table = table_of(specification)
        self.guarantee = guarantee
        self.guarantees, self.limits = (self.guarantee,), self.guarantee.limits
        self.reader = as_input(specification)

    def with_data_defaults(self, screened: ValidatedInput) -> Specification:
        """Return the specification with two defaults from the data: the number of decimals and the parents of
        nested codes.

        See `precision` and `nested_codes`.
        """
        chosen = with_digits_of_data(screened.frame, self.specification)
        self.specification = with_parents_of_codes(screened.frame, chosen)
        self.table = table_of(self.specification)
        return self.specification

    def accept(self, microdata: Microdata) -> None:
        """Accept every output format, because all of them can represent codes and numbers."""

    def protect(self, job: Job, screened: ValidatedInput, release_id: str) -> ProtectedTable[Comparison]:
        """Protect the table of the records; if the method includes swapping, exchange the areas of records
        first.

        Raises
        ------
        InputRejected, GateRefused, ProtectionFailed
        """
        if self.table.swapped:
            method = record_method(self.reader)
            frame, _ = method.protect(job, screened, screened.frame, release_id)
            screened = replace(screened, frame=frame)
        return self.protect_counted(job, screened, release_id)

    @abstractmethod
    def protect_counted(
        self, job: Job, screened: ValidatedInput, release_id: str
    ) -> ProtectedTable[Comparison]:
        """Tabulate, protect, and compute the remaining disclosure."""

    def compare(self, screened: ValidatedInput, protected: ProtectedTable[Comparison]) -> Comparison:
        """Return the protected cells together with the original ones."""
        return protected.comparison

    def stage(self, job: Job, protected: ProtectedTable[Comparison], release_id: str) -> Staged:
        """Write codes and values to the staging area."""
        return stage_tables(protected.contents, self.table, job.areas, release_id)

    def read_back(self, job: Job, protected: ProtectedTable[Comparison], staged: Staged) -> WrittenTable:
        """Count the guarantee on the files, and compare the files with the staged content."""
        original, groupings = self.original(protected)
        layout = layout_of(self.table, protected.contents, groupings)
        mapper = mapper_of(job.spark)
        return verify_written_table(
            staged.folder, protected.contents, self.table, layout, self.guarantee, original, mapper
        )

    @abstractmethod
    def original(self, protected: ProtectedTable[Comparison]) -> tuple[OriginalCells, CodeGroups]:
        """Return the cells before protection, and the codes of further hierarchies over a column."""

    @abstractmethod
    def requirements(self, measured: Measured) -> Iterable[Requirement]:
        """Return the requirements on the written files, and the limits of `[table.quality]`."""

    def counts(
        self, screened: ValidatedInput, protected: ProtectedTable[Comparison], written: WrittenTable
    ) -> Counts:
        """Count the records or cells that were read, and the cells that were published."""
        return Counts(screened.records, dict(screened.rejected), screened.suppressed, written.records)

    def manifest(
        self,
        release_id: str,
        staged: Staged,
        written: WrittenTable,
        disclosed: Mapping[str, float],
        successor: bool,
    ) -> Mapping[str, Any]:
        """Return the guarantee, the limits, and the description of the files."""
        return table_manifest(self.specification, self.table, self.guarantee, release_id, written, successor)

    @abstractmethod
    def write_annex(self, folder: Path, protected: ProtectedTable[Comparison]) -> None:
        """Write each cell before and after protection, its interval, and whether it is published for the
        first time.
        """

    def _tabulated(self, job: Job, screened: ValidatedInput, release_id: str) -> Cells:
        """Return the cells, and store their contributors for the joint audit.

        Raises
        ------
        InputRejected
        """
        cells = cells_of(screened, self.specification, job.areas.key())
        if self.table.source == "microdata":
            write_contributors(screened.frame, self.specification, release_id, job.areas)
        return cells

    def _before(self, every: Iterable[PublishedCell], cells: Cells) -> list[PublishedCell]:
        """Return published cells of the same records, under any name, source and period.

        Parameters
        ----------
        every : published cells of all tables

        Raises
        ------
        GateRefused
            If the same amounts were published in another unit or under other columns, or by a method of
            another kind: a true value would disclose the changed or suppressed one.
        """
        every, accepted = list(every), self.specification.publish.successive == "accept"
        if not accepted:
            refuse_other_units(cells, self.table, every)
            refuse_renamed_columns(cells, self.table, every)
            self._refuse_other_weights(cells, every)
        before = [cell for cell in every if cell.measure in measures_of(self.table)]
        same = of_the_same_records(cells, self.table, before, self._origin)
        alike = [cell for cell in same if (cell.status == CHANGED) != self.table.suppressed]
        other = [cell for cell in same if (cell.status == CHANGED) == self.table.suppressed]
        common = in_common(cells, self.table, other) if not accepted else []
        if common:
            releases = ", ".join(sorted({cell.release_id for cell in common})[:3])
            kinds = ("with suppressed cells and true values", "with changed values")
            raise GateRefused(
                f"{len(common)} cell(s) of this table were published before {kinds[self.table.suppressed]}, "
                f"by {releases}: expected none, because both tables together disclose cells. Nothing was "
                "published. Choose the earlier method (table.method), withdraw that table, or set "
                'publish.successive to "accept" if a steward has decided that they may be compared.'
            )
        return alike

    def _every_cell(self, job: Job) -> list[PublishedCell]:
        """Return the published cells of all tables.

        Raises
        ------
        GateRefused
        """
        return list(published_cells(job.areas))

    def _refuse_other_weights(self, cells: Cells, every: Iterable[PublishedCell]) -> None:
        """Refuse a weighted table next to an unweighted one if cells of both have the same amount.

        All weights of such a cell are 1, as those of large units often are: it would be published twice, with
        independent draws or other suppressed cells.
        """
        renamed = [replace(cell, measure=with_other_weights(cell.measure)) for cell in every]
        before = [cell for cell in renamed if cell.measure in measures_of(self.table)]
        places = Places(cells, self.table)
        same = of_the_same_records(cells, self.table, before, self._origin)
        common = [cell for cell in same if cell.original and places.equal(cell, places.of(cell))]
        if common:
            releases = ", ".join(sorted({cell.release_id for cell in common})[:3])
            now, then = ("with", "without") if self.table.weighted else ("without", "with")
            raise GateRefused(
                f"{len(common)} cell(s) of this table {now} weights were published before {then} weights, by "
                f"{releases}, and have the same amount, because the weights of their records are 1, or are "
                "rounded to 1: expected none, because such a cell would be published twice. Nothing was "
                "published. Set table.weighted as for that table, withdraw it, or set publish.successive to "
                '"accept" if a steward has decided that both may be published.'
            )

    def _refuse_related_columns(
        self, screened: ValidatedInput, cells: Cells, before: list[PublishedCell]
    ) -> None:
        """Refuse columns whose codes add up to codes of a column of another table, or may do so.

        The columns of a finished table have no records, so that only true values are compared.

        Raises
        ------
        GateRefused
        """
        if self.table.source == "cells":
            refuse_unknown_columns((), self.table, cells, before, self._origin)
            return
        known = cells.members is not None and bool((cells.members != "").any())
        tied = bool((identical_members(cells, self.table) >= 0).any())
        refuse_unrelated_columns(screened.raw, self.table, tied=tied)
        refuse_nested_columns(screened.raw, self.table, before, known=known)
        if not has_contributors(self.specification):
            refuse_unknown_columns(screened.raw.columns, self.table, cells, before, self._origin)

    @property
    def _origin(self) -> dict[str, str]:
        return origin_of(self.specification)


def cells_of(screened: ValidatedInput, specification: Specification, key: bytes) -> Cells:
    """Tabulate the records of an input, or read its cells if it is a finished table.

    Raises
    ------
    InputRejected
    """
    table = table_of(specification)
    try:
        if table.source == "cells":
            return cells_of_table(screened.frame, table)
        return cells_of_microdata(screened.frame, specification).keyed(key)
    except SdcError as error:
        raise InputRejected(NO_TABLE.format(error=error)) from error
