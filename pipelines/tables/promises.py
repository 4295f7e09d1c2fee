"""What a protected table promises: one exhaustive list of methods and their guarantees."""

from __future__ import annotations

from typing import assert_never

from microguard.pipelines.guarantees.additive_table import AdditiveTable
from microguard.pipelines.guarantees.bounded_noise import BoundedNoise
from microguard.pipelines.guarantees.rounded_table import RoundedTable
from microguard.pipelines.guarantees.tables import TableGuarantee
from microguard.pipelines.tables.cell_keys.noise import noise_table
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


def guarantee_of(specification: Specification, table: Table) -> TableGuarantee:
    """Return the guarantee of a table's method; a method without one does not type-check."""
    match table.method:
        case "adjustment":
            drawn = table.counts and table.levels == "secret"
            preserved = table.preserve.model_dump(exclude_none=True)
            return AdditiveTable(drawn, preserved, _absent(specification, table))
        case "rounding":
            assert table.base is not None
            return RoundedTable(table.base, _absent(specification, table))
        case "cell_key":
            noise = noise_table(specification).parameters
            return BoundedNoise(noise.largest, noise.variance, noise.k, COUNTS_ZEROS[0])
        case method:
            assert_never(method)


def _absent(specification: Specification, table: Table) -> str:
    """What a reader may take from a cell that is not listed."""
    if table.counts and table.levels == "secret":
        return COUNTS_ZEROS[table.zeros == "omit"]
    return ABSENT.format(least=table.minimum_frequency or specification.release.k)
