"""Compute a pairwise covering array: few rows that contain every pair of values of two factors.

The algorithm is greedy (AETG; Cohen et al. 1997), with a predicate instead of a list of constraints: rows
that the predicate refuses are not used. A pair for which no row is found is returned as refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, islice

Row = dict[str, str]
Pair = tuple[tuple[str, str], tuple[str, str]]
Factors = Mapping[str, Sequence[str]]
#: Number of accepted rows in which a pair is tried before it counts as refused.
STARTS = 4


def pairs_of(row: Mapping[str, str]) -> set[Pair]:
    """Return all pairs of values of a row, in the order of its factors."""
    return set(combinations(row.items(), 2))


def all_pairs(factors: Factors) -> list[Pair]:
    """Return every pair of values of two factors."""
    return [
        ((one, value), (other, beside))
        for one, other in combinations(factors, 2)
        for value in factors[one]
        for beside in factors[other]
    ]


def covering(factors: Factors, accepts: Callable[[Row], bool]) -> tuple[list[Row], list[Pair]]:
    """Return accepted rows that cover all pairs except the refused ones, and the refused pairs.

    Parameters
    ----------
    factors : mapping of factor to its values
        The first value of each factor is its plain value; a pair is first tried with plain values of the
        others.
    accepts : callable
        Whether a row is accepted.
    """
    rows: list[Row] = []
    refused: list[Pair] = []
    missing = dict.fromkeys(all_pairs(factors))
    while missing:
        pair = next(iter(missing))
        row = _row_with(pair, rows, factors, accepts)
        if row is None:
            del missing[pair]
            refused.append(pair)
            continue
        row = _improved(row, pair, missing, factors, accepts)
        rows.append(row)
        for covered in pairs_of(row):
            missing.pop(covered, None)
    return rows, refused


def _row_with(
    pair: Pair, rows: Sequence[Row], factors: Factors, accepts: Callable[[Row], bool]
) -> Row | None:
    """Return a row with both values of the pair that `accepts` accepts; None if there is none.

    The rows that are tried differ from a row of `_starts` in at most one further value.
    """
    starts = list(_starts(pair, rows, factors))
    for row in starts:
        if accepts(row):
            return row
    fixed = dict(pair)
    for row in starts[:STARTS]:
        for factor, values in factors.items():
            for value in values:
                if factor not in fixed and value != row[factor] and accepts(row | {factor: value}):
                    return row | {factor: value}
    return None


def _starts(pair: Pair, rows: Sequence[Row], factors: Factors) -> Iterator[Row]:
    """Yield the plain row, then rows with one value of the pair, each with both values."""
    both = dict(pair)
    yield {factor: values[0] for factor, values in factors.items()} | both
    for factor, value in pair:
        alike = (row | both for row in reversed(rows) if row[factor] == value)
        yield from islice(alike, STARTS)


def _improved(
    row: Row, pair: Pair, missing: Mapping[Pair, None], factors: Factors, accepts: Callable[[Row], bool]
) -> Row:
    """Return the row with each other value replaced by the accepted one that covers most missing pairs."""
    fixed = dict(pair)
    for factor in [name for name in factors if name not in fixed]:
        candidates = [row | {factor: value} for value in factors[factor]]
        gains = [
            sum(each in missing for each in pairs_of(candidate) if (factor, candidate[factor]) in each)
            for candidate in candidates
        ]
        ranked = sorted(zip(gains, candidates, strict=True), key=lambda each: each[0], reverse=True)
        row = next(candidate for _, candidate in ranked if candidate == row or accepts(candidate))
    return row
