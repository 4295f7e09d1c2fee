"""Bounded noise: every count has independent noise within a limit, and no small count is published.

The method is cell keys (Fraser and Wooton 2005; Marley and Leaver 2011; Enderle, Giessing and Tent 2018).
Totals do not add up. The difference between a total and the sum of its parts is at most the largest noise of
all these cells together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from microguard.pipelines.guarantees.original_cells import OriginalCells, Published
from microguard.pipelines.guarantees.tables import ATTACKER, INEXACT, ONE_VALUE, TableGuarantee

METHOD = "cell keys"
STATEMENT = (
    "Every count has noise of mean 0, by keys of the records behind it: it is off by {largest} at the "
    "most, no count below {least} is published, and the same records have the same noise in every table."
)
TOTALS = (
    "Totals do not add up: every cell, including totals, has separate noise. Use the published total "
    "instead of the sum of its parts, whose errors add up."
)
WITHIN_NOISE = (
    "a true count differs from the published one by at most {largest}, that the noise has variance "
    "{variance:g}, that every true total is the sum of its parts, and that a total which differs from its "
    "only part published above 0 has records in its other parts. What all published cells disclose "
    "together is limited. Tables of other periods have new noise for every cell whose records changed: "
    "anyone who knows that a count stayed the same over many periods can average the noise."
)


@dataclass(frozen=True)
class BoundedNoise(TableGuarantee):
    """Promise of noise within a limit, and of no small count.

    Attributes
    ----------
    largest : int
        Largest absolute noise.
    variance : float
        Variance of the noise.
    least : int
        Smallest count above 0 that may be published.
    absent : str
        What a reader may conclude about a cell that is not listed.
    """

    name = "bounded noise"
    counts_sensitive = False
    largest: int
    variance: float
    least: int
    absent: str = ""

    @property
    def statement(self) -> str:
        """Return the promise as a sentence."""
        return STATEMENT.format(largest=self.largest, least=self.least)

    @property
    def limits(self) -> tuple[str, ...]:
        """Return the limits of the guarantee, one sentence each."""
        known = WITHIN_NOISE.format(largest=self.largest, variance=self.variance)
        return tuple(each for each in (INEXACT, TOTALS, ATTACKER + known, ONE_VALUE, self.absent) if each)

    @property
    def condition(self) -> str:
        """Return the SQL condition of a total that differs from the sum of its parts by more than the noise
        of all of them.
        """
        return f"total IS NULL OR hidden > 0 OR abs(total - parts_sum) > {self.largest} * (parts + 1)"

    @property
    def forbidden(self) -> str:
        """Return the SQL condition that a cell has no value or a small count."""
        return f"v IS NULL OR v <> 0 AND v < {self.least}"

    @property
    def broken(self) -> str:
        """Return the description of a total that violates the guarantee."""
        return "differ from the sum of their parts by more than their noise"

    def compare(self, published: Published, original: OriginalCells) -> tuple[int, int]:
        """Count small counts, counts too far from the true ones, zeros published for true counts, and missing
        cells.
        """
        shown = np.nan_to_num(published.shown)
        small = (shown != 0) & (shown < self.least)
        far = (np.abs(shown - original.units) > self.largest) | ((original.units == 0) & (shown != 0))
        return int(np.sum(small)), int(np.sum(far | published.missing))

    def method(self) -> dict[str, Any]:
        """Return the name of the method with the parameters of the noise."""
        return {"name": METHOD, "largest": self.largest, "variance": self.variance, "least": self.least}

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> BoundedNoise:
        """Build the guarantee from the statements of a manifest."""
        method = manifest["method"]
        return cls(int(method["largest"]), float(method["variance"]), int(method["least"]))
