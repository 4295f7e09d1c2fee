"""Simulate a statistical office that suppresses cells as `microguard adjust` does, without Spark.

The office runs the product code on cells counted by pandas: the problem with all earlier tables, the method,
the files, the count of the guarantee, and the evidence that later tables are joined with.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from microguard.pipelines.guarantees.guarantee import unmet
from microguard.pipelines.method import table_method
from microguard.pipelines.tables import cell_method, table_product
from microguard.pipelines.tables.cell_method import CellTables
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.cells.finished import cells_of_rows
from microguard.pipelines.tables.cells.microdata import grouping_sets
from microguard.pipelines.tables.files import FOLDER
from microguard.pipelines.tables.manifest import layout_of
from microguard.pipelines.tables.published_before import PublishedCell
from microguard.pipelines.tables.published_cells import read_published_cells
from microguard.pipelines.tables.read_back import WrittenTable, verify_written_table
from microguard.pipelines.tables.suppression.contributors import contributions_of_records
from microguard.pipelines.tables.tau_argus import write_tau_argus
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.read import build_specification
from microguard.schemas.specification.table import Table
from microguard.sdc.suppression import in_turn

from tests.attacks.office import cells_of


@dataclass(frozen=True)
class Published:
    """A table that was published.

    Attributes
    ----------
    files : Path
        Folder with ``table/*.parquet``.
    evidence : Path
    layout : dict
        How the files are to be read, as in the manifest.
    cells : Cells
        As they were.
    protected : what the product made
    written : WrittenTable
        The count of the guarantee.
    broken : list of str
        Requirements that the files do not meet.
    manifest : mapping
        What the guarantee states.
    """

    files: Path
    evidence: Path
    layout: dict[str, Any]
    cells: Cells
    protected: Any
    written: WrittenTable
    broken: list[str]
    manifest: Mapping[str, Any]

    @property
    def suppressed(self) -> np.ndarray:
        """Return the cells without a value."""
        return np.isnan(self.protected.comparison.values)

    def frame(self) -> pd.DataFrame:
        """Return the rows of all files."""
        paths = sorted((self.files / FOLDER).glob("*.parquet"))
        return pd.concat([pq.read_table(path).to_pandas() for path in paths], ignore_index=True)


class SuppressingOffice:
    """Office with a key and a ledger of the cells of all its tables."""

    def __init__(self, folder: Path, key: bytes = bytes(range(32))) -> None:
        self.folder, self.key = folder, key
        self.releases: list[str] = []

    def publish(self, cells: Cells, chosen: Specification) -> Published:
        """Publish a table of some cells; raise the errors of the run."""
        release_id = f"release{len(self.releases)}"
        product = table_method(chosen).product()
        assert isinstance(product, CellTables)
        areas = SimpleNamespace(key=lambda: self.key, record=self.evidence)
        job: Any = SimpleNamespace(
            spark=None, areas=areas, progress=SimpleNamespace(stage=lambda name: nullcontext())
        )
        self.evidence(release_id).mkdir(parents=True, exist_ok=True)
        keyed = cells.keyed(self.key)
        with (
            mock.patch.object(CellTables, "_refuse_related_columns"),
            mock.patch.object(cell_method, "mapper_of", return_value=in_turn),
            mock.patch.object(CellTables, "_tabulated", return_value=keyed),
            mock.patch.object(table_product, "published_cells", return_value=self.ledger()),
        ):
            protected = product.protect(job, mock.Mock(), release_id)
        files = self.folder / "lake" / release_id
        (files / FOLDER).mkdir(parents=True, exist_ok=True)
        for name, content in protected.contents.items():
            pq.write_table(content, files / FOLDER / name)
        if product.table.tau_argus:
            write_tau_argus(files, protected.contents, product.table)
        original, groupings = product.original(protected)
        layout = layout_of(product.table, protected.contents, groupings)
        written = verify_written_table(
            files, protected.contents, product.table, layout, product.guarantee, original
        )
        requirements = (*product.guarantee.requirements(), *product.guarantee.private_requirements())
        broken = [each.key.column for each in unmet(requirements, written.count)]
        product.write_annex(self.evidence(release_id), protected)
        self.releases.append(release_id)
        return Published(files, self.evidence(release_id), layout, keyed, protected, written, broken,
                         product.guarantee.manifest(written.count))  # fmt: skip

    def evidence(self, release_id: str) -> Path:
        """Return the folder of the evidence of a release."""
        return self.folder / "evidence" / release_id

    def ledger(self) -> list[PublishedCell]:
        """Return the published cells of all releases."""
        return [cell for each in self.releases for cell in read_published_cells(self.evidence(each))]


def cells_of_firms(frame: pd.DataFrame, chosen: Specification) -> Cells:
    """Return the cells of some records with their contributors, as Spark counts them."""
    table = chosen.table
    assert table is not None
    cells = cells_of(frame, chosen)
    amounts = np.ones(len(frame)) if table.value is None else frame[table.value].to_numpy(float)
    unit = frame[chosen.unit].astype(str) if chosen.unit else pd.Series([None] * len(frame), frame.index)
    finest = (
        frame[list(table.columns)].astype(str).assign(unit=unit, amount=np.rint(amounts * 10.0**table.digits))
    )
    names = {name: name for name in table.columns}
    contributions = contributions_of_records(finest, cells, table, names, grouping_sets(table))
    return replace(cells, contributions=contributions)


def cells_of_finished(frame: pd.DataFrame, table: Table) -> Cells:
    """Return the cells of a finished table, as they are read."""
    columns = {f"c{i}": frame[name].astype(str) for i, name in enumerate(table.columns)}
    columns |= {f"n{i}": frame[name].astype(float) for i, name in enumerate(table.numbers)}
    if table.status is not None:
        columns["status"] = frame[table.status].astype("string")
    return cells_of_rows(pd.DataFrame(columns), table)


def of_finished(frame: pd.DataFrame, table: dict[str, Any], **release: Any) -> Specification:
    """Return the specification of a finished table."""
    given = {"source": "cells", "method": "suppression", **table}
    names = [given["value"], given.get("contributors"), given.get("shadow"), *given.get("largest", ())]
    return build_specification(
        {
            "release": {"name": "finished", "k": 3, **release},
            "input": {"path": "cells.csv", "format": "csv"},
            "variables": {
                name: {"role": "other", **({"kind": "numeric"} if name in names else {})} for name in frame
            },
            "table": given,
            "publish": {"path": "lake", "evidence": "evidence"},
        },
        Path("/nowhere"),
    )
