"""Cell-key noise for amounts: draws from a perturbation table (p-table), scaled by a cell's largest
contributions.

The noise of a cell is a sum over its largest contributors. Each contributor has a scale and a draw from the
p-table by a separate key. The scale is a share of the contribution; the share falls as the contribution grows
(the flex function). The row of the p-table is the ratio of the amount to the scale, so that no amount becomes
negative. Draws are interpolated between two rows. If a p-table for small amounts is given, the draw of a
contribution below the separation point comes from that table, in units of the amount itself.

Sources: Giessing and Tent 2019 (Concepts for generalising tools implementing the cell key method to the case
of continuous variables, UNECE work session on statistical data confidentiality); de Wolf et al. 2014, tau-
ARGUS user's manual, cell key method for continuous variables; Meindl and Enderle 2019, cellKey.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from microguard.sdc.cta.cell_keys.noise_table import KEY_SPAN, MEAN_ERROR, PROBABILITY_ERROR
from microguard.sdc.errors import InvalidParameter, ShapeMismatch


@dataclass(frozen=True)
class AmountScaling:
    """Scale of the noise as a function of the size of a contribution; amounts are in the unit of the
    variable.

    Attributes
    ----------
    small, large : float
        Share of contributions up to `flexpoint`, and the limit of the share for large contributions (sigma 1
        and sigma 0).
    flexpoint : float
        Contribution from which the share falls (x star).
    q : float
        Exponent that determines how fast the share falls, at least 2.
    factors : tuple of float
        Factor of the scale of the largest, second largest, ... contributor (epsilon); the first is 1.
    """

    small: float
    large: float
    flexpoint: float
    q: float = 3.0
    factors: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        falling = all(0 < b <= a for a, b in zip(self.factors, self.factors[1:], strict=False))
        if not 0 < self.large <= self.small <= 1 or not self.flexpoint > 0 or not self.q >= 2:
            raise InvalidParameter(
                "scale of the noise: expected 0 < large <= small <= 1, a flexpoint above 0 and q of at "
                "least 2"
            )
        if not self.factors or self.factors[0] != 1 or not falling:
            raise InvalidParameter(
                "factors of contributors: expected 1 first, then factors that do not increase"
            )

    def share(self, sizes: np.ndarray) -> np.ndarray:
        """Return the noise as a share of contributions of the given sizes (flex function)."""
        above = np.maximum(sizes, self.flexpoint) / self.flexpoint
        falling = (self.small * above - self.large) * (2 / (1 + above)) ** self.q
        return np.asarray(np.where(sizes < self.flexpoint, self.small, self.large + falling))


@dataclass(frozen=True, eq=False)
class AmountNoiseTable:
    """A p-table with interpolation between its rows.

    Attributes
    ----------
    rows : (rows,) float array
        Ratios of amount to scale, ascending from 0. Amounts beyond the last row have the noise of the last
        row.
    noise : (rows, n) array
        Values of the noise divided by the scale, ascending. Rows with fewer values repeat the last value.
    odds : (rows, n) array
        Probabilities of these values, 0 for repeated values.
    """

    rows: np.ndarray
    noise: np.ndarray
    odds: np.ndarray

    @classmethod
    def from_transitions(
        cls, amounts: np.ndarray, published: np.ndarray, probabilities: np.ndarray
    ) -> AmountNoiseTable:
        """Build the noise table from an office's own p-table (format of the R package ptable: i, j and p in
        each line).

        Parameters
        ----------
        amounts, published, probabilities : (lines,) arrays
            Amount i over the scale, published amount j, and the probability of j given i.

        Raises
        ------
        InvalidParameter
            If probabilities do not sum to 1, the mean noise is not 0, an amount above 0 has no noise, a
            published amount is negative, or an amount of 0 changes.
        """
        amounts, published = np.asarray(amounts, float), np.asarray(published, float)
        probabilities = np.asarray(probabilities, float)
        if not len(amounts) or not len(published) == len(probabilities) == len(amounts):
            raise InvalidParameter(
                "p-table: expected an amount, a published amount and a probability in each line"
            )
        if min(amounts.min(), published.min(), probabilities.min()) < 0:
            raise InvalidParameter(
                "p-table: expected amounts, published amounts and probabilities of at least 0, found a "
                "negative one"
            )
        rows, row = np.unique(amounts, return_inverse=True)
        order = np.lexsort((published, row))
        row, size = row[order], np.bincount(row)
        place = np.arange(len(row)) - (np.cumsum(size) - size)[row]
        noise = np.full((len(rows), size.max()), -np.inf)
        odds = np.zeros_like(noise)
        noise[row, place] = published[order] - rows[row]
        odds[row, place] = probabilities[order]
        noise = np.maximum.accumulate(noise, axis=1)
        for wrong, what in (
            (np.abs(odds.sum(axis=1) - 1) > PROBABILITY_ERROR, "probabilities that add up to 1"),
            (np.abs((odds * noise).sum(axis=1)) > MEAN_ERROR, "noise of mean 0"),
        ):
            if wrong.any():
                at = rows[np.argmax(wrong)]
                raise InvalidParameter(f"row {at:g} of a p-table: expected {what}, found others")
        if len(rows) < 2 or rows[0] != 0 or odds[0] @ np.abs(noise[0]) > 0:
            raise InvalidParameter("p-table: expected that 0 is published as 0, and a row above 0")
        fixed = rows[1:][(odds[1:] * noise[1:] ** 2).sum(axis=1) < PROBABILITY_ERROR]
        if len(fixed):
            raise InvalidParameter(f"row {fixed[0]:g} of a p-table: expected noise, found none")
        return cls(rows, noise, odds)

    @property
    def largest(self) -> float:
        """Return the largest absolute noise, divided by the scale."""
        return float(np.abs(self.noise[self.odds > 0]).max())

    @property
    def deviation(self) -> float:
        """Return the standard deviation of the noise of the last row, divided by the scale."""
        return float(np.sqrt(self.odds[-1] @ self.noise[-1] ** 2))

    @cached_property
    def _steps(self) -> np.ndarray:
        """Return the upper limit of the integer keys that draw each value of the noise, (rows, n)."""
        steps = np.rint(np.cumsum(self.odds, axis=1) * KEY_SPAN).astype(np.uint64)
        steps[:, -1] = KEY_SPAN
        return steps

    def draw(self, ratios: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Draw the noise of each amount, divided by its scale, from its key and its ratio of amount to scale,
        (cells,).
        """
        lower, weight = self._between(ratios)
        upper = np.minimum(lower + 1, len(self.rows) - 1)
        return np.asarray((1 - weight) * self._value(lower, keys) + weight * self._value(upper, keys))

    def possible(self, ratios: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the possible values of the noise and their odds, both (cells, m), padded with odds of 0."""
        lower, weight = self._between(ratios)
        count = 2 * self.noise.shape[1]
        noise, odds = np.zeros((len(lower), count)), np.zeros((len(lower), count))
        for row in np.unique(lower):
            chosen = np.flatnonzero(lower == row)
            upper = min(int(row) + 1, len(self.rows) - 1)
            ends = np.unique(self._steps[[row, upper]])
            begins = np.concatenate([np.zeros(1, np.uint64), ends[:-1]])
            width = (ends - begins).astype(float) / KEY_SPAN
            here = np.full(len(begins), row)
            near, far = self._value(here, begins), self._value(np.full(len(begins), upper), begins)
            share = weight[chosen, None]
            noise[chosen, : len(ends)] = (1 - share) * near + share * far
            odds[chosen, : len(ends)] = width
        return noise, odds

    def _between(self, ratios: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the table row at or below each ratio, and the relative position of the ratio between this
        row and the next.
        """
        lower = np.searchsorted(self.rows, ratios, "right") - 1
        upper = np.minimum(lower + 1, len(self.rows) - 1)
        gap = self.rows[upper] - self.rows[lower]
        weight = np.divide(ratios - self.rows[lower], gap, out=np.zeros(len(lower)), where=gap > 0)
        return lower, weight

    def _value(self, rows: np.ndarray, keys: np.ndarray) -> np.ndarray:
        place = (keys.astype(np.uint64)[:, None] >= self._steps[rows]).sum(axis=1)
        return np.asarray(self.noise[rows, np.minimum(place, self.noise.shape[1] - 1)])


@dataclass(frozen=True, eq=False)
class Perturbed:
    """Amounts after the noise was added.

    Attributes
    ----------
    values : (cells,) array
    first : (cells,) array
        Amounts plus the noise of the largest contributor only.
    scale : (cells,) array
        Scale of the noise of the largest contributor.
    noise, odds : (cells, m) arrays
        Possible values of the noise of the largest contributor, divided by the scale, and their
        probabilities.
    """

    values: np.ndarray
    first: np.ndarray
    scale: np.ndarray
    noise: np.ndarray
    odds: np.ndarray


@dataclass(frozen=True, eq=False)
class AmountNoise:
    """The noise of the amounts of a variable.

    Attributes
    ----------
    scaling : AmountScaling
    table : AmountNoiseTable
    small : AmountNoiseTable, optional
        Table for contributions below the separation point. Without this table there is no separation point.
    """

    scaling: AmountScaling
    table: AmountNoiseTable
    small: AmountNoiseTable | None = None

    @property
    def separation(self) -> float:
        """Return the separation point: below it, contributions get the noise of the small-value table, which
        is larger there.
        """
        if self.small is None:
            return 0.0
        factors = np.square(self.scaling.factors).sum()
        return self.small.deviation / float(self.scaling.small * np.sqrt(factors))

    def perturb(self, values: np.ndarray, largest: np.ndarray, keys: np.ndarray) -> Perturbed:
        """Add the noise to the amounts.

        Parameters
        ----------
        values : (cells,) array of amounts, 0 or more
        largest : (cells, factors) array
            Largest contributions in descending order, 0 if there are fewer.
        keys : (cells, factors) uint64 array below `KEY_SPAN`

        Raises
        ------
        ShapeMismatch, InvalidParameter
        """
        factors = self.scaling.factors
        if largest.shape != (len(values), len(factors)) or keys.shape != largest.shape:
            raise ShapeMismatch(
                f"{len(values)} values: expected one row of contributions and keys for each, found "
                f"{len(factors)}"
            )
        if np.any(values < 0) or np.any(largest < 0):
            raise InvalidParameter("noise of amounts: expected amounts of at least 0, found negative ones")
        amounts = np.asarray(values, float)
        result: tuple[np.ndarray, ...] = ()
        for place, factor in enumerate(factors):
            scale, of_small = self._scale(amounts, largest[:, place], factor, first=place == 0)
            ratio = np.divide(amounts, scale, out=np.zeros(len(amounts)), where=scale > 0)
            drawn = self.table.draw(ratio, keys[:, place])
            if place == 0:
                noise, odds = self.table.possible(ratio)
                if self.small is not None and of_small.any():
                    drawn = np.where(of_small, self.small.draw(ratio, keys[:, place]), drawn)
                    noise, odds = _chosen(of_small, self.small.possible(ratio), (noise, odds))
                result = (scale, noise, odds)
            amounts = np.maximum(amounts + scale * drawn, 0.0)
            if place == 0:
                result = (amounts, *result)
        return Perturbed(amounts, *result)

    def bounds(self, values: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the maximum noise downwards and upwards of each cell, two (cells,) arrays."""
        rise = np.zeros(len(values))
        for place, factor in enumerate(self.scaling.factors):
            sizes = largest[:, place]
            scale = sizes * factor * self.scaling.share(sizes) * self.table.largest
            if place == 0 and self.small is not None:
                below = np.maximum(self.small.largest, np.minimum(values, 1.0) * self.table.largest)
                scale = np.where(sizes < self.separation, below, scale)
            rise += scale
        return np.minimum(rise, values), np.where(values > 0, rise, 0.0)

    def _scale(
        self, amounts: np.ndarray, sizes: np.ndarray, factor: float, *, first: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the scale of the noise of one contributor, and whether it is drawn from the table of small
        values.

        A scale above the amount itself is replaced by the amount, and the contribution by the contribution
        that has this scale. Contributors after the first have no noise below the separation point.
        """
        separation = self.separation
        large = sizes >= separation
        scale = np.where(large, sizes * factor * self.scaling.share(sizes), 1.0 if first else 0.0)
        beyond = amounts < scale
        sizes = np.where(beyond, amounts / (factor * self.scaling.small), sizes)
        scale = np.where(beyond, amounts, scale)
        small = sizes < separation
        return np.where(small, 1.0 if first else 0.0, scale), small


def _chosen(
    chosen: np.ndarray, of_chosen: tuple[np.ndarray, np.ndarray], others: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of the first pair of arrays where `chosen`, otherwise of the second pair, padded to one
    width.
    """
    width = max(of_chosen[0].shape[1], others[0].shape[1])
    padded = [
        [np.pad(each, ((0, 0), (0, width - each.shape[1]))) for each in pair] for pair in (of_chosen, others)
    ]
    noise, odds = (np.where(chosen[:, None], a, b) for a, b in zip(*padded, strict=True))
    return noise, odds
