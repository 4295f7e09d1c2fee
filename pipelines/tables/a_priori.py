"""Read a priori information on single cells, one row for each cell; it overrides the sensitivity rules.

A CSV file with columns of the table that identify the cell (columns left out are summed over) and a column
``status``. Optional columns are ``lower_protection``, ``upper_protection``, ``lower_capacity``,
``upper_capacity`` and ``cost``, in the unit of the value:

* ``safe``: not sensitive, whatever the rules say;
* ``sensitive``: sensitive. The protection levels are those of the row, else those of the rules, else the
  safety range (for a cell of 0: the zero safety range). They are never below the levels of the rules;
* ``fixed``: published unchanged (and not sensitive);
* ``suppressed``: with cell suppression, suppressed although no rule makes the cell sensitive, so that nobody
  can compute its value to the last published digit;
* empty: the rules apply; the row sets only a capacity or cost of the cell.

The status may also be a column of a finished table (`table.status`); if both name a cell, the file overrides
the column. A file of tau-ARGUS (`.hst`) is read too, see `pipelines.tables.hst`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.hst import SUFFIX, read_hst
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table import Table
from microguard.sdc.cta.rules.sensitivity import Sensitivity

STATUS = "status"
FIXED, SUPPRESSED = "fixed", "suppressed"
STATUSES = ("safe", "sensitive", FIXED, SUPPRESSED, "")
NUMBERS = ("lower_protection", "upper_protection", "lower_capacity", "upper_capacity", "cost")


@dataclass(frozen=True, eq=False)
class APriori:
    """Status, levels, capacities and costs from the file, in the order of the cells of the table.

    Attributes
    ----------
    status : (cells,) of `STATUSES`
    numbers : name -> (cells,) in units (costs unscaled), NaN where the file has no entry
    """

    status: np.ndarray
    numbers: dict[str, np.ndarray]

    def sensitivity(self, by_rules: Sensitivity, cells: Cells, table: Table) -> Sensitivity:
        """Return the sensitivity by the rules, overridden by each status and level of the file."""
        safe = np.isin(self.status, ("safe", "fixed"))
        forced = self.status == "sensitive"
        withheld = self.status == SUPPRESSED
        of_zero = (table.zero_safety_range or 0.0) * 10.0**table.digits
        range_ = np.where(cells.units == 0, of_zero, np.abs(cells.units) * table.safety_range / 100)
        lower, upper = (
            np.where(
                safe, 0.0, np.where(forced, np.maximum(levels, self._level(name, range_, levels)), levels)
            )
            for name, levels in (("lower_protection", by_rules.lower), ("upper_protection", by_rules.upper))
        )
        lower, upper = (
            np.where(withheld, np.maximum(lower, 1), lower),
            np.where(withheld, np.maximum(upper, 1), upper),
        )
        return Sensitivity((by_rules.sensitive | forced | withheld) & ~safe, lower, upper)

    def capacity(self, side: str, room: np.ndarray) -> np.ndarray:
        """Return the (cells,) capacities; those of the file take precedence; a fixed cell has capacity 0."""
        amounts = self.numbers[f"{side}_capacity"]
        return np.where(self.status == "fixed", 0.0, np.where(np.isnan(amounts), room, amounts))

    def costs(self, costs: np.ndarray) -> np.ndarray:
        """Return the (cells,) costs; those of the file take precedence."""
        amounts = self.numbers["cost"]
        return np.where(np.isnan(amounts), costs, amounts)

    def _level(self, name: str, range_: np.ndarray, level: np.ndarray) -> np.ndarray:
        amounts = self.numbers[name]
        return np.where(np.isnan(amounts), np.where(level > 0, level, range_), amounts)


def a_priori_information(cells: Cells, specification: Specification) -> APriori | None:
    """Return the information of the file and of the status column; None if both are absent.

    Raises
    ------
    InputRejected
    """
    table = specification.table
    assert table is not None
    from_file = read_a_priori(specification.resolve(table.a_priori), cells, table) if table.a_priori else None
    status = cells.input_columns.get("status")
    if status is None:
        return from_file
    if from_file is None:
        return APriori(status, {name: np.full(len(cells), np.nan) for name in NUMBERS})
    return replace(from_file, status=np.where(from_file.status == "", status, from_file.status))


def read_a_priori(path: str, cells: Cells, table: Table) -> APriori:
    """Read the file and locate its cells in the table.

    Raises
    ------
    InputRejected
        If the file cannot be read, names a cell twice or a cell that the table does not have, or has an
        unknown status, a negative number, or text instead of a number. The message names rows by their
        number.
    """
    try:
        if Path(path).suffix.lower() == SUFFIX:
            frame = read_hst(Path(path), table.columns)
        else:
            frame = pd.read_csv(Path(path), dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise InputRejected(
            "The file of table.a_priori: expected a CSV file in UTF-8 with a header, found one that cannot "
            "be read as such. Correct the path or the file."
        ) from error
    unknown = set(frame.columns) - {STATUS, *NUMBERS, *table.columns}
    if STATUS not in frame or unknown:
        raise InputRejected(
            f"The file of table.a_priori needs a column {STATUS} and columns of the table; "
            f"{len(unknown)} column(s) are neither codes nor {', '.join(NUMBERS)}. Rename or remove them."
        )
    rows = _rows_of(frame, cells, table)
    statuses = [each for each in STATUSES if each != SUPPRESSED or table.suppressed]
    wrong = ~frame[STATUS].isin(statuses).to_numpy()
    if wrong.any():
        raise InputRejected(
            f"Row {int(np.argmax(wrong)) + 1} of table.a_priori has an unknown status ({int(wrong.sum())} "
            f"such rows); expected {', '.join(statuses[:-1])} or nothing. "
            "Correct it."
        )
    status = np.full(len(cells), "", dtype=object)
    status[rows] = frame[STATUS].to_numpy()
    numbers = {}
    for name in NUMBERS:
        numbers[name] = np.full(len(cells), np.nan)
        if name in frame:
            scale = 1.0 if name == "cost" else 10.0**table.digits
            numbers[name][rows] = _amounts(frame[name], name) * scale
    return APriori(status, numbers)


def _rows_of(frame: pd.DataFrame, cells: Cells, table: Table) -> np.ndarray:
    """Return the position of the cell that each row names."""
    addresses = frame.reindex(columns=list(table.columns), fill_value=table.total).replace("", table.total)
    for name, mark in table.totals.items():
        addresses[name] = addresses[name].replace(mark, table.total)
    places = cells.codes.assign(place=np.arange(len(cells)))
    position = addresses.merge(places, on=list(table.columns), how="left")["place"].to_numpy(float)
    if np.isnan(position).any():
        raise InputRejected(
            f"Row {int(np.argmax(np.isnan(position))) + 1} of table.a_priori names a cell that is not in "
            f"the table ({int(np.isnan(position).sum())} such rows). Correct its codes, or remove it."
        )
    rows = position.astype(np.int64)
    if len(np.unique(rows)) < len(rows):
        raise InputRejected("The file of table.a_priori names a cell twice. Describe each cell in one row.")
    return rows


def _amounts(texts: pd.Series, name: str) -> np.ndarray:
    amounts = pd.to_numeric(texts.replace("", np.nan), errors="coerce").to_numpy(float)
    wrong = (np.isnan(amounts) & (texts != "").to_numpy()) | (amounts < 0) | np.isinf(amounts)
    if wrong.any():
        raise InputRejected(
            f"Row {int(np.argmax(wrong)) + 1} of table.a_priori has no number of at least 0 in {name} "
            f"({int(wrong.sum())} such rows). Correct it, or leave it empty."
        )
    return amounts
