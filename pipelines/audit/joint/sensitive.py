"""Sensitive values that the classes of a history have in common: one alone is a disclosure.

Each class may show several values and their intersection a single one (Wong, Fu, Wang and Pei 2007; Xiao
and Tao 2007).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from pipelines.audit.joint.classes import Classes
from pipelines.audit.joint.histories import Histories


def one_value_left(releases: Sequence[Classes], units: Histories, name: str) -> np.ndarray:
    """Histories whose classes each show several values of a sensitive variable, and share one, (h,) bool."""
    codes = 1 + max((int(release.sensitive[name].max(initial=-1)) for release in releases), default=-1)
    if codes <= 0:
        return np.zeros(len(units), bool)
    shown = sparse.csr_matrix((len(units), codes), dtype=np.int32)
    classes = np.zeros(len(units), np.int64)
    several = np.ones(len(units), bool)
    for release in releases:
        values = sparse.csr_matrix(
            (np.ones(len(release.of), np.int32), (release.of, release.sensitive[name])), (len(release), codes)
        )
        values.data[:] = 1
        history = units.of[release.unit]
        pairs = np.unique(np.column_stack([history, release.of]), axis=0)
        member = sparse.csr_matrix((np.ones(len(pairs), np.int32), pairs.T), (len(units), len(release)))
        shown = shown + member @ values
        classes += np.diff(member.indptr)
        few = np.diff(values.indptr) < 2
        several[pairs[few[pairs[:, 1]], 0]] = False
    shown = shown.tocoo()
    common = np.bincount(shown.row[shown.data == classes[shown.row]], minlength=len(units))
    return several & (classes > 1) & (common == 1)
