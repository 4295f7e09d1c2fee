"""A table that waits for a person: no cell of it may have been published meanwhile with a value of its own.

A cell keeps the value it was first published with, and a table that waits is not published yet. One that
was made beside it and published before it was approved did not know its values, nor whether the two add up
to each other.
"""

from __future__ import annotations

from decimal import Decimal

import pyarrow.parquet as pq

from pipelines.publication.areas import Areas
from pipelines.publication.ledger import Entry
from pipelines.publication.sources.collisions import source_of
from pipelines.publication.waiting import Waiting
from pipelines.tables.published_cells import FILE
from schemas.errors import GateRefused


def refuse_second_values(waiting: Waiting, since: list[Entry], areas: Areas) -> None:
    """Refuse to publish a table beside others that have cells of it and were published while it waited.

    Parameters
    ----------
    since : list of Entry
        Published since the table began to wait.

    Raises
    ------
    GateRefused
    """
    mine, table = waiting.entry, "table"
    if mine.identity.get("content") != table or mine.successive == "accept":
        return
    others = [
        entry.release_id
        for entry in since
        if entry.identity.get("content") == table and _shares_cells(mine, entry, areas)
    ]
    if others:
        raise GateRefused(
            f"Since the table {mine.release_id} was verified, {len(others)} other(s) with cells of it were "
            f"published ({', '.join(others[:3])}): these cells would get second values. Nothing was "
            "published. Reject it (microguard reject), and run the job anew: it keeps their values then."
        )


def _shares_cells(one: Entry, other: Entry, areas: Areas) -> bool:
    """Whether two tables have a cell in common; where a list of cells is lost, whether their source is."""
    cells, others = (_cells(areas, each.release_id) for each in (one, other))
    if cells is None or others is None:
        return source_of(one) == source_of(other)
    return not cells.isdisjoint(others)


def _cells(areas: Areas, release_id: str) -> set[tuple[str, ...]] | None:
    """What a table published first, by all that a cell is known by; None where that is not kept."""
    path = areas.record(release_id) / FILE
    if not path.is_file():
        return None
    cells: set[tuple[str, ...]] = set()
    for row in pq.read_table(path).to_pylist():
        cells.add(("name", row["source"], row["period"], row["measure"], row["codes"]))
        if row["members"]:
            cells.add(("units", row["measure"], row["members"]))
        if row["original"] is not None and Decimal(row["original"]):
            cells.add(("amount", row["measure"], row["codes"], str(Decimal(row["original"]).normalize())))
    return cells
