"""Protected variables that can be computed from numbers published unchanged.

The test by conditional mode (`conditional_mode`) needs values that repeat, and amounts hardly ever repeat.
Four other tests are therefore made:

- whether the variable is a function of the rank of a column, in the whole file (wages before and after tax)
  or within a category (a wage in the currency of its country, a rank in its region), also a function of steps
  (an age by date of birth);
- whether a column with many values is such a function of the variable (an income in thousands, its distance
  from a mean);
- whether a column is a constant multiple of the variable for some records (the income of a household of one,
  the turnover of an enterprise with one establishment);
- whether a sum or a product of columns is the variable (an income and its sources, hours times pay).
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

#: Minimum number of distinct values for the test by rank.
FEWEST = 50
#: Minimum number of records for each column of a sum, because any columns fit a smaller number of records.
RECORDS_PER_TERM = 20
#: Sample size of the search for a sum, which fits the sample once for each column.
FITTED = 4_000
#: Share of the best-fitting records to which a sum is fitted again, so that a few miscoded records have no
#: effect.
MET = 0.9
#: Maximum share of records for which a column may equal the value or a multiple of it (the limit of
#: homogeneous classes), and minimum number of records for a finding.
COPIED_SHARE, FEWEST_COPIES = 0.05, 20
#: Values that a larger share of the records has are excluded, because they identify nobody (no income, a full
#: week).
COMMON = 0.01
#: Maximum relative difference of two multiples that count as equal; both columns may be rounded.
SAME_MULTIPLE = 1e-3
#: Maximum number of categories that are tested separately, as a share of the records.
CATEGORIES = 0.2
#: Rounding error of a computed value, as a share of the largest absolute value.
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
    """Return the protected variables that can be computed from published columns.

    Parameters
    ----------
    columns : mapping of name to (n,) float array
        Magnitudes that are published unchanged; NaN is missing.
    numeric : mapping of name to (n,) float array
        Protected magnitudes.
    nominal : mapping of name to (n,) integer array
        Codes of protected categories.
    known : iterable of Dependency
        Dependencies already found; these are not returned again.
    categories : mapping of name to (n,) integer array, optional
        Codes of columns that are published unchanged; within their categories, columns may determine a
        variable.
    """
    known = list(known)
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
            if _copies(number, values) or _follows(number, values):
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
    before = {_columns(each) for each in known}
    return [each for each in found if _columns(each) not in before]


def _columns(found: Dependency) -> tuple[str, frozenset[str]]:
    return found.determines, frozenset([found.column, *found.beside])


def _told_by(
    name: str, among: _Values, told: Callable[[_Guesses], bool], guessed: Callable[..., _Guesses]
) -> tuple[str, ...]:
    """Return the column whose rank determines a variable, and a category column if this holds only within its
    categories; otherwise None.
    """
    if told(guessed()):
        return (name,)
    others = (other for other, codes in among.items() if other != name and told(guessed(codes)))
    beside = next(others, None)
    return () if beside is None else (name, beside)


def _within(values: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return for each guess whether it is within `CLOSE` of the value, (n,) bool."""
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
    """Return whether guesses are right for `NEARLY` all records, excluding those with the most frequent
    value.

    Parameters
    ----------
    guessed : (places, guesses) or None
        Positions of the records with a guess, and the guesses; None if nothing can be guessed.
    """
    if guessed is None or len(guessed[0]) < max(FEWEST, REPEATED_SHARE * len(values)):
        return False
    places, guesses = guessed
    true = values[places]
    commonest = int(np.unique(true, return_counts=True)[1].max())
    wrong = int(np.count_nonzero(~hit(guesses, true)))
    return commonest < len(true) and wrong <= (1.0 - NEARLY) * (len(true) - commonest)


def _copies(number: np.ndarray, values: np.ndarray) -> bool:
    """Return whether a column is a constant multiple of a variable (including 1) for too many records."""
    _, place, times = np.unique(values, return_inverse=True, return_counts=True)
    rare = times[place] <= max(1.0, COMMON * len(values))
    known = rare & np.isfinite(number) & np.isfinite(values) & (number != 0.0) & (values != 0.0)
    multiples = np.sort(np.log(np.abs(values[known])) - np.log(np.abs(number[known])))
    alike = np.searchsorted(multiples, multiples + SAME_MULTIPLE, "right") - np.arange(len(multiples))
    return int(alike.max(initial=0)) >= max(FEWEST_COPIES, COPIED_SHARE * len(values))


def _follows(number: np.ndarray, values: np.ndarray) -> bool:
    """Return whether a column with many values is a function of the rank of a variable.

    Each value of such a column belongs to few values of the variable: an income in thousands, or its distance
    from a mean. A column with fewer values (a band) is limited by the records that it makes unique.
    """
    if len(np.unique(number[np.isfinite(number)])) < FEWEST:
        return False
    return _right(number, _within(number), _beside(values, number))


def _sorted(number: np.ndarray, among: np.ndarray | None, places: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return category and number of all distinct pairs, (m,) each, and the index of each record's
    pair, (n,).
    """
    category = np.zeros(len(places), dtype=np.int64) if among is None else among[places]
    order = np.lexsort((number[places], category)) if among is not None else np.argsort(number[places])
    of, at = category[order], number[places][order]
    fresh = np.ones(len(order), dtype=np.bool_)
    fresh[1:] = (of[1:] != of[:-1]) | (at[1:] != at[:-1])
    inverse = np.empty(len(order), dtype=np.int64)
    inverse[order] = np.cumsum(fresh) - 1
    return of[fresh], at[fresh], inverse


def _beside(number: np.ndarray, values: np.ndarray, among: np.ndarray | None = None) -> _Guesses:
    """Guess each value by interpolation between the records with the next smaller and the next larger number.

    With `among`, (n,) codes, only records of the same category are used. If only one of these two records has
    the value, it is the guess: who knows the rule (the age by date of birth) knows on which side of a step a
    record is.
    """
    places = np.flatnonzero(np.isfinite(number) & np.isfinite(values))
    of, at, inverse = _sorted(number, among, places)
    if len(at) < FEWEST:
        return None
    mean = np.bincount(inverse, values[places]) / np.bincount(inverse)
    guesses = np.full(len(at), np.nan)
    # the first and the last position have a neighbour on one side only
    between = 1 + np.flatnonzero(of[:-2] == of[2:])
    share = (at[between] - at[between - 1]) / (at[between + 1] - at[between - 1])
    before, after = mean[between - 1], mean[between + 1]
    guesses[between] = before + share * (after - before)
    guesses[between] = np.where(
        (before == mean[between]) | (after == mean[between]), mean[between], guesses[between]
    )
    inside = np.isfinite(guesses[inverse])
    return places[inside], guesses[inverse[inside]]


def _nearest(number: np.ndarray, codes: np.ndarray, among: np.ndarray | None = None) -> _Guesses:
    """Guess each category as the most frequent one among the records whose other number is nearest.

    With `among`, (n,) codes, only records of the same category of that column are used.
    """
    places = np.flatnonzero(np.isfinite(number))
    of, at, inverse = _sorted(number, among, places)
    if len(at) < FEWEST:
        return None
    order = np.lexsort((codes[places], inverse))
    pair, code = inverse[order], codes[places][order]
    starts = np.flatnonzero(np.r_[True, (pair[1:] != pair[:-1]) | (code[1:] != code[:-1])])
    counts = np.diff(np.r_[starts, len(order)])
    by_count = starts[np.lexsort((-counts, pair[starts]))]
    commonest = code[by_count[np.r_[True, np.diff(pair[by_count]) > 0]]]
    gaps = np.where(of[1:] == of[:-1], np.diff(at), np.inf)
    before, after = np.concatenate([[np.inf], gaps]), np.concatenate([gaps, [np.inf]])
    nearest = np.arange(len(at)) + np.where(before <= after, -1, 1)
    inside = np.isfinite(np.minimum(before, after))[inverse]
    return places[inside], commonest[nearest[inverse[inside]]]


def _sum_of(columns: _Values, values: np.ndarray, told: Callable[..., bool]) -> list[str]:
    """Return the columns whose weighted sum equals a protected number; empty if there are none."""
    return _combined(columns, values, lambda guesses: guesses, told)


def _product_of(columns: _Values, values: np.ndarray, told: Callable[..., bool]) -> list[str]:
    """Return the columns whose product or ratio equals a protected number; empty if there are none."""
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
    """Return the smallest set of columns whose weighted sum gives the value, by backward elimination."""
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
        # without columns that have values in few records, which would hide that the value is a sum of other
        # columns
        names = [name for name in names if np.isfinite(columns[name]).all()]
        if len(names) == len(columns) or not tells(names):
            return []
    for name in list(names):
        fewer = [each for each in names if each != name]
        names = fewer if tells(fewer) else names
    return names


def _fitted(terms: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the values of the best-fitting weighted sum if it fits most records; otherwise None.

    Parameters
    ----------
    terms : (m, p) array
    values : (m,) array
    """
    order = np.lexsort((*terms.T, values))  # sorted, so that the sums do not depend on the order of records
    scale = np.maximum(np.abs(terms).max(axis=0), np.finfo(float).tiny)
    design = np.column_stack([terms / scale, np.ones(len(terms))])
    rows = order[np.linspace(0, len(order) - 1, min(len(order), FITTED)).astype(int)]
    for _ in range(3):
        weights = np.linalg.lstsq(design[rows], values[rows], rcond=None)[0]
        error = np.abs(design[rows] @ weights - values[rows])
        rows = rows[error <= np.quantile(error, MET)]
    return np.asarray(design @ weights)
