"""Search for histories whose classes have only one sensitive value in common, which is thereby disclosed.

Each class may have several values while the intersection of the classes has only one (Wong, Fu, Wang and Pei
2007; Xiao and Tao 2007).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from microguard.pipelines.audit.differencing.classes import Classes
from microguard.pipelines.audit.differencing.histories import Histories, distinct_pairs, mix_bits
from scipy import sparse


def single_common_value(releases: Sequence[Classes], units: Histories, name: str) -> np.ndarray:
    """Return whether each history's classes have several sensitive values each but only one in common, (h,)
    bool.
    """
    codes = 1 + max((int(release.sensitive[name].max(initial=-1)) for release in releases), default=-1)
    if codes <= 0:
        return np.zeros(len(units), bool)
    cells = [distinct_pairs(release.class_of, release.sensitive[name]) for release in releases]
    members = [distinct_pairs(units.history_of[release.unit], release.class_of) for release in releases]
    classes = np.zeros(len(units), np.int64)
    for history, _ in members:
        classes += np.bincount(history, minlength=len(units))
    several = classes > 1
    digest = np.zeros(len(units), np.uint64)
    sets = []  # hash of the set of values of each class
    for release, (of, value), (history, class_of) in zip(releases, cells, members, strict=True):
        shown = np.zeros(len(release), np.uint64)
        np.add.at(shown, of, mix_bits(value, 3))
        sets.append(shown)
        several[history[np.bincount(of, minlength=len(release))[class_of] < 2]] = False
        digest[history] = shown[class_of]
    alike = np.ones(len(units), bool)
    for shown, (history, class_of) in zip(sets, members, strict=True):
        alike[history[shown[class_of] != digest[history]]] = False
    # classes with equal sets of several values have all these values in common, so nothing is disclosed
    looked_at = several & ~alike
    return looked_at & (_in_common(releases, cells, members, looked_at, codes) == 1)


def _in_common(
    releases: Sequence[Classes],
    cells: Sequence[tuple[np.ndarray, np.ndarray]],
    members: Sequence[tuple[np.ndarray, np.ndarray]],
    looked_at: np.ndarray,
    codes: int,
) -> np.ndarray:
    """Count the values that all classes of a history have in common, (h,), for the histories `looked_at`.

    Parameters
    ----------
    cells : sequence of (classes, values)
        Distinct pairs of class and value, by release.
    members : sequence of (histories, classes)
        Distinct pairs of history and class, by release.
    looked_at : (h,) bool array
    codes : int
        Number of values.
    """
    rows = np.cumsum(looked_at) - 1
    number = int(np.count_nonzero(looked_at))
    shown = sparse.csr_matrix((number, codes), dtype=np.int32)
    classes = np.zeros(number, np.int64)
    for release, (of, value), (history, class_of) in zip(releases, cells, members, strict=True):
        mine = looked_at[history]
        row = rows[history[mine]]
        member = _ones(row, class_of[mine], (number, len(release)))
        shown = shown + member @ _ones(of, value, (len(release), codes))
        classes += np.bincount(row, minlength=number)
    shown = shown.tocoo()
    common = np.zeros(len(looked_at), np.int64)
    in_all = shown.row[shown.data == classes[shown.row]]
    common[looked_at] = np.bincount(in_all, minlength=number)
    return common


def _ones(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> sparse.csr_matrix:
    return sparse.csr_matrix((np.ones(len(rows), np.int32), (rows, columns)), shape)
