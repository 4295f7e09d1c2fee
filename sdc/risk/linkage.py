"""Distance-based record linkage and interval disclosure, for an intruder who has the original records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.errors import InvalidParameter, ShapeMismatch
from microguard.sdc.kernels.compile import kernel

TIE = 1e-9
"""Maximum relative difference of distances that count as equal, because of rounding errors."""


@dataclass(frozen=True)
class Points:
    """Records in the metric that the intruder uses.

    Attributes
    ----------
    numbers : (n, p) float array
        Numeric variables in comparable units, such as standard deviations.
    categories : (n, q) int64 array
        Nominal variables as codes. A mismatch adds 1 to the squared distance.
    regions : (n,) int64 array
        Region codes from 0. Only records of the same region are compared. Records with a negative code are
        not compared.
    """

    numbers: np.ndarray
    categories: np.ndarray
    regions: np.ndarray

    def __len__(self) -> int:
        return len(self.regions)

    def __getitem__(self, places: np.ndarray) -> Points:
        return Points(self.numbers[places], self.categories[places], self.regions[places])

    def distances(self, others: Points) -> np.ndarray:
        """Return the distance of each record to the record at the same position of `others`, (n,)."""
        squares = np.sum((self.numbers - others.numbers) ** 2, axis=1)
        return np.sqrt(squares + np.count_nonzero(self.categories != others.categories, axis=1))


def nearer_and_tied(
    points: Points, own_distance: np.ndarray, places: Points
) -> tuple[np.ndarray, np.ndarray]:
    """For each original record, count the protected records that are nearer than its own, or equally near.

    Results for parts of the protected file combine: `nearer` by "or", `tied` by addition.

    Parameters
    ----------
    points : Points
        The m original records.
    own_distance : (m,) array
        Distance of each original to its own protected record.
    places : Points
        The protected records.

    Returns
    -------
    nearer : (m,) bool array
        Whether a protected record is nearer than `own_distance`.
    tied : (m,) int64 array
        Number of protected records at `own_distance`; 0 if one is nearer.
    """
    nearer, tied = np.zeros(len(points), dtype=bool), np.zeros(len(points), dtype=np.int64)
    order = np.argsort(points.regions, kind="stable")
    inside = order[points.regions[order] >= 0]
    last = int(points.regions.max(initial=-1))
    starts = np.searchsorted(points.regions[inside], np.arange(last + 2))
    ordered = points[inside]
    beaten, alike = np.zeros(len(inside), dtype=bool), np.zeros(len(inside), dtype=np.int64)
    _compare(
        np.ascontiguousarray(ordered.numbers, np.float64),
        np.ascontiguousarray(ordered.categories, np.int64),
        np.ascontiguousarray(own_distance[inside], np.float64),
        starts,
        np.ascontiguousarray(places.numbers, np.float64),
        np.ascontiguousarray(places.categories, np.int64),
        np.where(places.regions <= last, places.regions, -1),
        beaten,
        alike,
    )
    nearer[inside], tied[inside] = beaten, np.where(beaten, 0, alike)
    return nearer, tied


@kernel
def _compare(
    numbers, categories, own_distance, starts, other_numbers, other_categories, regions, nearer, tied
):
    """For each protected record, compare its distances to all originals of its region.

    The summation of squares stops once the sum exceeds the squared distance of the original to its own
    protected record.
    """
    reach = (own_distance * (1.0 + TIE) + TIE) ** 2
    for place in range(len(regions)):
        region = regions[place]
        if region < 0:
            continue
        for point in range(starts[region], starts[region + 1]):
            if nearer[point]:
                continue
            square, most = 0.0, reach[point]
            for i in range(numbers.shape[1]):
                apart = numbers[point, i] - other_numbers[place, i]
                square += apart * apart
                if square > most:
                    break
            if square > most:
                continue
            for i in range(categories.shape[1]):
                if categories[point, i] != other_categories[place, i]:
                    square += 1.0
                    if square > most:
                        break
            if square > most:
                continue
            if np.sqrt(square) * (1.0 + TIE) + TIE < own_distance[point]:
                nearer[point] = True
            else:
                tied[point] += 1


def inside_interval(original: np.ndarray, protected: np.ndarray, width: float) -> np.ndarray:
    """Compute interval disclosure: by variable, the share of original values that are near the published
    value.

    Parameters
    ----------
    original, protected : (n, p) arrays
        Values of the same records in the same order.
    width : float
        Half the length of the interval, in standard deviations of the original variable (ddof=1).

    Returns
    -------
    (p + 1,) float array
        Share of original values inside the interval around the protected value, by variable. The last number
        is the share of records with all variables inside (dRisk of sdcMicro). NaN for fewer than two records.

    References
    ----------
    Mateo-Sanz, Sebe and Domingo-Ferrer 2004, Outlier protection in continuous microdata masking.
    """
    if not width >= 0.0:
        raise InvalidParameter(f"width: expected at least 0 standard deviations, found {width}")
    first, second = _pair(original, protected)
    if len(first) < 2:
        return np.full(first.shape[1] + 1, np.nan)
    inside = np.abs(first - second) <= width * first.std(axis=0, ddof=1)
    return np.append(inside.mean(axis=0), inside.all(axis=1).mean())


def _pair(original: np.ndarray, protected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first, second = np.asarray(original, np.float64), np.asarray(protected, np.float64)
    if first.ndim != 2 or first.shape != second.shape:
        raise ShapeMismatch(
            f"original and protected: expected the same shape (n, p), found {first.shape} and {second.shape}"
        )
    return first, second
