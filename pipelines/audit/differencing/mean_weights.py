"""Weights of records in class means, as far as a reader of the manifest and the published weights can compute
them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from microguard.pipelines.audit.differencing.classes import Classes
from microguard.pipelines.audit.differencing.histories import Histories

#: Maximum share of one record in the weight of its class: 2/k, and at most two thirds (reference of
#: `method.weighted`).
SHARE_OF_K, LARGEST_SHARE = 2.0, 2.0 / 3.0
#: Number of decimals to which weight ratios of two releases are compared.
DIGITS = 9


def capped_weights(weights: np.ndarray, class_of: np.ndarray, k: int) -> np.ndarray:
    """Return the weights (n,) of records in classes `class_of` (n,), capped at the maximum permitted share.

    The cap of a class is the largest weight whose share of the sum of capped weights is permitted. Bisection
    computes the cap.
    """
    most, cut = min(LARGEST_SHARE, SHARE_OF_K / k), weights.astype(np.float64)
    heaviest = np.zeros(int(class_of.max(initial=-1)) + 1)
    np.maximum.at(heaviest, class_of, cut)
    heavy = heaviest > most * np.bincount(class_of, cut, len(heaviest))
    rows = np.flatnonzero(heavy[class_of])
    mine, weight = (np.cumsum(heavy) - 1)[class_of[rows]], cut[rows]
    low, high = np.zeros(np.count_nonzero(heavy)), heaviest[heavy]
    least = high.copy()
    np.minimum.at(least, mine, weight)
    while True:  # the largest share increases with the cap
        limit = (low + high) / 2
        if np.all((limit == low) | (limit == high)):
            break
        below = limit <= most * np.bincount(mine, np.minimum(weight, limit[mine]), len(limit))
        low, high = np.where(below, limit, low), np.where(below, high, limit)
    cut[rows] = np.minimum(weight, np.maximum(low, least)[mine])
    return cut


def split_by_weight(releases: list[Classes], records: Histories) -> Histories:
    """Split histories so that the records of each have the same ratio of weights in all releases.

    The weighted sum of such records is one unknown of the linear system.

    Parameters
    ----------
    releases : list of Classes
    records : Histories
        Histories of records (not units) in these releases.
    """
    if all(np.all(release.weight == 1.0) for release in releases):
        return records
    first, code = np.zeros(len(records.history_of)), records.history_of.copy()
    for release in releases:
        fresh = first[release.record] == 0.0
        first[release.record[fresh]] = release.weight[fresh]
        factor = np.zeros(len(code))
        factor[release.record] = np.round(release.weight / first[release.record], DIGITS)
        there = code >= 0
        of_factor, factors = pd.factorize(factor[there])
        code[there] = pd.factorize(code[there] * len(factors) + of_factor)[0]
    there = code >= 0
    k = np.zeros(int(code.max(initial=-1)) + 1, np.int64)
    k[code[there]] = records.k[records.history_of[there]]
    return replace(records, history_of=code, sizes=np.bincount(code[there], minlength=len(k)), k=k)
