"""Which protected variables can be computed from numbers that are published as they are.

Guessing (`pipelines.measures.guessing`) counts how often a value goes with another, and an amount hardly
ever occurs twice. So it is asked what the records beside one tell of it (wages before and after tax, a
branch of a turnover class), and whether a sum or a product of columns is the variable (an income and its
sources, hours times pay).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import numpy as np

from pipelines.measures.classes import CLOSE
from pipelines.measures.guessing import NEARLY, REPEATED_SHARE, Dependency

#: Distinct values from which what lies beside them tells anything.
FEWEST = 50
#: Records for each column of a sum: fewer are fitted whatever they are.
RECORDS_PER_TERM = 20
#: Records that a sum is looked for in: elimination fits it once for each column.
FITTED = 4_000
#: Share of the records that a sum is fitted to again, those it meets best: a few miscoded ones spoil none.
MET = 0.9
#: Of the largest value, what is no error of a computed one.
ROUNDING = 1e-9
_Values = Mapping[str, np.ndarray]


def computed(
    columns: _Values, numeric: _Values, nominal: _Values, known: Iterable[Dependency] = ()
) -> list[Dependency]:
    """Protected variables that published columns tell by their size.

    Parameters
    ----------
    columns : mapping of name to (n,) float array
        Magnitudes published as they are; NaN is missing.
    numeric : mapping of name to (n,) float array
        Protected magnitudes.
    nominal : mapping of name to (n,) integer array
        Codes of protected categories.
    known : iterable of Dependency
        What is told already; it is not told again.
    """
    alone = {(each.column, each.determines) for each in known if not each.beside}
    found = []

    def tells(name: str, target: str) -> None:
        alone.add((name, target))
        found.append(Dependency(name, target))

    for target, values in numeric.items():
        told = partial(_right, values, _within(values))
        for name, number in columns.items():
            if (name, target) not in alone and told(_beside(number, values)):
                tells(name, target)
        left = {name: number for name, number in columns.items() if (name, target) not in alone}
        together = _sum_of(left, values, told) or _product_of(left, values, told)
        if together:
            found.append(Dependency(together[0], target, tuple(together[1:])))
    for target, codes in nominal.items():
        told = partial(_right, codes, np.equal)
        for name, number in columns.items():
            if (name, target) not in alone and told(_nearest(number, codes)):
                tells(name, target)
    return found


def _within(values: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Whether guesses are the values, or `CLOSE` to them."""
    known = values[np.isfinite(values)]
    of_range = CLOSE * float(np.ptp(known)) if len(known) else 0.0
    rounding = ROUNDING * float(np.abs(known).max(initial=0.0))

    def hit(guessed: np.ndarray, true: np.ndarray) -> np.ndarray:
        error = np.abs(guessed - true)
        return np.asarray((error <= rounding) | ((error < of_range) & (error <= CLOSE * np.abs(true))))

    return hit


def _right(
    values: np.ndarray,
    hit: Callable[[np.ndarray, np.ndarray], np.ndarray],
    guessed: tuple[np.ndarray, np.ndarray] | None,
) -> bool:
    """Whether guesses get nearly all right of what the commonest value gets wrong.

    Parameters
    ----------
    guessed : (places, guesses) or None
        Records that something is guessed of; None where nothing can be.
    """
    if guessed is None or len(guessed[0]) < max(FEWEST, REPEATED_SHARE * len(values)):
        return False
    places, guesses = guessed
    true = values[places]
    commonest = int(np.unique(true, return_counts=True)[1].max())
    wrong = int(np.count_nonzero(~hit(guesses, true)))
    return commonest < len(true) and wrong <= (1.0 - NEARLY) * (len(true) - commonest)


def _beside(number: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Each record's value as it lies between those of the next smaller and next larger number."""
    places = np.flatnonzero(np.isfinite(number) & np.isfinite(values))
    at, inverse = np.unique(number[places], return_inverse=True)
    if len(at) < FEWEST:
        return None
    mean = np.bincount(inverse, values[places]) / np.bincount(inverse)
    guesses = np.empty(len(at))
    share = (at[1:-1] - at[:-2]) / (at[2:] - at[:-2])
    guesses[1:-1] = mean[:-2] + share * (mean[2:] - mean[:-2])
    guesses[[0, -1]] = mean[[1, -2]]
    inside = (inverse > 0) & (inverse < len(at) - 1)  # beyond the ends nothing lies beside
    return places[inside], guesses[inverse[inside]]


def _nearest(number: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Each record's category as the commonest of those with the nearest other number."""
    places = np.flatnonzero(np.isfinite(number))
    at, inverse = np.unique(number[places], return_inverse=True)
    if len(at) < FEWEST:
        return None
    order = np.lexsort((codes[places], inverse))
    cells, counts = np.unique(
        np.stack([inverse[order], codes[places][order]], axis=1), axis=0, return_counts=True
    )
    by_count = np.lexsort((-counts, cells[:, 0]))
    first = np.unique(cells[by_count, 0], return_index=True)[1]
    commonest = cells[by_count][first, 1]
    gaps = np.diff(at, prepend=-np.inf, append=np.inf)
    nearest = np.arange(len(at)) + np.where(gaps[:-1] <= gaps[1:], -1, 1)
    return places, commonest[nearest][inverse]


def _sum_of(columns: _Values, values: np.ndarray, told: Callable[..., bool]) -> list[str]:
    """The columns of which a protected number is a weighted sum; none where it is not."""
    return _combined(columns, values, lambda guesses: guesses, told)


def _product_of(columns: _Values, values: np.ndarray, told: Callable[..., bool]) -> list[str]:
    """The same of products and ratios."""
    logarithms = {
        name: np.log(np.where(number > 0, number, np.nan))
        for name, number in columns.items()
        if np.mean(number > 0) >= REPEATED_SHARE
    }
    return _combined(logarithms, np.log(np.where(values > 0, values, np.nan)), np.exp, told)


def _combined(
    columns: _Values,
    values: np.ndarray,
    back: Callable[[np.ndarray], np.ndarray],
    told: Callable[..., bool],
) -> list[str]:
    """Fewest columns, by leaving out one after the other, whose weighted sum tells a value."""
    names = list(columns)

    def tells(chosen: list[str]) -> bool:
        if len(chosen) < 2:
            return False
        terms = np.stack([columns[name] for name in chosen], axis=1)
        places = np.flatnonzero(np.isfinite(terms).all(axis=1) & np.isfinite(values))
        if len(places) < max(FEWEST, RECORDS_PER_TERM * (len(chosen) + 1)):
            return False
        return told((places, back(_fitted(terms[places], values[places]))))

    if not tells(names):
        # columns that few records have hide a sum of the others
        names = [name for name in names if np.isfinite(columns[name]).all()]
        if len(names) == len(columns) or not tells(names):
            return []
    for name in list(names):
        fewer = [each for each in names if each != name]
        names = fewer if tells(fewer) else names
    return names


def _fitted(terms: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Values of the weighted sum that fits best, where most records meet it.

    Parameters
    ----------
    terms : (m, p) array
    values : (m,) array
    """
    order = np.lexsort((*terms.T, values))  # so that the sums are those of any order of records
    scale = np.maximum(np.abs(terms).max(axis=0), np.finfo(float).tiny)
    design = np.column_stack([terms / scale, np.ones(len(terms))])
    rows = order[np.linspace(0, len(order) - 1, min(len(order), FITTED)).astype(int)]
    for _ in range(3):
        weights = np.linalg.lstsq(design[rows], values[rows], rcond=None)[0]
        error = np.abs(design[rows] @ weights - values[rows])
        rows = rows[error <= np.quantile(error, MET)]
    return np.asarray(design @ weights)
