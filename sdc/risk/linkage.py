"""What an intruder links who holds the originals: nearest records, and intervals around the published."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from sdc.errors import InvalidParameter, NoVariation, ShapeMismatch

TIE = 1e-9
"""Relative difference of distances below which two protected records are as near: sums differ by rounding."""


def linked_share(original: np.ndarray, protected: np.ndarray, sample: np.ndarray | None = None) -> float:
    """Distance-based record linkage: expected share of originals whose own record is the nearest protected.

    Parameters
    ----------
    original, protected : (n, p) arrays
        Record i of one is record i of the other; variables are standardised by the originals.
    sample : (m,) int array, optional
        Originals that are tried; all by default. Each looks among all protected records.

    Returns
    -------
    float
        An original counts 1/t where its own record is among t nearest ones: the intruder picks any of them.

    References
    ----------
    Domingo-Ferrer and Torra 2001, A quantitative comparison of disclosure control methods for microdata.
    """
    first, second = _standardised(original, protected)
    tried = np.arange(len(first)) if sample is None else np.asarray(sample)
    if len(tried) == 0:
        return 0.0
    places, sizes = np.unique(second, axis=0, return_counts=True)
    own_distance = np.sqrt(np.sum((first[tried] - second[tried]) ** 2, axis=1))
    nearer, tied = nearer_and_tied(first[tried], own_distance, places, sizes)
    return float(np.sum(1.0 / tied[~nearer])) / len(tried)


def nearer_and_tied(
    points: np.ndarray, own_distance: np.ndarray, places: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Whether other records are nearer to a point than its own one, and how many are as near.

    Over parts of a file `nearer` joins by "or" and `tied` adds up.

    Parameters
    ----------
    points : (m, p) array
    own_distance : (m,) array
        Distance of each point to its own protected record.
    places, sizes : (r, p) and (r,) arrays
        Distinct protected records, and how many there are of each.

    Returns
    -------
    nearer : (m,) bool array
    tied : (m,) int64 array
        Records at `own_distance`; 0 where there are nearer ones.
    """
    nearer, tied = np.zeros(len(points), dtype=bool), np.zeros(len(points), dtype=np.int64)
    if len(places) == 0 or len(points) == 0:
        return nearer, tied
    tree = cKDTree(places, compact_nodes=False, balanced_tree=False)
    nearest, _ = tree.query(points)
    nearer = nearest * (1.0 + TIE) + TIE < own_distance
    for at in np.flatnonzero(~nearer & (nearest <= own_distance * (1.0 + TIE) + TIE)):
        near = tree.query_ball_point(points[at], own_distance[at] * (1.0 + TIE) + TIE)
        tied[at] = sizes[near].sum()
    return nearer, tied


def inside_interval(original: np.ndarray, protected: np.ndarray, width: float) -> np.ndarray:
    """Interval disclosure: share of values within `width` standard deviations of the published, by variable.

    Parameters
    ----------
    original, protected : (n, p) arrays
    width : float
        Half-length of the interval in standard deviations of the original variable (ddof=1).

    Returns
    -------
    (p + 1,) float array
        By variable and, last, the share of records whose every variable is inside (dRisk of sdcMicro).

    References
    ----------
    Mateo-Sanz, Sebe and Domingo-Ferrer 2004, Outlier protection in continuous microdata masking.
    """
    if not width >= 0.0:
        raise InvalidParameter("the width of an interval must not be negative")
    first, second = _pair(original, protected)
    if len(first) < 2:
        return np.full(first.shape[1] + 1, np.nan)
    inside = np.abs(first - second) <= width * first.std(axis=0, ddof=1)
    return np.append(inside.mean(axis=0), inside.all(axis=1).mean())


def _standardised(original: np.ndarray, protected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first, second = _pair(original, protected)
    spread = first.std(axis=0)
    if not np.any(spread > 0.0):
        raise NoVariation("every variable is constant: no record is nearer than another")
    varying = spread > 0.0
    mean = first.mean(axis=0)[varying]
    return (first[:, varying] - mean) / spread[varying], (second[:, varying] - mean) / spread[varying]


def _pair(original: np.ndarray, protected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first, second = np.asarray(original, np.float64), np.asarray(protected, np.float64)
    if first.ndim != 2 or first.shape != second.shape:
        raise ShapeMismatch(f"shapes {first.shape} and {second.shape}, expected (n, p) twice")
    return first, second
