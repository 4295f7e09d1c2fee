"""Suppressed table: cells are withheld so that no sensitive one can be computed from the others.

Cell suppression (Cox 1980; Fischetti and Salazar 2001). A suppressed cell has no value and the status
``suppressed``; the files never tell primary from secondary suppressions. Counted on the files: the status
agrees with the value, what is published adds up, and no total or part follows by subtraction from one line.
The interval of a sensitive cell is computed by linear programs, in the audit with the original cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from microguard.pipelines.guarantees.guarantee import Count, promise
from microguard.pipelines.guarantees.original_cells import OriginalCells, Published
from microguard.pipelines.guarantees.table_files import STATUS, TableFiles
from microguard.pipelines.guarantees.tables import ONE_VALUE, TableGuarantee
from microguard.schemas.requirements.requirement import MetricKey, Requirement

METHOD = "cell suppression"
PUBLISHED, SUPPRESSED = "published", "suppressed"
STATEMENT = (
    "Cells that the disclosure rule finds sensitive are withheld, and others with them, so that no withheld "
    "value follows from one line of the published table. Published values are the true ones."
)
INTERVALS = (
    "Whoever knows the method and every published number can narrow a withheld value to an interval, by the "
    "lines of the table and by what is known of its contributors."
)
#: A line whose published cells do not add up, and one that leaves a single cell to be computed.
_OPEN = "hidden = 0 AND total IS NOT NULL AND total <> parts_sum"
_SINGLE = "hidden + (total IS NULL)::int = 1"


@dataclass(frozen=True)
class SuppressedTable(TableGuarantee):
    """Withheld cells that no single line gives away."""

    name = "suppressed table"

    @property
    def statement(self) -> str:
        """The promise in a sentence."""
        return STATEMENT

    @property
    def limits(self) -> tuple[str, ...]:
        """What the promise does not cover."""
        return (INTERVALS, ONE_VALUE)

    @property
    def condition(self) -> str:
        """A line of published cells that does not add up."""
        return _OPEN

    @property
    def forbidden(self) -> str:
        """None by its value alone: the status is compared with it."""
        return "false"

    def requirements(self) -> tuple[Requirement, ...]:
        """As for every table; status and value agree, and no line leaves a single cell to be computed."""
        return (*super().requirements(), promise("status_wrong"), promise("cells_by_subtraction"))

    def count(self, files: TableFiles) -> Count:
        """Count on the files."""
        counted = super().count(files)
        wrong = sum(
            int(
                files.engine.execute(
                    f"SELECT count(*) FROM {file} WHERE ({value} IS NULL) <> ({STATUS} = '{SUPPRESSED}') "
                    f"OR {STATUS} IS NULL OR {STATUS} NOT IN ('{PUBLISHED}', '{SUPPRESSED}')"
                ).fetchall()[0][0]
            )
            for file, value in files.relations()
        )
        single = files.totals(_SINGLE).wrong
        metrics = {
            **counted.metrics,
            MetricKey("status_wrong"): float(wrong),
            MetricKey("cells_by_subtraction"): float(single),
        }
        detail = f"{counted.detail}; {single} lines that leave a single cell to be computed"
        return Count(metrics, counted.facts, detail)

    def compare(self, published: Published, original: OriginalCells) -> tuple[int, int]:
        """Sensitive cells with a value; published cells that are not at their own value."""
        valued = ~np.isnan(published.shown)
        return int(np.sum(original.sensitive & valued)), int(np.sum(valued & (published.change != 0)))

    def method(self) -> dict[str, Any]:
        """Cell suppression."""
        return {"name": METHOD}

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> SuppressedTable:
        """Build the guarantee that a manifest states."""
        return cls()
