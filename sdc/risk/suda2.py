"""SUDA2 scores: records that are unique on few variables (Elliot, Manning and Ford 2002).

A minimal sample unique is a set of variables on which a record is unique, although it is not unique on any
proper subset.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np
from microguard.sdc.errors import InvalidParameter, ShapeMismatch


@dataclass(frozen=True)
class Suda2Scores:
    """Minimal sample uniques and the SUDA2 score of each record.

    Attributes
    ----------
    counts : (n, M) int array
        Number of minimal sample uniques of each size 1 to M.
    scores : (n,) float array
        Sum over the minimal sample uniques of prod_{i=s}^{M} (p - i), with the size s and p variables. The
        product counts the paths to larger sets on which the record is therefore unique too.
    contributions : (p,) float array
        Share of the scores that involves each variable; 0 if no record is unique.
    """

    counts: np.ndarray
    scores: np.ndarray
    contributions: np.ndarray


def suda2(codes: np.ndarray, max_size: int | None = None) -> Suda2Scores:
    """Find the minimal sample uniques up to a size, and compute the SUDA2 scores from them.

    Parameters
    ----------
    codes : (n, p) int array
        Nominal key variables as codes from 0.
    max_size : int, optional
        Largest size M of the sets, by default p - 1. The work grows like 2^p, so choose 3 for many variables.
        M = p is not allowed, because every score would be 0.

    Raises
    ------
    ShapeMismatch, InvalidParameter

    Notes
    -----
    A record that is unique on a set is unique on all larger sets. A set is therefore a minimal sample unique
    if and only if the record is unique on it, but not on any subset with one variable less. Each set requires
    one sort of the records.
    """
    keys = np.asarray(codes)
    if keys.ndim != 2 or keys.shape[1] < 2:
        raise ShapeMismatch(
            f"codes: expected shape (n, p) with two or more variables, found shape {keys.shape}"
        )
    n, p = keys.shape
    most = p - 1 if max_size is None else max_size
    if not 1 <= most < p:
        raise InvalidParameter(f"max_size: expected 1 to {p - 1} variables, found {most}")
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
    return Suda2Scores(counts, scores, contributions / total if total > 0.0 else contributions)


def _joined(labels: np.ndarray, codes: np.ndarray) -> np.ndarray:
    width = int(codes.max(initial=0)) + 1
    return np.unique(labels * width + codes, return_inverse=True)[1].astype(np.int64).ravel()
