"""Statements for readers about cells that a table does not list."""

from __future__ import annotations

from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table import Table

ABSENT = (
    "A cell that is absent had no contributor, or fewer than {least} contributors who contribute nothing; "
    "no cell is added."
)
COUNTS_ZEROS = (
    "A zero or an absent code is no evidence of absence: small counts are also published as 0, and codes "
    "with zeros only are omitted.",
    "No cell of 0 is listed, whether there was no unit or a small count was published as 0.",
)
#: Statement for counts whose published zeros are true zeros, because small counts are suppressed.
TRUE_ZEROS = "A cell that is not listed had no contributor, and a published zero is exact."


def absent_cells(specification: Specification, table: Table) -> str:
    """Return the statement for readers about the meaning of absent cells."""
    if table.counts and table.suppressed:
        return TRUE_ZEROS
    if table.counts and table.levels == "secret":
        return COUNTS_ZEROS[table.zeros == "omit"]
    return ABSENT.format(least=table.minimum_frequency or specification.release.k)
