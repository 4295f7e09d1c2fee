"""Rounded table: every cell is a multiple of a base, and every total is the sum of its parts.

The method is controlled rounding (Cox 1987; Salazar-Gonzalez 2005).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from microguard.pipelines.guarantees.additive_table import beyond, unprotected
from microguard.pipelines.guarantees.original_cells import OriginalCells, Published
from microguard.pipelines.guarantees.tables import ATTACKER, INEXACT, ONE_VALUE, TableGuarantee

METHOD = "controlled rounding"
STATEMENT = (
    "Every cell is published at a multiple of {base}, and every total is the sum of its parts. A count "
    "between two multiples goes to the one or the other by a secret draw, the likelier the nearer it is; a "
    "multiple stays, and nobody can tell."
)
WITHIN_A_BASE = (
    "a true count differs from the published one by less than {base}. Tables of other periods are rounded "
    "anew where any of their cells changed: anyone who knows that a count stayed the same over many "
    "periods can average the published values."
)


@dataclass(frozen=True)
class RoundedTable(TableGuarantee):
    """Promise of multiples of a base that are additive.

    Attributes
    ----------
    base : int
    absent : str
        What a reader may conclude about a cell that is not listed.
    """

    name = "rounded table"
    base: int
    absent: str = ""

    @property
    def statement(self) -> str:
        """Return the promise as a sentence."""
        return STATEMENT.format(base=self.base)

    @property
    def limits(self) -> tuple[str, ...]:
        """Return the limits of the guarantee, one sentence each."""
        known = ATTACKER + WITHIN_A_BASE.format(base=self.base)
        return tuple(each for each in (INEXACT, known, ONE_VALUE, self.absent) if each)

    @property
    def forbidden(self) -> str:
        """Return the SQL condition that a cell has no value, or one that is not a multiple of the base."""
        return f"v IS NULL OR v % {self.base} <> 0"

    def compare(self, published: Published, original: OriginalCells) -> tuple[int, int]:
        """Count sensitive cells that are too near to their true value, and cells outside their adjacent
        multiples.
        """
        return unprotected(published, original), beyond(published, original)

    def method(self) -> dict[str, Any]:
        """Return the name of the method with the base."""
        return {"name": METHOD, "base": self.base}

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> RoundedTable:
        """Build the guarantee from the statements of a manifest."""
        return cls(int(manifest["method"]["base"]))
