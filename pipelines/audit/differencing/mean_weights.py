"""What the records of a class count for in its mean, as whoever has the manifest and the weights knows it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from microguard.pipelines.audit.differencing.classes import Classes
from microguard.pipelines.audit.differencing.histories import Histories

#: As the reference says of `method.weighted`: of its class's weight a record has 2/k and two thirds at most.
SHARE_OF_K, LARGEST_SHARE = 2.0, 2.0 / 3.0
#: Digits by which weights of two releases are told apart.
DIGITS = 9


def capped_weights(weights: np.ndarray, of: np.ndarray, k: int) -> np.ndarray:
    """Published weights (n,) of records in classes `of`, the largest cut down to the share they may have."""
    most, cut = min(LARGEST_SHARE, SHARE_OF_K / k), weights.astype(np.float64)
    heaviest = np.zeros(int(of.max(initial=-1)) + 1)
    np.maximum.at(heaviest, of, cut)
    heavy = heaviest > most * np.bincount(of, cut, len(heaviest))
    rows = np.flatnonzero(heavy[of])
    mine, weight = (np.cumsum(heavy) - 1)[of[rows]], cut[rows]
    low, high = np.zeros(np.count_nonzero(heavy)), heaviest[heavy]
    least = high.copy()
    np.minimum.at(least, mine, weight)
    while True:  # the limit is where its own share is the largest one: it grows with the limit
        limit = (low + high) / 2
        if np.all((limit == low) | (limit == high)):
            break
        below = limit <= most * np.bincount(mine, np.minimum(weight, limit[mine]), len(limit))
        low, high = np.where(below, limit, low), np.where(below, high, limit)
    cut[rows] = np.minimum(weight, np.maximum(low, least)[mine])
    return cut


def split_by_weight(releases: list[Classes], records: Histories) -> Histories:
    """Histories whose records count alike in every mean, or by the same factor: their sum is one unknown.

    Parameters
    ----------
    releases : list of Classes
    records : Histories
        By record, of these releases.
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
