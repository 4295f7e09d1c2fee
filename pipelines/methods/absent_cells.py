"""Statements for readers about cells that a table does not list."""

from __future__ import annotations

from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table import Table

ABSENT = (
    "A cell that does not occur had no contributor, or fewer than {least} who contribute nothing; no cell is "
    "added."
)
COUNTS_ZEROS = (
    "A zero is no evidence of absence, nor is a code that is not listed: small counts are published as 0 "
    "too, and codes of nothing but zeros are left out.",
    "No cell of 0 is listed, whether nobody was there or a small count was published as 0.",
)
#: Statement for counts whose published zeros are true zeros, because small counts are suppressed.
TRUE_ZEROS = "A cell that is not listed had no contributor, and a published zero is a true one."


def absent_cells(specification: Specification, table: Table) -> str:
    """Return the statement for readers about the meaning of absent cells."""
    if table.counts and table.suppressed:
        return TRUE_ZEROS
    if table.counts and table.levels == "secret":
        return COUNTS_ZEROS[table.zeros == "omit"]
    return ABSENT.format(least=table.minimum_frequency or specification.release.k)
