"""Which protected variables can be computed from numbers that are published as they are.

Guessing (`conditional_mode`) counts how often a value goes with another, and an amount hardly ever occurs
twice. So it is asked what the records beside one tell of it (wages before and after tax, a branch of a
turnover class), in the whole file or among those of one category (a wage in the money of its country, a rank
in its region); whether it is the same multiple of the variable for some records (the income of a household of
one, the turnover of an enterprise with one establishment); and whether a sum or a product of columns is the
variable (an income and its sources, hours times pay).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import numpy as np
from microguard.pipelines.measures.attribute_disclosure.conditional_mode import (
    NEARLY,
    REPEATED_SHARE,
    Dependency,
)
from microguard.pipelines.measures.classes import CLOSE

#: Distinct values from which what lies beside them tells anything.
FEWEST = 50
#: Records for each column of a sum: fewer are fitted whatever they are.
RECORDS_PER_TERM = 20
#: Records that a sum is looked for in: elimination fits it once for each column.
FITTED = 4_000
#: Share of the records that a sum is fitted to again, those it meets best: a few miscoded ones spoil none.
MET = 0.9
#: Share of the records whose value a column may hold, or a multiple of it (as many as may lie in classes with
#: one value of a sensitive variable), and so many of them.
COPIED_SHARE, FEWEST_COPIES = 0.05, 20
#: Values that more of the records have tell nobody's (no income, a full week).
COMMON = 0.01
#: Multiples that differ by less are one: both sides may be rounded.
SAME_MULTIPLE = 1e-3
#: Of the records, how many categories a column may have to be looked into one by one.
CATEGORIES = 0.2
#: Of the largest value, what is no error of a computed one.
ROUNDING = 1e-9
_Values = Mapping[str, np.ndarray]
_Guesses = tuple[np.ndarray, np.ndarray] | None


def computed(
    columns: _Values,
    numeric: _Values,
    nominal: _Values,
    known: Iterable[Dependency] = (),
    categories: _Values | None = None,
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
    categories : mapping of name to (n,) integer array, optional
        Codes of columns published as they are, among whose values columns may tell a variable.
    """
    alone = {(each.column, each.determines) for each in known if not each.beside}
    found: list[Dependency] = []
    coarse = {
        name: codes
        for name, codes in (categories or {}).items()
        if 1 < len(np.unique(codes)) <= CATEGORIES * len(codes)
    }

    def among(target: str) -> _Values:
        return {name: codes for name, codes in coarse.items() if (name, target) not in alone}

    def tells(name: str, target: str, *beside: str) -> None:
        alone.add((name, target))
        found.append(Dependency(name, target, beside))

    for target, values in numeric.items():
        told = partial(_right, values, _within(values))
        for name, number in columns.items():
            if (name, target) in alone:
                continue
            if _copies(number, values):
                tells(name, target)
            elif beside := _told_by(name, among(target), told, partial(_beside, number, values)):
                tells(name, target, *beside[1:])
        left = {name: number for name, number in columns.items() if (name, target) not in alone}
        together = _sum_of(left, values, told) or _product_of(left, values, told)
        if together:
            found.append(Dependency(together[0], target, tuple(together[1:])))
    for target, codes in nominal.items():
        told = partial(_right, codes, np.equal)
        for name, number in columns.items():
            if (name, target) in alone:
                continue
            if beside := _told_by(name, among(target), told, partial(_nearest, number, codes)):
                tells(name, target, *beside[1:])
    return found


def _told_by(
    name: str, among: _Values, told: Callable[[_Guesses], bool], guessed: Callable[..., _Guesses]
) -> tuple[str, ...]:
    """A column where its numbers tell a variable, and the one among whose categories they do; else none."""
    if told(guessed()):
        return (name,)
    others = (other for other, codes in among.items() if other != name and told(guessed(codes)))
    beside = next(others, None)
    return () if beside is None else (name, beside)


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
    values: np.ndarray, hit: Callable[[np.ndarray, np.ndarray], np.ndarray], guessed: _Guesses
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


def _copies(number: np.ndarray, values: np.ndarray) -> bool:
    """Whether a column is one multiple of a variable, its value itself among them, for too many records."""
    _, place, times = np.unique(values, return_inverse=True, return_counts=True)
    rare = times[place] <= max(1.0, COMMON * len(values))
    known = rare & np.isfinite(number) & np.isfinite(values) & (number != 0.0) & (values != 0.0)
    multiples = np.sort(np.log(np.abs(values[known])) - np.log(np.abs(number[known])))
    alike = np.searchsorted(multiples, multiples + SAME_MULTIPLE, "right") - np.arange(len(multiples))
    return int(alike.max(initial=0)) >= max(FEWEST_COPIES, COPIED_SHARE * len(values))


def _sorted(number: np.ndarray, among: np.ndarray | None, places: np.ndarray) -> tuple[np.ndarray, ...]:
    """Category and number of the distinct numbers of each category, (m,) each, and where each record's is."""
    category = np.zeros(len(places), dtype=np.int64) if among is None else among[places]
    order = np.lexsort((number[places], category))
    of, at = category[order], number[places][order]
    fresh = np.ones(len(order), dtype=np.bool_)
    fresh[1:] = (of[1:] != of[:-1]) | (at[1:] != at[:-1])
    inverse = np.empty(len(order), dtype=np.int64)
    inverse[order] = np.cumsum(fresh) - 1
    return of[fresh], at[fresh], inverse


def _beside(number: np.ndarray, values: np.ndarray, among: np.ndarray | None = None) -> _Guesses:
    """Each record's value as it lies between those of the next smaller and next larger number.

    With `among` of its category, (n,) codes.
    """
    places = np.flatnonzero(np.isfinite(number) & np.isfinite(values))
    of, at, inverse = _sorted(number, among, places)
    if len(at) < FEWEST:
        return None
    mean = np.bincount(inverse, values[places]) / np.bincount(inverse)
    guesses = np.full(len(at), np.nan)
    between = 1 + np.flatnonzero(of[:-2] == of[2:])  # beyond the ends nothing lies beside
    share = (at[between] - at[between - 1]) / (at[between + 1] - at[between - 1])
    guesses[between] = mean[between - 1] + share * (mean[between + 1] - mean[between - 1])
    inside = np.isfinite(guesses[inverse])
    return places[inside], guesses[inverse[inside]]


def _nearest(number: np.ndarray, codes: np.ndarray, among: np.ndarray | None = None) -> _Guesses:
    """Each record's category as the commonest of those with the nearest other number.

    With `among` of one category of another column, (n,) codes.
    """
    places = np.flatnonzero(np.isfinite(number))
    of, at, inverse = _sorted(number, among, places)
    if len(at) < FEWEST:
        return None
    order = np.lexsort((codes[places], inverse))
    cells, counts = np.unique(
        np.stack([inverse[order], codes[places][order]], axis=1), axis=0, return_counts=True
    )
    by_count = np.lexsort((-counts, cells[:, 0]))
    first = np.unique(cells[by_count, 0], return_index=True)[1]
    commonest = cells[by_count][first, 1]
    gaps = np.where(of[1:] == of[:-1], np.diff(at), np.inf)
    before, after = np.concatenate([[np.inf], gaps]), np.concatenate([gaps, [np.inf]])
    nearest = np.arange(len(at)) + np.where(before <= after, -1, 1)
    inside = np.isfinite(np.minimum(before, after))[inverse]
    return places[inside], commonest[nearest[inverse[inside]]]


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
