"""Refusal of amounts that an earlier table published in another unit or under another name.

A cell in thousands of euros has other draws than the same cell in euros. Together they are two published
values of one cell, and their mean is near the true value.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

import numpy as np
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.cells.identity import (
    cell_codes,
    cell_measures,
    measures_of,
    written_alike,
)
from microguard.pipelines.tables.published_before import PublishedCell
from microguard.schemas.errors import GateRefused
from microguard.schemas.specification.table import Table

#: Minimum number of cells with the same ratio; unrelated columns do not have that many by chance.
FEWEST = 5
#: Smallest cell whose ratio is compared, as a multiple of the rounding error of its records.
TELLING = 20.0
#: Maximum share of the compared cells that may have another ratio, because a few records were corrected.
REVISED = 0.05
#: Maximum probability that fewer cells have equal ratios by chance. It equals that of `FEWEST` cells of size
#: `TELLING`, of which one determines the ratio.
COINCIDENCE = TELLING ** (1 - FEWEST)
#: Relative error up to which two sums are equal.
EXACT = 1e-9


def refuse_other_units(cells: Cells, table: Table, before: Iterable[PublishedCell]) -> None:
    """Refuse a table whose true values are a constant multiple of those of an earlier table.

    Parameters
    ----------
    before : cells of every table that is or was published

    Raises
    ------
    GateRefused
    """
    before = [cell for cell in before if cell.measure not in measures_of(table) and cell.original is not None]
    if not before:
        return
    rows = _rows(cells, table)
    pairs: dict[tuple[str, str, str], list[tuple[int, Decimal]]] = {}
    for cell in before:
        assert cell.original is not None
        found = rows.get(written_alike(cell.codes)) or rows.get(cell.members or "", [])
        for measure, row in found:
            pairs.setdefault((cell.release_id, cell.measure, measure), []).append((row, cell.original))
    for (release_id, theirs, ours), cells_of_both in pairs.items():
        if proportional(cells, table, cells_of_both):
            raise GateRefused(
                f"The amounts of {ours} are those of {theirs}, published in the table {release_id}, times a "
                "constant factor: the same cells would be published with two values, whose mean is close "
                "to the true value. Use the earlier column under its name and in its unit, or set "
                'publish.successive to "accept" if a steward has decided that both may be published.'
            )


def _rows(cells: Cells, table: Table) -> dict[object, list[tuple[str, int]]]:
    """Return measure and row of the cells, indexed by codes and by contributors."""
    rows: dict[object, list[tuple[str, int]]] = {}
    members = [""] * len(cells) if cells.members is None else cells.members
    measures, codes = cell_measures(cells, table), cell_codes(cells, table)
    for row, (measure, code, known) in enumerate(zip(measures, codes, members, strict=True)):
        rows.setdefault(written_alike(code), []).append((measure, row))
        if known:
            rows.setdefault(str(known), []).append((measure, row))
    return rows


def proportional(cells: Cells, table: Table, pairs: Iterable[tuple[int, Decimal]]) -> bool:
    """Return whether true values and earlier true values have a constant ratio, up to rounding.

    Parameters
    ----------
    pairs : row of a cell, and its earlier true value
    """
    listed = list(dict.fromkeys(pairs))
    rows = np.array([row for row, _ in listed])
    there = np.array([float(original) for _, original in listed])
    here = cells.units[rows] * 10.0**-table.digits
    records = np.ones(len(rows)) if cells.contributors is None else np.maximum(cells.contributors[rows], 1)
    digits = np.array([10.0 ** int(original.as_tuple().exponent) for _, original in listed])
    if not there.any() or not here.any():
        return False
    ratio = float(np.median(here[there != 0] / there[there != 0]))
    rounding = records * (10.0**-table.digits + abs(ratio) * digits) / 2
    sizes = np.maximum(np.abs(here), np.abs(ratio * there))
    telling = sizes > TELLING * rounding
    apart = np.abs(here - ratio * there) > rounding
    if telling.sum() >= FEWEST:
        return bool((apart & telling).sum() <= REVISED * telling.sum())
    # Counts and sums of a column of ones have so few digits that no single cell is telling, but no rounded
    # records either: if each of several cells has exactly the same ratio, they are the same amounts.
    equal, amounts = np.abs(here - ratio * there) <= EXACT * sizes, here[sizes > 0]
    if equal.all() and len(amounts) >= FEWEST and len(np.unique(amounts)) > 2:
        return True
    # If there are few cells, all must have the same ratio. Two cells are not enough: one determines the
    # ratio, and another may be the total of the rest. Cells with equal amounts count once.
    few, first = np.unique(np.column_stack([here, there])[telling], axis=0, return_index=True)
    chances = np.sort((rounding / np.maximum(sizes, rounding))[telling][first])[2:]
    return bool(len(few) > 2 and not apart[telling].any() and np.prod(chances) <= COINCIDENCE)
