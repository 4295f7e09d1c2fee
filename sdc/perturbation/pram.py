"""Post-randomisation (PRAM): each value changes to another category with the probabilities of a transition
matrix.

Kooiman, Willenborg and Gouweleeuw 1997, PRAM: a method for disclosure limitation of microdata. Gouweleeuw,
Kooiman, Willenborg and de Wolf 1998, Post randomisation for statistical disclosure control (Journal of
Official Statistics 14).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from microguard.sdc.errors import InvalidParameter, ShapeMismatch


def transition_matrix(counts: np.ndarray, stay: float, *, invariant: bool = True) -> np.ndarray:
    """Return the transition matrix of one variable.

    Parameters
    ----------
    counts : (m,) array
        Number of records of each category, above 0; none if all values are missing.
    stay : float
        Smallest element of the diagonal.
    invariant : bool
        Whether the expected counts equal the counts of the file.

    Returns
    -------
    (m, m) float array
        Entry (i, j): probability that category i is published as j. Rows add up to 1.

    Raises
    ------
    InvalidParameter
    """
    counts = np.asarray(counts, np.float64)
    if counts.ndim != 1 or (counts <= 0).any():
        raise InvalidParameter("counts: expected one positive count for each category, found others")
    if not 0 <= stay <= 1:
        raise InvalidParameter(f"stay: expected a probability, found {stay!r}")
    m = len(counts)
    if m < 2:
        return np.ones((m, m))
    if not invariant:
        return _uniform(m, stay)
    matrix = two_stage(_uniform(m, max(stay, 1 / m)), counts)
    least = float(matrix.diagonal().min())
    identity = 0.0 if least >= stay else (stay - least) / (1 - least)
    return np.asarray((1 - identity) * matrix + identity * np.eye(m))


def _uniform(m: int, stay: float) -> np.ndarray:
    """Return the (m, m) matrix with constant diagonal and equal off-diagonal elements."""
    matrix = np.full((m, m), (1 - stay) / (m - 1))
    np.fill_diagonal(matrix, stay)
    return matrix


def two_stage(first: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the invariant matrix R = P Q of two-stage PRAM: counts' R = counts'.

    Q reverses the first stage P by Bayes' rule: Q(j, i) = P(i, j) t(i) / sum over l of P(l, j) t(l), with the
    counts t (Gouweleeuw et al. 1998, section 5).

    Parameters
    ----------
    first : (m, m) array
        P, whose rows add up to 1.
    counts : (m,) array
    """
    joint = first * np.asarray(counts, np.float64)[:, None]
    totals = joint.sum(axis=0)
    reverse = np.divide(joint, totals, out=np.zeros_like(joint), where=totals > 0).T
    return np.asarray(first @ reverse)


def free_matrix(categories: list[str], transitions: Mapping[tuple[str, str], float]) -> np.ndarray:
    """Return the transition matrix with the given probabilities of changes; the remaining probability is that
    of no change.

    Raises
    ------
    InvalidParameter
        If a transition names an unknown category, or if the transitions of a category sum to more than 1.
    """
    place = {category: i for i, category in enumerate(categories)}
    matrix = np.zeros((len(place), len(place)))
    for (category, other), probability in transitions.items():
        if category not in place or other not in place:
            raise InvalidParameter(
                "transitions: expected categories that occur in the file, found another one"
            )
        matrix[place[category], place[other]] += probability
    left = 1 - matrix.sum(axis=1)
    if left.min(initial=1.0) < -1e-12:
        raise InvalidParameter(
            "transitions: expected probabilities of a category with a sum of at most 1, found a larger sum"
        )
    np.fill_diagonal(matrix, np.maximum(left, 0.0))
    return matrix


def move(codes: np.ndarray, matrix: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Return the published category of each record.

    Parameters
    ----------
    codes : (n,) integer array
        Categories; negative ones are missing values, which stay missing.
    matrix : (m, m) array
        Transition matrix.
    uniforms : (n,) array
        Draws in [0, 1), one per record.
    """
    if codes.shape != uniforms.shape:
        raise ShapeMismatch(
            f"codes and uniforms: expected equal shapes, found {codes.shape} and {uniforms.shape}"
        )
    limits = np.cumsum(matrix, axis=1)
    limits[:, -1:] = 1.0
    moved = np.array(codes, np.int64)
    for code in np.unique(codes[codes >= 0]):
        there = codes == code
        possible = np.flatnonzero(matrix[code] > 0)
        place = np.searchsorted(limits[code, possible], uniforms[there], side="right")
        moved[there] = possible[np.minimum(place, len(possible) - 1)]
    return moved
