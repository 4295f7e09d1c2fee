"""What a class tells of a sensitive variable, whoever is who: diversity, closeness, homogeneity."""

from __future__ import annotations

import numpy as np
from microguard.sdc.errors import ShapeMismatch


def counts_by_class(classes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Records by class and value, (m, v) int64: what the measures of this file are computed from.

    Parameters
    ----------
    classes, values : (n,) int arrays
        Codes from 0; values in their order where they have one.
    """
    if classes.shape != values.shape:
        raise ShapeMismatch(f"{len(classes)} classes and {len(values)} values do not fit together")
    width = int(values.max(initial=-1)) + 1
    cells = np.bincount(classes * width + values, minlength=(int(classes.max(initial=-1)) + 1) * width)
    return cells.reshape(-1, width).astype(np.int64)


def distinct_diversity(counts: np.ndarray) -> np.ndarray:
    """Distinct values of each class: distinct l-diversity (Machanavajjhala et al. 2007)."""
    return np.count_nonzero(counts, axis=1)


def entropy_diversity(counts: np.ndarray) -> np.ndarray:
    """exp(entropy) of each class: as many equally frequent values say as much (definition 4.1 there)."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    logarithms = np.log(shares, out=np.zeros(shares.shape), where=shares > 0.0)
    return np.exp(-np.sum(shares * logarithms, axis=1))


def closeness(counts: np.ndarray, ordered: bool = False) -> np.ndarray:
    """Earth mover's distance of each class from the whole file: t-closeness (Li et al. 2007).

    Parameters
    ----------
    counts : (m, v) array
    ordered : bool
        Values are as far apart as their places (numbers), the ends by 1; else all are by 1 (section 4).
    """
    total = counts.sum(axis=0)
    whole = total / max(total.sum(), 1)
    gaps = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1) - whole
    if not ordered:
        return np.abs(gaps).sum(axis=1) / 2.0
    return np.abs(np.cumsum(gaps, axis=1)).sum(axis=1) / max(counts.shape[1] - 1, 1)


def homogeneous_share(counts: np.ndarray) -> float:
    """Share of records in classes with one value: who finds the class knows the value."""
    records = int(counts.sum())
    return float(counts[distinct_diversity(counts) == 1].sum() / records) if records else 0.0


def best_guess_share(counts: np.ndarray) -> float:
    """Share of records whose value is the most frequent of its class: what guessing by class attains."""
    records = int(counts.sum())
    return float(counts.max(axis=1).sum() / records) if records else 0.0
