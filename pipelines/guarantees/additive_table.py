"""Additive table: every total is the sum of its parts, and every sensitive cell is far enough from its true
value.

Controlled tabular adjustment (Cox and Dandekar 2004; Castro 2006). Additivity is counted on the published
files; the distance of sensitive cells can only be counted with the original cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from microguard.pipelines.guarantees.original_cells import UNIT, OriginalCells, Published
from microguard.pipelines.guarantees.tables import ATTACKER, INEXACT, ONE_VALUE, TableGuarantee

METHOD = "controlled tabular adjustment"
STATEMENT = (
    "Cells that the disclosure rule finds sensitive are published at a value at least as far from their own "
    "as the rule asks for, others are changed a little so that every total is the sum of its parts, to the "
    "last digit."
)
COUNTS = (
    "Small counts, genuine ones among them, are published at 0, at the base or at twice the base, by a "
    "secret draw whose expectation is the true count; others are changed a little so that every total is the "
    "sum of its parts."
)
BANDS = (
    "a sensitive value is in one of two bands, above or below the published value. Anyone who learns which "
    "band knows the value as precisely as the band is wide. The true value of the cell in another period, "
    "or another amount of its contributors, does not narrow these bands."
)


@dataclass(frozen=True)
class AdditiveTable(TableGuarantee):
    """Promise of an additive table whose sensitive cells have a minimum distance from their true values.

    Attributes
    ----------
    drawn_counts : bool
        Whether small counts are published at multiples of a base by a secret draw.
    preserved : mapping
        Statistics that the adjustment keeps, as the specification names them.
    absent : str
        What a reader may conclude about a cell that is not listed.
    """

    name = "additive table"
    drawn_counts: bool = False
    preserved: Mapping[str, Any] = field(default_factory=dict)
    absent: str = ""

    @property
    def statement(self) -> str:
        """Return the promise as a sentence."""
        return COUNTS if self.drawn_counts else STATEMENT

    @property
    def limits(self) -> tuple[str, ...]:
        """Return the limits of the guarantee, one sentence each."""
        return tuple(each for each in (INEXACT, ATTACKER + BANDS, ONE_VALUE, self.absent) if each)

    @property
    def forbidden(self) -> str:
        """Return the SQL condition that a cell has no value."""
        return "v IS NULL"

    def compare(self, published: Published, original: OriginalCells) -> tuple[int, int]:
        """Count sensitive cells that are nearer to their true value than allowed, and cells beyond their
        capacity.
        """
        return unprotected(published, original), beyond(published, original)

    def method(self) -> dict[str, Any]:
        """Return the name of the method: controlled tabular adjustment."""
        return {"name": METHOD, **({"preserved": dict(self.preserved)} if self.preserved else {})}

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> AdditiveTable:
        """Build the guarantee from the statements of a manifest."""
        drawn = manifest["guarantee"] == COUNTS
        return cls(drawn_counts=drawn, preserved=manifest["method"].get("preserved", {}))


def unprotected(published: Published, original: OriginalCells) -> int:
    """Count sensitive cells that are unchanged, have no level, or are within their level of the true value.

    A change of less than the unit of publication never counts as protection, even if the level is smaller.
    """
    bare = (original.lower <= 0) & (original.upper <= 0)
    near = (published.change < original.upper) & (published.change > -original.lower)
    return int(np.sum(original.sensitive & (bare | near | (np.abs(published.change) < UNIT))))


def beyond(published: Published, original: OriginalCells) -> int:
    """Count cells that exceed their capacity, are not multiples of the base, or are missing."""
    far = (published.change > original.rise) | (-published.change > original.fall)
    if original.base is not None:
        far |= (published.change + original.units) % original.base != 0
    return int(np.sum(far | published.missing))
