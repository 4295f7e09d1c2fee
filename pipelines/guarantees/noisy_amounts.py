"""Noise of amounts: every amount has independent noise drawn by keys and scaled by its largest contributors.

Cell keys for continuous variables (Giessing and Tent 2019). Totals do not add up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from microguard.pipelines.guarantees.original_cells import OriginalCells, Published
from microguard.pipelines.guarantees.tables import ATTACKER, INEXACT, ONE_VALUE, TableGuarantee

METHOD = "cell keys of amounts"
STATEMENT = (
    "Every amount has noise of mean 0, by keys of the records behind it and their amounts: the same amounts "
    "of the same records have the same noise in every table. Of each of the {contributors} largest "
    "contributors the noise is at most {largest:g} times {small:g} of the contribution, and less of a large "
    "one. No amount below 0 is published, and 0 stays 0."
)
SMALL = " Where no contributor has {separation:g} or more, the noise is at most {small_largest:g}."
TOTALS = (
    "Totals do not add up: every cell, including totals, has separate noise. Use the published total "
    "instead of the sum of its parts, whose errors add up."
)
KNOWN = (
    "the p-tables and the scale of the noise of every cell, that every true total is the sum of its parts, "
    "and the noise of all contributors but the largest. The probability that such an attacker estimates a "
    "sensitive amount within its protection level, by averaging or by trying all draws, is limited; it is "
    "not zero. By chance, an amount may be published unchanged, which no reader can recognise. Tables of "
    "other periods have new noise for every amount that changed, and other variables have independent "
    "noise: amounts that are related, such as a sum and its terms, disclose more together than each alone, "
    "and this is not limited."
)


@dataclass(frozen=True)
class NoisyAmounts(TableGuarantee):
    """Promise of noise within limits, and of no amount below 0.

    Attributes
    ----------
    largest, small_largest : float
        Largest absolute noise over its scale, for all amounts and for small amounts (0 without a p-table for
        them).
    small, large, flexpoint, q : float
        Parameters of the scale by size of a contribution (`sdc.cta.cell_keys.amounts.AmountScaling`).
    factors : tuple of float
        Factors of the contributors that add noise.
    separation : float
        Separation point of small amounts.
    absent : str
        What a reader may conclude about a cell that is not listed.
    """

    name = "noise of amounts"
    counts_sensitive = False
    largest: float
    small_largest: float
    small: float
    large: float
    flexpoint: float
    q: float
    factors: tuple[float, ...]
    separation: float
    absent: str = ""

    @property
    def statement(self) -> str:
        """Return the promise as a sentence."""
        text = STATEMENT.format(contributors=len(self.factors), largest=self.largest, small=self.small)
        if not self.small_largest:
            return text
        return text + SMALL.format(separation=self.separation, small_largest=self.small_largest)

    @property
    def limits(self) -> tuple[str, ...]:
        """Return the limits of the guarantee, one sentence each."""
        return tuple(each for each in (INEXACT, TOTALS, ATTACKER + KNOWN, ONE_VALUE, self.absent) if each)

    @property
    def condition(self) -> str:
        """Return the SQL condition of a missing total; nothing else is required, because noisy amounts do not
        add up.
        """
        return "total IS NULL OR hidden > 0"

    @property
    def forbidden(self) -> str:
        """Return the SQL condition that a cell has no value or an amount below 0."""
        return "v IS NULL OR v < 0"

    @property
    def broken(self) -> str:
        """Return the description of a total that violates the guarantee."""
        return "are absent"

    def compare(self, published: Published, original: OriginalCells) -> tuple[int, int]:
        """Count negative amounts, changed zeros, and amounts that are missing or outside the limits of their
        noise.
        """
        shown = np.nan_to_num(published.shown)
        wrong = (shown < 0) | ((original.units == 0) & (shown != 0))
        far = (published.change < -original.fall) | (published.change > original.rise)
        return int(np.sum(wrong)), int(np.sum(far | published.missing))

    def method(self) -> dict[str, Any]:
        """Return the name of the method with the parameters of the noise."""
        return {
            "name": METHOD,
            "largest": self.largest,
            "small_largest": self.small_largest,
            "p_small": self.small,
            "p_large": self.large,
            "flexpoint": self.flexpoint,
            "q": self.q,
            "epsilon": list(self.factors),
            "separation": self.separation,
        }

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> NoisyAmounts:
        """Build the guarantee from the statements of a manifest."""
        method = manifest["method"]
        return cls(
            largest=float(method["largest"]),
            small_largest=float(method["small_largest"]),
            small=float(method["p_small"]),
            large=float(method["p_large"]),
            flexpoint=float(method["flexpoint"]),
            q=float(method["q"]),
            factors=tuple(map(float, method["epsilon"])),
            separation=float(method["separation"]),
        )
