"""Published cells of each table, in a file of its evidence that is located through the ledger.

The file is written before the ledger records the release as intended, and is read from then on. So no cell
can be published without its value being in a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.engine.files import private_folder
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.ledger import NEVER_PUBLIC, Ledger
from microguard.pipelines.tables.published_before import PublishedCell
from microguard.schemas.errors import GateRefused

FILE = "published_cells.parquet"
_SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("period", pa.string()),
        ("measure", pa.string()),
        ("codes", pa.string()),
        ("value", pa.string()),
        ("direction", pa.int8()),
        ("release_id", pa.string()),
        ("original", pa.string()),
        ("members", pa.string()),
        ("status", pa.string()),
        ("error", pa.float64()),
        ("deviation", pa.float64()),
        ("level", pa.float64()),
        ("entropy", pa.float64()),
    ]
)


def write_published_cells(folder: Path, cells: Iterable[PublishedCell]) -> None:
    """Write the cells that a release is the first to publish to its evidence folder."""
    rows = [
        {
            **vars(cell),
            "codes": json.dumps(cell.codes),
            "value": None if cell.value is None else str(cell.value),
            "original": None if cell.original is None else str(cell.original),
        }
        for cell in cells
    ]
    private_folder(folder)
    pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), folder / FILE)


def published_cells(areas: Areas) -> Iterator[PublishedCell]:
    """Return the cells of every table that is or was public, oldest release first.

    Raises
    ------
    GateRefused
        If the file of a table in the ledger is lost: its cells could get a second value.
    """
    seen: set[str] = set()
    for entry in Ledger(areas).entries():
        if entry.event in NEVER_PUBLIC or entry.release_id in seen:
            continue
        seen.add(entry.release_id)
        if entry.identity.get("content") != "table":
            continue
        path = areas.record(entry.release_id) / FILE
        if not path.is_file():
            raise GateRefused(
                f"The evidence of the table {entry.release_id} is lost: the published values of its cells "
                "are unknown, and a second value of a cell would disclose its true value. Restore the "
                "evidence area from its back-up."
            )
        yield from read_published_cells(path.parent)


def read_published_cells(folder: Path) -> Iterator[PublishedCell]:
    """Return the cells that a release was the first to publish, from its evidence folder."""
    for row in pq.read_table(folder / FILE).to_pylist():
        codes = tuple((str(name), str(code)) for name, code in json.loads(row["codes"]))
        original = row.get("original")
        exact = {
            "value": None if row["value"] is None else Decimal(row["value"]),
            "original": None if original is None else Decimal(original),
        }
        yield PublishedCell(**{**row, "codes": codes, **exact})
