"""Columns that are computed from others: duplicates, functions, sums, products, ratios and bands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from keyword import iskeyword

import numpy as np
from microguard.pipelines.drafting.column import Column
from microguard.pipelines.drafting.table import quoted, shown

FEWEST_RECORDS = 50
"""Minimum number of records for the search; in a smaller file columns may agree by chance."""
FEWEST_VALUES = 8
"""Minimum number of distinct values of a computed number; sums of few-valued variables may agree by chance.
"""
FEWEST_OF_FUNCTIONS = 3
"""Minimum number of distinct values of a function of one column."""
MOST_NUMBERS = 60
"""Maximum number of numeric columns that are compared."""
FIRST = 200
"""Number of records on which pairs of columns are compared first."""
MOST_BANDS = 30
FEWEST_IN_BANDS = 10
TOLERANCE = 1e-6
"""Relative error of computed values that floating-point numbers and exports cause."""
MOST_CONSTANT = 0.9
"""Maximum share of the most frequent value in a term of a sum or product."""
MAX_TERMS = 12
FITTED = 500
"""Number of records on which a sum of many columns is fitted before it is tested on all records."""


@dataclass(frozen=True)
class Derived:
    """A column that is computed from others.

    Attributes
    ----------
    column : Column
    expression : str or None
        How it is computed, in the language of `[derived]`; None if it cannot be recomputed from numbers.
    terms : tuple of Column
    what : str
        Description without values: "the logarithm of income".
    """

    column: Column
    expression: str | None
    terms: tuple[Column, ...]
    what: str


def find_derived(
    columns: Sequence[Column],
    codes: Mapping[str, np.ndarray],
    numbers: Mapping[str, np.ndarray],
    amounts: Collection[str],
) -> list[Derived]:
    """Return the computed columns; the terms of their formulas are not computed columns themselves.

    Parameters
    ----------
    columns : sequence of Column
        Columns that may be published, in the order of the file.
    codes : mapping of label to (n,) int array
        Values of the sampled records, numbered in the order of their first records.
    numbers : mapping of label to (n,) float array
        Their numbers; NaN is missing.
    amounts : collection of str
        Labels of the columns that are amounts, not codes.
    """
    magnitudes = {label: values for label, values in numbers.items() if label in amounts}
    if not columns or len(next(iter(codes.values()))) < FEWEST_RECORDS:
        return []
    found: dict[str, Derived] = {}

    def left() -> list[Column]:
        return [column for column in columns if column.label not in found]

    searches = (
        (_functions, numbers),
        (_copies, numbers),
        (_duplicates, numbers),
        (_sums_and_products, magnitudes),
        (_totals, magnitudes),
        (_bands, magnitudes),
    )
    for search, values in searches:
        for each in search(left(), codes, values):
            terms_computed = any(term.label in found for term in each.terms)
            used = any(each.column in other.terms for other in found.values())
            if each.column.label not in found and not terms_computed and not used:
                found[each.column.label] = each
    return [found[column.label] for column in columns if column.label in found]


_Values = Mapping[str, np.ndarray]


def _copies(columns: Sequence[Column], codes: _Values, numbers: _Values) -> Iterator[Derived]:
    """Find columns that contain the same numbers as an earlier column."""
    seen: dict[bytes, Column] = {}
    for column in columns:
        if column.label in numbers and column.distinct > 1:
            first = seen.setdefault(numbers[column.label].tobytes(), column)
            if first is not column:
                yield Derived(column, _quoted(first), (first,), f"a duplicate of {shown(first.name)}")


def _duplicates(columns: Sequence[Column], codes: _Values, numbers: _Values) -> Iterator[Derived]:
    """Find columns that group the records like an earlier column, such as a code and its label."""
    seen: dict[tuple[int, bytes], Column] = {}
    for column in columns:
        # columns whose values hardly repeat all group the records in the same way, so they are skipped
        if 1 < column.distinct <= MOST_CONSTANT * len(codes[column.label]):
            first = seen.setdefault((column.distinct, codes[column.label].tobytes()), column)
            if first is not column and _in_one_order(numbers.get(first.label), numbers.get(column.label)):
                yield Derived(column, None, (first,), f"a duplicate of {shown(first.name)}")


def _in_one_order(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    """Return whether one numeric column is a monotone function of the other; this requires many distinct
    values.

    Many values are required because all amounts of households group the persons in the same way.
    """
    if one is None or other is None or len(np.unique(one)) <= MOST_BANDS:
        return True
    steps = np.diff(other[np.argsort(one, kind="stable")])
    return bool((steps[np.isfinite(steps)] >= 0).all() or (steps[np.isfinite(steps)] <= 0).all())


FUNCTIONS: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "the logarithm of {0}": ("log({0})", np.log),
    "the logarithm of 1 + {0}": ("log(1 + {0})", np.log1p),
    "the logarithm of 0.1 + {0}": ("log(0.1 + {0})", lambda x: np.log(0.1 + x)),
    "the decimal logarithm of {0}": ("log10({0})", np.log10),
    "the square of {0}": ("{0} * {0}", np.square),
    "the square root of {0}": ("sqrt({0})", np.sqrt),
    "a hundredth of {0}": ("{0} / 100", lambda x: x / 100),
    "a thousandth of {0}": ("{0} / 1000", lambda x: x / 1000),
    "a twelfth of {0}": ("{0} / 12", lambda x: x / 12),
    "the reciprocal of {0}": ("1 / {0}", lambda x: 1 / x),
}
"""Description of the computation, as text and as code; {0} is replaced by the column from which it is
computed."""


def _functions(columns: Sequence[Column], codes: _Values, numbers: _Values) -> Iterator[Derived]:
    able = _numeric(columns, numbers, FEWEST_OF_FUNCTIONS)
    first = {column.label: numbers[column.label][:FIRST] for column in able}
    with np.errstate(all="ignore"):
        for base in able:
            for what, (expression, function) in FUNCTIONS.items():
                expected = function(first[base.label])
                for column in able:
                    if column is base or not _agree(first[column.label], expected):
                        continue
                    if _agree(numbers[column.label], function(numbers[base.label])):
                        text = expression.format(_quoted(base))
                        yield Derived(column, text, (base,), what.format(shown(base.name)))


def _sums_and_products(columns: Sequence[Column], codes: _Values, numbers: _Values) -> Iterator[Derived]:
    able = [column for column in _numeric(columns, numbers) if _varies(codes[column.label])]
    if len(able) < 3:
        return
    every = np.stack([numbers[column.label][:FIRST] for column in able])
    for i, one in enumerate(able):
        for j, other in enumerate(able):
            if i == j:
                continue
            for sign, what in (("+", "the sum of"), ("*", "the product of"), ("/", "the ratio of")):
                if sign != "/" and j < i:
                    continue
                with np.errstate(all="ignore"):
                    expected = _combined(sign, every[i], every[j])
                    hits = np.flatnonzero(_close(every, expected).all(axis=1))
                for hit in hits:
                    target = able[hit]
                    if hit in (i, j):
                        continue
                    with np.errstate(all="ignore"):
                        whole = _combined(sign, numbers[one.label], numbers[other.label])
                    longest = max(_decimals(numbers[each.label]) for each in (one, other))
                    if _decimals(numbers[target.label]) >= longest and _agree(numbers[target.label], whole):
                        text = f"{_quoted(one)} {sign} {_quoted(other)}"
                        yield Derived(
                            target, text, (one, other), f"{what} {shown(one.name)} and {shown(other.name)}"
                        )


def _totals(columns: Sequence[Column], codes: _Values, numbers: _Values) -> Iterator[Derived]:
    """Find sums of three or more columns, by least squares whose coefficients are 0 or 1."""
    able = [column for column in _numeric(columns, numbers) if np.isfinite(numbers[column.label]).all()]
    rows = np.stack([numbers[column.label] for column in able], axis=1) if len(able) > 3 else None
    if rows is None or len(rows) < 3 * len(able):
        return
    few = rows[:: max(len(rows) // FITTED, 1)]
    for i, target in enumerate(able):
        others = [j for j in range(len(able)) if j != i]
        scale = np.abs(few[:, others]).max(axis=0)
        solved = np.linalg.lstsq(few[:, others] / np.where(scale > 0, scale, 1.0), few[:, i], rcond=None)[0]
        weights = solved / np.where(scale > 0, scale, 1.0)
        chosen = np.flatnonzero(np.abs(weights - 1.0) < 1e-4)
        if not 3 <= len(chosen) <= MAX_TERMS or np.any(np.abs(np.delete(weights, chosen)) > 1e-4):
            continue
        terms = tuple(able[others[j]] for j in chosen)
        if _agree(rows[:, i], rows[:, [others[j] for j in chosen]].sum(axis=1)):
            text = " + ".join(map(_quoted, terms))
            yield Derived(target, text, terms, f"the sum of {len(terms)} columns")


def _bands(columns: Sequence[Column], codes: _Values, numbers: _Values) -> Iterator[Derived]:
    """Find categories that are bands of a number: sorted by the number, the category changes as rarely as
    possible.
    """
    for base in columns:
        number = numbers.get(base.label)
        if number is None or base.distinct < FEWEST_IN_BANDS:
            continue
        known = np.isfinite(number)
        order = np.argsort(number[known], kind="stable")
        for column in columns:
            if column is base or not 2 <= column.distinct <= min(MOST_BANDS, base.distinct / 2):
                continue
            ordered = codes[column.label][known][order]
            changes = int(np.count_nonzero(ordered[1:] != ordered[:-1]))
            ties = number[known][order]
            splits_ties = np.any((ordered[1:] != ordered[:-1]) & (ties[1:] == ties[:-1]))
            if changes == len(np.unique(ordered)) - 1 > 0 and not splits_ties:
                yield Derived(column, None, (base,), f"bands of {shown(base.name)}")


def _numeric(columns: Iterable[Column], numbers: _Values, fewest: int = FEWEST_VALUES) -> list[Column]:
    able = [column for column in columns if column.label in numbers and column.distinct >= fewest]
    return able[:MOST_NUMBERS]


def _varies(codes: np.ndarray) -> bool:
    return bool(np.unique(codes, return_counts=True)[1].max() <= MOST_CONSTANT * len(codes))


def _decimals(values: np.ndarray) -> float:
    """Return the share of values with more than two decimals, which is high for computed values."""
    known = values[np.isfinite(values)][:FIRST]
    return float(np.mean(np.abs(known - known.round(2)) > 1e-9)) if len(known) else 0.0


def _combined(sign: str, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return one + other if sign == "+" else one * other if sign == "*" else one / other


def _close(values: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return whether values equal the expected ones, or are missing where the expected ones are not
    finite.
    """
    known = np.isfinite(values) & np.isfinite(expected)
    error = np.abs(values - np.where(known, expected, 0.0))
    scale = np.maximum(np.abs(values), 1.0)
    return np.asarray(
        (known & (error <= TOLERANCE * scale)) | (~np.isfinite(values) & ~np.isfinite(expected))
    )


def _agree(values: np.ndarray, expected: np.ndarray) -> bool:
    known = np.isfinite(values) & np.isfinite(expected)
    return bool(np.count_nonzero(known) >= FEWEST_RECORDS / 2 and _close(values, expected).all())


def _quoted(column: Column) -> str:
    """Return a column name for use in an expression, quoted unless it is a plain word."""
    plain = column.name.isascii() and column.name.isidentifier() and not iskeyword(column.name)
    return column.name if plain else quoted(column.name)
