"""SUDA2 scores: records that few variables suffice to single out (Elliot, Manning and Ford 2002).

A minimal sample unique is a set of variables on which a record is unique while it is on no part of the set.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np
from microguard.sdc.errors import InvalidParameter, ShapeMismatch


@dataclass(frozen=True)
class SpecialUniques:
    """Minimal sample uniques of each record.

    Attributes
    ----------
    counts : (n, M) int array
        Minimal sample uniques by size, 1 to M.
    scores : (n,) float array
        Sum over them of prod_{i=s}^{M} (p - i), s being the size and p the number of variables: the number
        of larger sets that they single out the record on, by the ways to reach them.
    contributions : (p,) float array
        Share of the scores that involves each variable; 0 where nothing is unique.
    """

    counts: np.ndarray
    scores: np.ndarray
    contributions: np.ndarray


def special_uniques(codes: np.ndarray, max_size: int | None = None) -> SpecialUniques:
    """Minimal sample uniques up to a size, and the scores they make.

    Parameters
    ----------
    codes : (n, p) int array
        Nominal key variables as codes from 0.
    max_size : int, optional
        Largest set looked at, M; by default p - 1, which takes 2^p passes: of many variables give 3. A set of
        all p is no part of another: a record that is unique on it alone is not special, and with M = p every
        score would be 0.

    Notes
    -----
    A record is unique on a set as soon as it is on a part of it, so a unique on a set is minimal if and only
    if no set with one variable less has it. Each set costs one sort of the records.
    """
    keys = np.asarray(codes)
    if keys.ndim != 2 or keys.shape[1] < 2:
        raise ShapeMismatch("special uniques need (n, p) codes of two variables or more")
    n, p = keys.shape
    most = p - 1 if max_size is None else max_size
    if not 1 <= most < p:
        raise InvalidParameter(f"the largest set must have 1 to {p - 1} variables, found {most}")
    counts = np.zeros((n, most), dtype=np.int64)
    scores, contributions = np.zeros(n), np.zeros(p)
    labels: dict[tuple[int, ...], np.ndarray] = {(): np.zeros(n, dtype=np.int64)}
    unique: dict[tuple[int, ...], np.ndarray] = {(): np.full(n, n == 1)}
    for size in range(1, most + 1):
        finer: dict[tuple[int, ...], np.ndarray] = {}
        alone: dict[tuple[int, ...], np.ndarray] = {}
        worth = float(prod(p - i for i in range(size, most + 1)))
        for chosen in combinations(range(p), size):
            finer[chosen] = _joined(labels[chosen[:-1]], keys[:, chosen[-1]])
            alone[chosen] = np.bincount(finer[chosen])[finer[chosen]] == 1
            parts = [chosen[:i] + chosen[i + 1 :] for i in range(size)]
            minimal = alone[chosen] & ~np.any([unique[part] for part in parts], axis=0)
            counts[:, size - 1] += minimal
            scores[minimal] += worth
            contributions[list(chosen)] += worth * np.count_nonzero(minimal)
        labels, unique = finer, alone
    total = float(scores.sum())
    return SpecialUniques(counts, scores, contributions / total if total > 0.0 else contributions)


def _joined(labels: np.ndarray, codes: np.ndarray) -> np.ndarray:
    width = int(codes.max(initial=0)) + 1
    return np.unique(labels * width + codes, return_inverse=True)[1].astype(np.int64).ravel()
