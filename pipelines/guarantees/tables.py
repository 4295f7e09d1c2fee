"""Common parts of the guarantees of tables: one value for each cell, and totals compared with their parts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from microguard.pipelines.guarantees.guarantee import Count, Guarantee, promise
from microguard.pipelines.guarantees.original_cells import OriginalCells, Published, beside_original
from microguard.pipelines.guarantees.table_files import TableFiles
from microguard.schemas.requirements.requirement import MetricKey, Requirement

INEXACT = "Any value may differ from the true value: do not interpret small differences between cells."
ATTACKER = (
    "The protection holds against an attacker who knows the method, its parameters, every published number "
    "and the list of cells, but not the key of the agency. Such an attacker knows that "
)
ONE_VALUE = (
    "A cell is published with the same value in every table that contains it. This includes tables of a "
    "part of the units, if the part contains all its contributors. Several tables therefore disclose no "
    "more about a cell than one table. Cells of other contributors, periods or amounts are changed "
    "separately. Microdata of the same records may disclose more."
)
#: Default condition of a wrong total: absent, with a suppressed part, or not the sum of its parts.
NOT_THE_SUM = "total IS NULL OR hidden > 0 OR total <> parts_sum"


class TableGuarantee(Guarantee[TableFiles]):
    """A promise about tables.

    Attributes
    ----------
    wrong : str
        SQL condition of a total that breaks the promise (`TableFiles.totals`).
    counts_sensitive : bool
        Whether `compare` counts sensitive cells that are too near to their true value. Noise may leave any
        cell unchanged; the measures of microguard's noise methods limit the resulting disclosure.
    """

    wrong: ClassVar[str] = NOT_THE_SUM
    counts_sensitive: ClassVar[bool] = True

    @property
    def condition(self) -> str:
        """Return the SQL condition of a total that violates the guarantee."""
        return self.wrong

    def requirements(self) -> tuple[Requirement, ...]:
        """Require that totals are correct, no cell has two values, and only allowed values are published."""
        return (promise("lines_open"), promise("values_not_allowed"))

    def private_requirements(self) -> tuple[Requirement, ...]:
        """Require that sensitive cells keep their distance, and that no cell exceeds its limits."""
        return (promise("cells_unprotected"), promise("cells_astray"))

    @property
    @abstractmethod
    def forbidden(self) -> str:
        """Return the SQL condition of a value ``v`` that may not be published."""

    @abstractmethod
    def compare(self, published: Published, original: OriginalCells) -> tuple[int, int]:
        """Count unprotected cells, and cells that exceed their limits or are missing."""

    def count(self, files: TableFiles) -> Count:
        """Count on the files; if the original cells are given, also compare with these."""
        cells, totals = files.cells(), files.totals(self.condition)
        repeated, forbidden = files.repeated(), files.cells_where(self.forbidden)
        metrics = {
            MetricKey("lines_open"): float(totals.wrong + repeated),
            MetricKey("values_not_allowed"): float(forbidden),
        }
        if files.original is not None:
            beside = beside_original(files.by_cell(), files.original)
            unprotected, astray = self.compare(beside, files.original)
            metrics[MetricKey("cells_unprotected")] = float(unprotected)
            metrics[MetricKey("cells_astray")] = float(astray + beside.foreign)
        detail = (
            f"{cells} cells; {totals.wrong} of {totals.compared} totals {self.broken}; {repeated} cells "
            f"repeated, or with two values; {forbidden} values that may not be published"
        )
        return Count(metrics, {"cells": cells, "lines": totals.compared}, detail)

    @property
    def broken(self) -> str:
        """Return the description of a total that violates the guarantee."""
        return "differ from the sum of their parts"

    @abstractmethod
    def method(self) -> Mapping[str, Any]:
        """Return the name of the method, with the parameters that a reader needs to check the files."""

    def manifest(self, count: Count) -> dict[str, Any]:
        """Return the entries ``guarantee``, ``method`` and ``cells``."""
        return {"guarantee": self.statement, "method": dict(self.method()), "cells": count.facts["cells"]}
