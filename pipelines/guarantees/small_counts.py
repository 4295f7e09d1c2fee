"""Small counts: no count below a base is published, and every total is the sum of its parts.

The method is small count rounding (Langsrud and Heldal 2018).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from microguard.pipelines.guarantees.additive_table import beyond, unprotected
from microguard.pipelines.guarantees.original_cells import OriginalCells, Published
from microguard.pipelines.guarantees.tables import ATTACKER, ONE_VALUE, TableGuarantee

METHOD = "small count rounding"
STATEMENT = (
    "No count between 0 and {base} is published, and every total is the sum of its parts. A smaller count "
    "goes to 0 or to {base}, so that all cells together are close to the true ones; larger counts that are "
    "no totals are the true ones, and totals are the sums of what is published."
)
WITHIN_A_BASE = (
    "a published 0 was less than {base}, that a published {base} was 1 to {base}, and that a larger count "
    "which is no total is exact. Tables of other periods are rounded anew where any of their cells "
    "changed: anyone who knows that a count stayed the same over many periods can average the published "
    "values."
)


@dataclass(frozen=True)
class SmallCounts(TableGuarantee):
    """Promise of no small counts, and of additive totals.

    Attributes
    ----------
    base : int
        Smallest count above 0 that may be published.
    absent : str
        What a reader may conclude about a cell that is not listed.
    """

    name = "no small counts"
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
        return tuple(each for each in (known, ONE_VALUE, self.absent) if each)

    @property
    def forbidden(self) -> str:
        """Return the SQL condition that a cell has no value or a small count."""
        return f"v IS NULL OR v < 0 OR v > 0 AND v < {self.base}"

    def compare(self, published: Published, original: OriginalCells) -> tuple[int, int]:
        """Count sensitive cells that are too near to their true value, small counts, and cells outside their
        limits.
        """
        shown = np.nan_to_num(published.shown)
        small = int(np.sum((shown > 0) & (shown < self.base)))
        return max(small, unprotected(published, original)), beyond(published, original)

    def method(self) -> dict[str, Any]:
        """Return the name of the method with the base."""
        return {"name": METHOD, "base": self.base}

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> SmallCounts:
        """Build the guarantee from the statements of a manifest."""
        return cls(int(manifest["method"]["base"]))
