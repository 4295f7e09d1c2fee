"""Totals, means and quantiles before and after protection, weighted and unweighted, by region.

Totals and means use the whole file, in one aggregation; quantiles use the sampled records. Which totals stay
exact is computed here, not assumed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from microguard.pipelines.intake.totals import totals_from_sums
from microguard.pipelines.intake.validate import REGION
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.measure import Measure
from microguard.sdc.clusters.granularity import SHARE
from microguard.sdc.clusters.representatives import MEANS
from microguard.sdc.utility.estimates import estimates, relative_changes
from pyspark.sql import types as t

#: Maximum relative change of a total that counts as exact, because Spark determines the order of summation.
EXACT = 1e-9
#: Largest relative change that is reported; it is also used if the original total is 0.
LARGEST_CHANGE = 1e6
#: Significant digits of sums.
DIGITS = 10
#: Decimals of a shift in standard deviations; more decimals would disclose the value of a record.
SHIFT_DECIMALS = 2


@dataclass(frozen=True)
class Estimated:
    """Totals, means and quantiles of one variable, weighted or not.

    Attributes
    ----------
    total_before, total_after, mean_before, mean_after : float
        Totals and means of the whole file.
    largest_change, median_change : float
        Relative changes of the totals of the regions.
    regions, exact : int
        Regions with a value, and regions whose total is exact within `EXACT`.
    kept : int or None
        For a total that the method preserves by its means: the regions whose total differs by no more than
        the rounding of each record's value can cause. None for other totals, which may be as near by chance.
    quantile_shifts : tuple of float
        After minus before, in hundredths of a standard deviation, for the sampled records; empty without a
        sample. A quantile itself is the value of a record, which evidence never contains.
    """

    total_before: float
    total_after: float
    mean_before: float
    mean_after: float
    largest_change: float
    median_change: float
    regions: int
    exact: int
    quantile_shifts: tuple[float, ...]
    kept: int | None = None


@dataclass(frozen=True)
class EstimatesOfVariable:
    """Estimates of one numeric quasi-identifier.

    Attributes
    ----------
    unweighted : Estimated
    weighted : Estimated or None
        Estimates with the main weight, if there is one.
    weight : str or None
        Name of this weight.
    heeded : bool
        Whether the method uses this weight for means.
    further : mapping of weight to Estimated
        Estimates with every other weight of the release.
    """

    unweighted: Estimated
    weighted: Estimated | None
    weight: str | None = None
    heeded: bool = False
    further: dict[str, Estimated] = field(default_factory=dict)

    @property
    def by_weight(self) -> dict[str, Estimated]:
        """Return the estimates by weight; those with the method's weight come first."""
        first = {} if self.weighted is None else {self.weight or "weight": self.weighted}
        return {**first, **self.further}


def _step(comparison: Comparison, name: str) -> float:
    """Return the unit to which means are rounded: that of their type, or a share of the standard
    deviation.
    """
    kind = comparison.protected.schema[name].dataType
    unit = 1.0 if isinstance(kind, t.IntegralType) else 0.0
    if isinstance(kind, t.DecimalType):
        unit = 10.0**-kind.scale
    return max(unit, SHARE * comparison.scales[name].deviation)


def _totals(comparison: Comparison) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the totals before and after protection, for all regions of both files; NaN if a file has no
    records of a region.
    """
    specification, before = comparison.specification, comparison.screened.totals
    names, weights = specification.numeric, specification.weights
    after = totals_from_sums(comparison.sums, REGION, names, weights)
    # in a register, all units of a region may be pending, or published in an earlier region
    either = before.index.union(after.index)
    return before.reindex(either), after.reindex(either)


def _estimated(
    before: pd.DataFrame,
    after: pd.DataFrame,
    prefix: str,
    place: int,
    shifts: tuple[float, ...],
    step: float | None,
) -> Estimated:
    """Return the estimates of the variable at a position; `prefix` identifies its weight in the totals."""
    counts, totals = (
        [np.nan_to_num(each[f"{prefix}{what}{place}"].to_numpy(np.float64)) for each in (before, after)]
        for what in "ns"
    )
    there = counts[0] > 0
    old, new = (each[there] for each in totals)
    changed = relative_changes(old, new)
    room = (step or 0.0) / 2 * counts[0][there] + EXACT * np.abs(old)
    kept = int(np.count_nonzero(np.abs(new - old) <= room))
    changed = np.where(changed <= EXACT, 0.0, np.minimum(changed, LARGEST_CHANGE))
    whole, numbers = ([each.sum() for each in both] for both in (totals, counts))
    means = [each / number if number > 0 else 0.0 for each, number in zip(whole, numbers, strict=True)]
    return Estimated(
        total_before=_rounded(whole[0]),
        total_after=_rounded(whole[1]),
        mean_before=_rounded(means[0]),
        mean_after=_rounded(means[1]),
        largest_change=_rounded(changed.max(initial=0.0)),
        median_change=_rounded(float(np.median(changed)) if len(changed) else 0.0),
        regions=int(there.sum()),
        exact=int(np.count_nonzero(changed == 0.0)),
        kept=None if step is None else kept,
        quantile_shifts=shifts,
    )


def _rounded(value: float) -> float:
    """Round off the digits that depend on the order of summation."""
    return float(f"{value:.{DIGITS}g}")


def _shifts(comparison: Comparison, name: str, weighted: bool) -> tuple[float, ...]:
    """Return the quantile shifts of the sample; with `weighted`, use the weight of the method."""
    pairs, deviation = comparison.pairs, comparison.scales[name].divisor
    if pairs is None or (weighted and pairs.weights is None):
        return ()
    place, nowhere = pairs.numeric.index(name), np.zeros(len(pairs), dtype=np.int64)
    weights = pairs.weights if weighted else None
    before, after = (
        estimates(numbers[:, place], nowhere, weights).quantiles[0]
        for numbers in (pairs.numbers_before, pairs.numbers_after)
    )
    shifts = (after - before) / deviation
    return (
        () if np.isnan(shifts).any() else tuple(round(float(shift), SHIFT_DECIMALS) + 0.0 for shift in shifts)
    )


class EstimatesMeasure(Measure[Comparison, dict[str, EstimatesOfVariable]]):
    """Totals, means and quantiles before and after protection."""

    name = "estimates"
    section = dict[str, EstimatesOfVariable]

    def compute(self, comparison: Comparison) -> dict[str, EstimatesOfVariable] | None:
        """Compute the section; return None if the measure does not apply."""
        specification = comparison.specification
        names, weights = specification.numeric, specification.weights
        if not names:
            return None
        before, after = _totals(comparison)
        section = {}
        for place, name in enumerate(names):
            group = next(each for each in specification.clusterings if name in each.variables)
            heeded = specification.weighted_by(group)
            means = (
                specification.method.representative in MEANS
                and specification.strategy(group) == "microaggregation"
            )
            step = _step(comparison, name) if means else None
            plain, by_weight = (_shifts(comparison, name, weighted) for weighted in (False, True))
            weighted = {}
            for j, weight in enumerate(weights):
                shifts = by_weight if weight == specification.weight else ()
                made = step if weight == heeded else None
                weighted[weight] = _estimated(before, after, f"w{j}", place, shifts, made)
            unweighted = _estimated(before, after, "", place, plain, step if heeded is None else None)
            counts = None if specification.weight is None else weighted.pop(specification.weight)
            section[name] = EstimatesOfVariable(
                unweighted, counts, specification.weight, heeded is not None, weighted
            )
        return section

    def headline(self, section: Mapping[str, EstimatesOfVariable], k: int) -> Iterator[str]:
        """Return the sentences that the approver must read first."""
        by_weight: dict[str, dict[str, Estimated]] = {}
        for name, each in section.items():
            plain = "unweighted totals" if each.by_weight else "totals"
            by_weight.setdefault(plain, {})[name] = each.unweighted
            for weight, part in each.by_weight.items():
                by_weight.setdefault(f"totals weighted by {weight}", {})[name] = part
        for which, parts in by_weight.items():
            kept = [name for name, part in parts.items() if part.kept == part.regions]
            if kept:
                where = " in every region" if parts[kept[0]].regions > 1 else ""
                yield f"Kept{where} but for rounding, as computed: the {which} of {', '.join(kept)}."
            moved = {name: part.largest_change for name, part in parts.items() if name not in kept}
            if moved:
                name = max(moved, key=lambda each: moved[each])
                where = " in one region" if parts[name].regions > 1 else ""
                yield (
                    f"Among the {which}, that of {name}{where} has the largest change: "
                    f"{100 * moved[name]:.3g} %."
                )
