"""What is known of single cells before any rule: a file of the agency, one row a cell.

A CSV file with columns of the table that say which cell (those left out are summed over), a column ``status``
and, where there is more to say, ``lower_protection``, ``upper_protection``, ``lower_capacity``,
``upper_capacity`` and ``cost``, in values:

* ``safe``: not sensitive, whatever the rules find;
* ``sensitive``: sensitive, at the levels given or else at the safety range, or at the rule's where larger;
* ``fixed``: published as it is (and not sensitive);
* an empty status leaves the rules alone, for a cell with a capacity or cost of its own.

The status may also be a column of a finished table (`table.status`); what the file says stands over it. A
file of tau-ARGUS (`.hst`) says the same in its own way, see `pipelines.tables.hst`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from pipelines.tables.cells import Cells
from pipelines.tables.hst import SUFFIX, read_hst
from schemas.errors import InputRejected
from schemas.specification.model import Specification
from schemas.specification.table import Table
from sdc.cta.rules.sensitivity import Sensitivity

STATUS = "status"
STATUSES = ("safe", "sensitive", "fixed", "")
NUMBERS = ("lower_protection", "upper_protection", "lower_capacity", "upper_capacity", "cost")


@dataclass(frozen=True, eq=False)
class APriori:
    """Status and numbers of the cells named, in the order of the cells of the table.

    Attributes
    ----------
    status : (cells,) of `STATUSES`
    numbers : name -> (cells,) in units (costs as they are), NaN where nothing is said
    """

    status: np.ndarray
    numbers: dict[str, np.ndarray]

    def sensitivity(self, found: Sensitivity, cells: Cells, table: Table) -> Sensitivity:
        """The rules' answer with the file's put over it."""
        safe = np.isin(self.status, ("safe", "fixed"))
        forced = self.status == "sensitive"
        range_ = np.abs(cells.units) * table.safety_range / 100
        lower, upper = (
            np.where(
                safe, 0.0, np.where(forced, np.maximum(levels, self._level(name, range_, levels)), levels)
            )
            for name, levels in (("lower_protection", found.lower), ("upper_protection", found.upper))
        )
        return Sensitivity((found.sensitive | forced) & ~safe, lower, upper)

    def capacity(self, side: str, room: np.ndarray) -> np.ndarray:
        """(cells,) capacities with the file's own; none for a fixed cell."""
        given = self.numbers[f"{side}_capacity"]
        return np.where(self.status == "fixed", 0.0, np.where(np.isnan(given), room, given))

    def costs(self, costs: np.ndarray) -> np.ndarray:
        """(cells,) costs with the file's own."""
        given = self.numbers["cost"]
        return np.where(np.isnan(given), costs, given)

    def _level(self, name: str, range_: np.ndarray, found: np.ndarray) -> np.ndarray:
        given = self.numbers[name]
        return np.where(np.isnan(given), np.where(found > 0, found, range_), given)


def known_before(cells: Cells, specification: Specification) -> APriori | None:
    """What file and column say of the cells; None where there is neither.

    Raises
    ------
    InputRejected
    """
    table = specification.table
    assert table is not None
    said = read_a_priori(specification.resolve(table.a_priori), cells, table) if table.a_priori else None
    status = cells.given.get("status")
    if status is None:
        return said
    if said is None:
        return APriori(status, {name: np.full(len(cells), np.nan) for name in NUMBERS})
    return replace(said, status=np.where(said.status == "", status, said.status))


def read_a_priori(path: str, cells: Cells, table: Table) -> APriori:
    """Read the file and find its cells.

    Raises
    ------
    InputRejected
        Where the file cannot be read, names a cell twice or one the table does not have, or says what is no
        status or no number from 0 on; rows are named by their number.
    """
    try:
        if Path(path).suffix.lower() == SUFFIX:
            frame = read_hst(Path(path), table.columns)
        else:
            frame = pd.read_csv(Path(path), dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise InputRejected("The file of table.a_priori cannot be read as CSV. Correct its path.") from error
    unknown = set(frame.columns) - {STATUS, *NUMBERS, *table.columns}
    if STATUS not in frame or unknown:
        raise InputRejected(
            f"The file of table.a_priori needs a column {STATUS} and columns of the table; "
            f"{len(unknown)} column(s) are neither codes nor {', '.join(NUMBERS)}."
        )
    rows = _rows_of(frame, cells, table)
    wrong = ~frame[STATUS].isin(STATUSES).to_numpy()
    if wrong.any():
        raise InputRejected(
            f"Row {int(np.argmax(wrong)) + 1} of table.a_priori has an unknown status ({int(wrong.sum())} "
            f"such rows); expected {', '.join(STATUSES[:-1])} or nothing."
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
    """Position of each row's cell."""
    named = frame.reindex(columns=list(table.columns), fill_value=table.total).replace("", table.total)
    places = cells.codes.assign(place=np.arange(len(cells)))
    found = named.merge(places, on=list(table.columns), how="left")["place"].to_numpy(float)
    if np.isnan(found).any():
        raise InputRejected(
            f"Row {int(np.argmax(np.isnan(found))) + 1} of table.a_priori names a cell that the table does "
            f"not have ({int(np.isnan(found).sum())} such rows)."
        )
    rows = found.astype(np.int64)
    if len(np.unique(rows)) < len(rows):
        raise InputRejected("The file of table.a_priori names a cell twice. Say everything of it in one row.")
    return rows


def _amounts(texts: pd.Series, name: str) -> np.ndarray:
    amounts = pd.to_numeric(texts.replace("", np.nan), errors="coerce").to_numpy(float)
    wrong = (np.isnan(amounts) & (texts != "").to_numpy()) | (amounts < 0) | np.isinf(amounts)
    if wrong.any():
        raise InputRejected(
            f"Row {int(np.argmax(wrong)) + 1} of table.a_priori has no number from 0 on in {name} "
            f"({int(wrong.sum())} such rows)."
        )
    return amounts
