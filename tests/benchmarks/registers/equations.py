"""The linear system of an attacker: every published mean is a sum of original values, except for rounding.

The unknowns are sums over rows with the same classes in all copies. Values are assumed to be constant over
the copies. If they are not, the system is inconsistent, and nothing is claimed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from tests.benchmarks.registers.copies import MatchedRows, rounding

#: Maximum size of a connected component that is solved.
MOST_UNKNOWNS = 2_000
#: Singular values below this share of the largest count as zero.
NO_VALUE = 1e-9
#: Maximum deviation that rounding explains, in standard errors of uniform rounding.
ERRORS = 3.0
#: A value with at most this relative error counts as disclosed.
KNOWN_WITHIN = 0.01


@dataclass(frozen=True)
class Claims:
    """Values that the attacker claims.

    Attributes
    ----------
    values : DataFrame
        `track`, `variable` and `value` of single rows.
    sums : int
        Number of determined sums over 2 to k - 1 rows.
    """

    values: pd.DataFrame
    sums: int


def same_history(followed: MatchedRows) -> tuple[np.ndarray, np.ndarray]:
    """Return the history of each track, and the tracks of each history."""
    _, of, sizes = np.unique(followed.classes(), axis=0, return_inverse=True, return_counts=True)
    return of.reshape(-1), sizes


def solve(followed: MatchedRows) -> Claims:
    """Solve the system for the values that the means of all copies determine."""
    of, sizes = same_history(followed)
    classes = followed.classes()
    first = np.unique(of, return_index=True)[1]
    columns = classes[first]  # the classes of each history
    means = _means(followed)
    history, copy = np.nonzero(columns >= 0)
    cell = pd.Series(columns[history, copy]) + copy * (classes.max() + 1)
    equation, cells = pd.factorize(cell)
    rows = np.bincount(equation, sizes[history])
    matrix = coo_matrix((1.0 / rows[equation], (equation, history)), shape=(len(cells), len(sizes))).tocsr()
    right = means.loc[cells % (classes.max() + 1)].to_numpy(np.float64)
    number, component = connected_components(matrix.T @ matrix, directed=False)
    unknowns = np.bincount(component, minlength=number)
    owner = component[matrix.indices[matrix.indptr[:-1]]]
    unit = np.array([rounding(followed.copies, name) for name in means.columns])
    track_of = np.full(len(sizes), -1, np.int64)
    track_of[of] = np.arange(len(of))
    claims, sums = [], 0
    for which in np.flatnonzero((unknowns > 1) & (unknowns <= MOST_UNKNOWNS)):
        members = np.flatnonzero(component == which)
        block = matrix[np.flatnonzero(owner == which)][:, members].toarray()
        estimate, known = _known(block, right[owner == which], unit)
        single, few = sizes[members] == 1, (sizes[members] > 1) & (sizes[members] < followed.k)
        sums += int(known[few].any(axis=1).sum())
        for j, name in enumerate(means.columns):
            chosen = np.flatnonzero(single & known[:, j])
            claims.append(
                pd.DataFrame(
                    {"track": track_of[members[chosen]], "variable": name, "value": estimate[chosen, j]}
                )
            )
    columns_of = ["track", "variable", "value"]
    return Claims(pd.concat(claims, ignore_index=True) if claims else pd.DataFrame(columns=columns_of), sums)


def _means(followed: MatchedRows) -> pd.DataFrame:
    """Return the published means by class."""
    names = list(followed.copies[0].numeric)
    first = followed.rows.drop_duplicates("class")
    parts = [
        followed.copies[number].frame.iloc[rows["place"]][names].set_axis(rows["class"].to_numpy())
        for number, rows in first.groupby("copy")
    ]
    return pd.concat(parts)


def _known(block: np.ndarray, right: np.ndarray, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return estimates of all unknowns, and whether they are determined, both (unknowns, variables)."""
    left, values, turned = np.linalg.svd(block, full_matrices=False)
    spanning = values > NO_VALUE * values[0]
    span = turned[spanning]
    follows = 1.0 - (span**2).sum(axis=0) < NO_VALUE
    inverse = (span.T / values[spanning]) @ left[:, spanning].T
    estimate = inverse @ right
    spread = np.sqrt((inverse**2).sum(axis=1))[:, None] * unit / np.sqrt(12.0) * ERRORS
    residual = np.sqrt(((right - block @ estimate) ** 2).sum(axis=0))
    consistent = residual <= np.sqrt(len(right)) * np.maximum(unit, np.finfo(float).eps * 1e6) / 2
    near = spread <= np.maximum(KNOWN_WITHIN * np.abs(estimate), unit)
    return estimate, follows[:, None] & near & consistent
