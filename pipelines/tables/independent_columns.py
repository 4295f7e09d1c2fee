"""Proof by true values that no codes of one column add up to codes of another.

If the codes S of one column have the same records as the codes T of another, the cells of S and those of T
have equal sums in every code of every common column. If the columns have few codes, all sums of S and of T
are compared in one of these. Otherwise the equations are solved: one row for each common code, one column for
each code. If their only solution is the set of all codes, no other sets add up to each other.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.cells.identity import CellCodes, cell_codes, cell_measures, written_alike
from microguard.pipelines.tables.published_before import PublishedCell
from microguard.schemas.specification.table import Table

#: Largest number of codes of which all sums are compared; 16 have 65,536.
FEW = 16
#: Amounts by measure and codes in other columns, and by code.
Amounts = dict[tuple[str, CellCodes], dict[str, float]]


def cannot_add_up(
    cells: Cells, table: Table, before: Iterable[PublishedCell], column: str, other: str
) -> bool:
    """Return whether true values prove that no codes of two columns have the same records, apart from all.

    False if both tables have too few common codes and some sums are equal by chance, or if their common sums
    differ, for example because the source was revised.

    Parameters
    ----------
    before : published cells of the same records
    column, other : column of the table, column of the published cells
    """
    here, there = _amounts_here(cells, table, column), _amounts_there(table, before, other)
    if there is None:
        return False
    rows = sorted(here.keys() & there.keys())
    ours, theirs = (sorted({code for row in rows for code in each[row]}) for each in (here, there))
    if not ours or not theirs:
        return False
    equations = np.array(
        [
            [here[row].get(code, 0.0) for code in ours] + [-there[row].get(code, 0.0) for code in theirs]
            for row in rows
        ]
    )
    # a finished cell was rounded, and so was each cell of which it is the sum; records add up exactly
    rounding = len(cells) if table.source == "cells" else 0.0
    if np.any(np.abs(equations.sum(axis=1)) > rounding):
        return False
    rounding = max(rounding, 0.5)
    if min(len(ours), len(theirs)) == 1:  # all records have this code
        return True
    if max(len(ours), len(theirs)) <= FEW and any(
        _no_sums_equal(row[: len(ours)], -row[len(ours) :], rounding) for row in equations
    ):
        return True
    if len(rows) < len(ours) + len(theirs) - 1:
        return False
    # a set that is neither empty nor everything has a part of at least this length that is orthogonal to
    # the set of all codes, which solves the equations
    codes = equations.shape[1]
    length = np.sqrt((codes - 1) / codes)
    second = np.linalg.svd(equations, compute_uv=False)[-2]
    return bool(second * length > rounding * np.sqrt(len(rows)))


def _no_sums_equal(ours: np.ndarray, theirs: np.ndarray, rounding: float) -> bool:
    """Return whether no sum of some, but not all, amounts equals such a sum of the other amounts."""
    one, other = (np.sort(_sums(amounts)) for amounts in (ours, theirs))
    place = np.searchsorted(other, one - rounding)
    following = np.append(other, np.inf)[place]
    return not bool(np.any(following <= one + rounding))


def _sums(amounts: np.ndarray) -> np.ndarray:
    """Return the sums of all sets of amounts that are neither empty nor everything, (2^n - 2,)."""
    sums = np.zeros(1)
    for amount in amounts:
        sums = np.concatenate([sums, sums + amount])
    return sums[1:-1]


def _amounts_here(cells: Cells, table: Table, column: str) -> Amounts:
    found: Amounts = {}
    for measure, codes, units in zip(
        cell_measures(cells, table), cell_codes(cells, table), cells.units, strict=True
    ):
        _add(found, measure, codes, column, float(units))
    return found


def _amounts_there(table: Table, before: Iterable[PublishedCell], column: str) -> Amounts | None:
    """Return the true values in units; None if one is unknown or has other digits."""
    found: Amounts = {}
    for cell in before:
        if column not in dict(cell.codes):
            continue
        if cell.original is None or -int(cell.original.as_tuple().exponent) != table.digits:
            return None
        _add(found, cell.measure, cell.codes, column, float(cell.original.scaleb(table.digits)))
    return found


def _add(found: Amounts, measure: str, codes: CellCodes, column: str, units: float) -> None:
    """Add the amount of a cell that has a code of the column and is not 0."""
    alike = dict(written_alike(codes))
    if column in alike and units:
        code = alike.pop(column)
        found.setdefault((measure, tuple(alike.items())), {})[code] = units
