"""Groups of associated quasi-identifiers whose separate clustering loses much less information."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from microguard.pipelines.drafting.sample import Sample
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

MIN_LOSS, MIN_IMPROVEMENT = 0.1, 2.0
"""Minimum loss for which groups are searched, and minimum factor by which the groups must reduce the loss."""
MOST_GROUPS = 3
MOST_VARIABLES = 40
"""Maximum number of quasi-identifiers whose pairs are compared."""
FIFTHS = 5


@dataclass(frozen=True)
class Grouping:
    """Groups of associated quasi-identifiers.

    Attributes
    ----------
    names : tuple of tuple of str
    cost : float
        Mean loss of the variables if each group is clustered separately.
    unique : float
        Share of the sample that is then unique on all variables together.
    """

    names: tuple[tuple[str, ...], ...]
    cost: float
    unique: float


def find_grouping(sample: Sample, k: int, cost: float) -> Grouping | None:
    """Return the smallest number of groups that reduces the loss by the factor `MIN_IMPROVEMENT`; None if
    there is none.

    Variables are grouped by average-linkage clustering of their association.

    Parameters
    ----------
    cost : float
        Mean loss of the variables if all are clustered together.
    """
    variables = sample.numeric + sample.nominal
    if cost < MIN_LOSS or not 3 <= len(variables) <= MOST_VARIABLES:
        return None
    tree = linkage(squareform(1 - _association(sample, variables), checks=False), "average")
    for count in range(2, min(MOST_GROUPS, len(variables) - 1) + 1):
        place = fcluster(tree, count, "maxclust")
        groups = [
            [v for v, at in zip(variables, place, strict=True) if at == each] for each in np.unique(place)
        ]
        labels = [sample.clusters(group, k) for group in groups]
        losses: dict[str, float] = {}
        for group, clusters in zip(groups, labels, strict=True):
            losses |= sample.losses(group, clusters)
        together = sample.cost(losses)
        if len(groups) > 1 and cost >= MIN_IMPROVEMENT * together:
            unique = float((sample.frame.groupby(labels).size() == 1).sum()) / len(sample.frame)
            names = tuple(tuple(sample.names[label] for label in group) for group in groups)
            return Grouping(names, together, unique)
    return None


def _association(sample: Sample, variables: Sequence[str]) -> np.ndarray:
    """Return the bias-corrected Cramer's V of each pair of variables, (p, p) in [0, 1].

    Numbers are cut into quintiles. The correction (Bergsma 2013, equation 9) removes the bias by which
    variables with many categories appear associated with any other variable.
    """
    codes = [
        sample.frame[label].rank(pct=True).mul(FIFTHS).clip(upper=FIFTHS - 1).astype(int)
        if label in sample.numeric
        else sample.frame[label]
        for label in variables
    ]
    together = np.eye(len(variables))
    for i, j in combinations(range(len(variables)), 2):
        together[i, j] = together[j, i] = _cramer(pd.crosstab(codes[i], codes[j]).to_numpy(np.float64))
    return together


def _cramer(counts: np.ndarray) -> float:
    """Return Bergsma's bias-corrected V of a contingency table."""
    n = counts.sum()
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / n
    rows, columns = counts.shape
    squared = float(((counts - expected) ** 2 / expected).sum()) / n - (rows - 1) * (columns - 1) / (n - 1)
    smaller = min(rows - (rows - 1) ** 2 / (n - 1), columns - (columns - 1) ** 2 / (n - 1)) - 1
    return min(max(squared, 0.0) / smaller, 1.0) ** 0.5 if smaller > 0 else 0.0
