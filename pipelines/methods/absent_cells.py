"""Statements for readers about cells that a table does not contain."""

from __future__ import annotations

from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table import Table

ABSENT = (
    "A cell that is not listed had no contributor, or fewer than {least} contributors who contribute "
    "nothing; no cell is added."
)
COUNTS_ZEROS = (
    "Neither a zero nor an unlisted code proves that there was nobody: small counts may also be published "
    "as 0, and codes that have only zeros are omitted.",
    "Cells of 0 are not listed, whether nobody was there or a small count was published as 0.",
)
#: Statement for counts whose published zeros are true zeros, because small counts are suppressed.
TRUE_ZEROS = "A cell that is not listed had no contributor, and a published zero is exact."


def absent_cells(specification: Specification, table: Table) -> str:
    """Return the statement for readers about the meaning of cells that are not listed."""
    if table.counts and table.suppressed:
        return TRUE_ZEROS
    if table.counts and table.levels == "secret":
        return COUNTS_ZEROS[table.zeros == "omit"]
    return ABSENT.format(least=table.minimum_frequency or specification.release.k)
