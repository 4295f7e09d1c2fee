"""Equivalence classes of records: who is alike, how many, and who is alone."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import pandas as pd
from microguard.sdc.errors import ShapeMismatch, UnknownVariable


def classes_of(frame: pd.DataFrame, names: Sequence[Hashable] | None = None) -> np.ndarray:
    """Class of each record, 0 to m - 1: records with equal values of some variables (default: all).

    A missing value is a value like any other, as in a release.

    Raises
    ------
    UnknownVariable
    """
    chosen = list(frame.columns) if names is None else list(names)
    for name in chosen:
        if name not in frame.columns:
            raise UnknownVariable("the frame has no variable of this name", variable=str(name))
    if not chosen:
        return np.zeros(len(frame), dtype=np.int64)
    return frame.groupby(chosen, dropna=False, sort=False, observed=True).ngroup().to_numpy(np.int64)


def class_sizes(classes: np.ndarray) -> np.ndarray:
    """Records of each record's class, (n,) int64."""
    return np.bincount(classes)[classes].astype(np.int64) if len(classes) else np.empty(0, np.int64)


def unique_share(classes: np.ndarray) -> float:
    """Share of records that no other one equals; 0 of no records."""
    return float(np.mean(class_sizes(classes) == 1)) if len(classes) else 0.0


def k_map(classes: np.ndarray, population: np.ndarray, k: int) -> int:
    """Records whose class holds fewer than k units of the population (k-map; Sweeney 2002).

    Parameters
    ----------
    classes : (n,) int array
        Class of each record, as `classes_of` gives it.
    population : (m,) array
        Units of the population in each class; a class of the sample that the population lacks counts 0.
    """
    if len(classes) and int(classes.max()) >= len(population):
        raise ShapeMismatch(f"{int(classes.max()) + 1} classes and counts of {len(population)}")
    return int(np.count_nonzero(np.asarray(population)[classes] < k)) if len(classes) else 0
