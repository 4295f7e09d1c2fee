"""Staged tables, read back to count the guarantee and to compare the files with the staged content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.guarantees.chunks import Mapper, in_turn
from microguard.pipelines.guarantees.guarantee import Count
from microguard.pipelines.guarantees.original_cells import OriginalCells
from microguard.pipelines.guarantees.table_files import table_files
from microguard.pipelines.guarantees.tables import TableGuarantee
from microguard.pipelines.tables.files import FOLDER
from microguard.pipelines.tables.tau_argus import same_cells
from microguard.schemas.requirements.requirement import MetricKey
from microguard.schemas.specification.table import Table


@dataclass(frozen=True)
class WrittenTable:
    """Results of verifying the files of a staged table.

    Attributes
    ----------
    count : Count
        Count of the guarantee on the files.
    layout : mapping
        How to read the files, as described in the manifest.
    as_staged, as_declared : bool
        Whether the files have the staged content, and whether they have the declared columns and types.
    relaxed : tuple of str
        Steps of `table.relax` that allowed cells to exceed the limits of the specification.
    """

    count: Count
    layout: Mapping[str, Any]
    as_staged: bool
    as_declared: bool
    relaxed: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        """Return the number of published cells."""
        return int(self.count.facts["cells"])

    def metrics(self) -> dict[MetricKey, float]:
        """Return the metrics of the written files that the gate judges."""
        return {
            **self.count.metrics,
            MetricKey("content_as_staged"): float(self.as_staged),
            MetricKey("columns_as_declared"): float(self.as_declared),
        }


def verify_written_table(
    folder: Path,
    staged: Mapping[str, pa.Table],
    table: Table,
    layout: Mapping[str, Any],
    guarantee: TableGuarantee,
    original: OriginalCells,
    mapper: Mapper = in_turn,
) -> WrittenTable:
    """Read the staged files back, count the guarantee on them, and compare them with the staged content.

    Parameters
    ----------
    folder : Path
        Folder of the staged release.
    staged : mapping of file name to content
    layout : mapping
        How to read the files (`pipelines.tables.manifest.layout_of`).
    mapper : Mapper
        Calls a function with chunks of cells.
    """
    contents = {name: pq.read_table(folder / FOLDER / name) for name in staged}
    as_declared = all(contents[name].schema.equals(content.schema) for name, content in staged.items())
    as_staged = all(contents[name].equals(content) for name, content in staged.items())
    as_staged &= not table.tau_argus or same_cells(folder, staged, table)
    with table_files(folder, layout, original, mapper) as files:
        count = guarantee.count(files)
    return WrittenTable(count, layout, as_staged, as_declared, original.relaxed)
