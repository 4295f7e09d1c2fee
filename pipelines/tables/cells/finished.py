"""Cells of a finished table; its margins are recomputed in units of the last published digit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.tables.a_priori import STATUSES, SUPPRESSED
from microguard.pipelines.tables.cells.cells import LARGEST_UNITS, Cells, tabulated
from microguard.pipelines.tables.given_cells import prepared
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.table import Table
from microguard.sdc.cta.table.summation import Summation
from pyspark.sql import DataFrame

EMPTY = "empty"
"""Status of a cell without value and contributors."""
#: Rounding error of floating-point sums, relative to the total.
_FLOAT_TOLERANCE = 1e-9
_LEVELS = (
    "lower_protection",
    "upper_protection",
    "sliding_protection",
    "lower_capacity",
    "upper_capacity",
)


def cells_of_table(frame: DataFrame, table: Table) -> Cells:
    """Return the cells of an input that is a finished table.

    Parameters
    ----------
    frame : DataFrame
        One row for each cell, margins included.

    Raises
    ------
    InputRejected
        If cells have no code or too many digits, margins are missing, totals differ from the sum of their
        parts by more than the tolerance, or a level is negative.
    SdcError
        If the input has a cell twice.
    """
    assert table.value is not None
    rows = frame.select(
        *[column(name).cast("string").alias(f"c{i}") for i, name in enumerate(table.columns)],
        *[column(name).cast("double").alias(f"n{i}") for i, name in enumerate(table.numbers)],
        *[column(name).cast("string").alias("status") for name in (table.status,) if name is not None],
    ).toPandas()
    return cells_of_rows(rows, table)


def cells_of_rows(rows: pd.DataFrame, table: Table) -> Cells:
    """Return the cells of rows with codes in columns ``c0``, ..., numbers in ``n0``, ... and ``status``."""
    assert table.value is not None
    rows = prepared(rows, table)
    codes = rows[[f"c{i}" for i in range(len(table.columns))]].set_axis(list(table.columns), axis=1)
    numbers = {name: rows[f"n{i}"].to_numpy(float) for i, name in enumerate(table.numbers)}
    scale = 10.0**table.digits
    units = numbers[table.value] * scale
    if codes.isna().any(axis=None) or np.any(np.abs(units) >= LARGEST_UNITS):
        raise InputRejected(
            "A cell has no code in a dimension, or a value with too many digits. Add the codes "
            f"({table.total!r} where a dimension is summed over), or use a larger unit for the values."
        )
    input_columns: dict[str, np.ndarray] = {
        key: numbers[name] * scale for key in _LEVELS if (name := getattr(table, key)) is not None
    }
    if table.cost_column is not None:
        input_columns["costs"] = numbers[table.cost_column]
    for key, array in input_columns.items():
        if np.any(array < 0):
            raise InputRejected(
                f"{int(np.sum(array < 0))} cell(s) have negative {key.replace('_', ' ')}, expected at least "
                "0. Correct them."
            )
    if table.status is not None:
        input_columns["status"] = _statuses(rows["status"], table)
    contributors = numbers[table.contributors] if table.contributors else None
    if contributors is None and table.kind == "frequency":
        contributors = numbers[table.value]
    largest = np.stack([numbers[name] * scale for name in table.largest], axis=1) if table.largest else None
    _refuse_contradictions(units, numbers, input_columns.get("status"), table)
    if table.status is not None:
        input_columns["status"] = np.where(input_columns["status"] == EMPTY, "safe", input_columns["status"])
    cells = tabulated(
        codes,
        table,
        units=units,
        contributors=contributors,
        largest=largest,
        input_columns=input_columns,
        gross=None if table.shadow is None else np.abs(numbers[table.shadow]) * scale,
    )
    cells = _in_whole_units(cells, table)
    if not table.suppressed:
        return cells
    from microguard.pipelines.tables.suppression.contributors import contributions_of_numbers

    return replace(cells, contributions=contributions_of_numbers(cells))


def _statuses(codes: pd.Series, table: Table) -> np.ndarray:
    """Return the status of each cell in `table.status`, (cells,); empty if there is none."""
    words = [each for each in STATUSES if each and (each != SUPPRESSED or table.suppressed)]
    meaning: Mapping[str, str] = table.statuses or {word: word for word in words}
    statuses = codes.str.strip().fillna("").map({"": "", **meaning})
    if statuses.isna().any():
        raise InputRejected(
            f"{int(statuses.isna().sum())} cell(s) have a code in {table.status} that table.statuses does "
            "not contain. Add the code with its meaning to table.statuses."
        )
    return statuses.to_numpy(object)


def _refuse_contradictions(
    units: np.ndarray, numbers: Mapping[str, np.ndarray], status: np.ndarray | None, table: Table
) -> None:
    """Refuse numbers of contributors that are none, largest contributions in another order, and cells with a
    value that are stated to be empty: the rules would take them for cells that need no protection.
    """
    filled = units != 0
    for larger, smaller in pairwise(table.largest):
        wrong = np.abs(numbers[smaller]) > np.abs(numbers[larger])
        if wrong.any():
            raise InputRejected(
                f"{int(wrong.sum())} cell(s) have a larger contribution in {smaller} than in {larger}: "
                "expected the columns of table.largest from the largest contribution down. Reorder them."
            )
    if table.contributors is not None:
        count = numbers[table.contributors]
        wrong = (count < 0) | (count != np.rint(count)) | (filled & (count == 0))
        if wrong.any():
            raise InputRejected(
                f"{int(wrong.sum())} cell(s) have another number in {table.contributors} than one of "
                "contributors: expected a whole number without weights, at least 1 if the value is not 0. "
                "Correct it."
            )
        filled = filled | (count > 0)
    wrong = np.zeros(len(units), bool) if status is None else (status == EMPTY) & filled
    if wrong.any():
        raise InputRejected(
            f"{int(wrong.sum())} cell(s) are empty by their code in {table.status}, but have a value or "
            "contributors. Correct the code, or table.statuses."
        )


def _in_whole_units(cells: Cells, table: Table) -> Cells:
    """Round the cells that are not totals, and recompute totals whose differences can be explained by
    rounding.
    """
    summation = Summation.from_relations(cells.tabulation.relations)
    # tables are linked through totals, so no cell can be chosen freely and the rounded table must already be
    # additive
    if summation is None:
        units = np.rint(cells.units)
        open_lines = int(np.count_nonzero(cells.tabulation.relations @ units))
        if open_lines:
            raise InputRejected(
                f"{open_lines} total(s) differ from the sum of their parts. Tables that are linked through "
                "totals cannot be recomputed, whatever table.tolerance is. Correct the totals to the exact "
                "sums at the last published digit."
            )
        return replace(cells, units=units)
    relations, sizes = cells.tabulation.relations, np.abs(cells.units)
    floating = _FLOAT_TOLERANCE * (abs(relations) @ sizes)
    differences = np.abs(relations @ cells.units)
    tolerance, allowed = _rounding(cells, table), "rounding explains"
    if table.tolerance is not None:
        tolerance = np.full(len(differences), table.tolerance * 10.0**table.digits)
        allowed = f"table.tolerance = {table.tolerance:g} allows"
    wrong = differences > tolerance + floating
    if np.any(wrong):
        raise InputRejected(
            f"{int(np.sum(wrong))} total(s) differ from the sum of their parts by more than {allowed}. "
            "Correct the table, or raise table.tolerance if it was rounded."
        )
    changed = differences[differences > floating + 1e-6]
    summed = replace(cells, units=summation.recompute_margins(np.rint(cells.units)))
    return replace(
        summed, totals_summed_anew=len(changed), largest_difference=float(changed.max(initial=0.0))
    )


def _rounding(cells: Cells, table: Table) -> np.ndarray:
    """Return the largest rounding difference of each constraint: half a unit for each of its cells.

    The unit of a constraint is the largest power of ten, at most 1, that divides all its values.
    """
    lines = abs(cells.tabulation.relations)
    unit = np.ones(lines.shape[0])
    for power in range(1, table.digits + 1):
        step = 10.0**power
        multiple = np.abs(cells.units - step * np.rint(cells.units / step)) < _FLOAT_TOLERANCE * step
        unit = np.where(lines @ ~multiple == 0, step, unit)
    return np.diff(lines.indptr) * unit / 2
