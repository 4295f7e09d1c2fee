"""Contributors of each cell, which determine what a contributor knows about suppressed cells.

For microdata all contributions are known. For finished cells only the number of contributors is known. Cells
with one or two contributors then get anonymous contributors. Two cells share a contributor if a constraint
proves that it is the same (a total with one contributor has only one part with a contributor, which must be
the same one).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from microguard.pipelines.tables.cells.cells import Cells, number_of
from microguard.schemas.specification.table import Table
from microguard.sdc.suppression import Contributions
from scipy import sparse


def contributions_of_records(
    finest: pd.DataFrame,
    cells: Cells,
    table: Table,
    names: Mapping[str, str],
    sets: Sequence[tuple[str, ...]],
) -> Contributions:
    """Return the contributions to all cells whose contributors are completely known.

    Parameters
    ----------
    finest : frame of ``unit``, ``amount`` (in units of the last published digit) and labels
        Contribution of each contributor to the finest codes. Without units each row is a contributor.
    names : column of the table -> column of `finest`
    sets : columns in which a kind of cell has a code
    """
    labels = list(names.values())
    known = bool(finest["unit"].notna().any())
    ordered = finest.sort_values([*labels, "amount", *(["unit"] if known else [])], ignore_index=True)
    unit = _units(ordered["unit"].astype(str) if known else _contents(ordered, labels))
    numbers, unit = np.unique(unit, return_inverse=True)
    amount = ordered["amount"].to_numpy(float)
    codes = _Codes(cells, ordered[labels].set_axis(list(names), axis=1), table)
    keys, amounts = [], []  # of a key, the cell is the quotient by the number of units, and the unit the rest
    for columns in sets:
        cell = codes.cells_by(columns)
        there = cell >= 0
        sums = pd.Series(amount[there]).groupby(cell[there] * len(numbers) + unit[there]).sum()
        keys.append(sums.index.to_numpy(np.int64))
        amounts.append(sums.to_numpy())
    key, first = np.unique(np.concatenate(keys), return_index=True)
    cell, unit = np.divmod(key, max(len(numbers), 1))
    found = {"cell": cell, "unit": numbers[unit], "amount": np.concatenate(amounts)[first]}
    return _completed(pd.DataFrame(found), cells)


class _Codes:
    """Places of the codes of records, from which the cell of each record follows at any level.

    Parameters
    ----------
    records : frame of codes; NULL only in expanded columns, in the row of a record for the total
    """

    def __init__(self, cells: Cells, records: pd.DataFrame, table: Table) -> None:
        self._length = len(records)
        self._records, self._total, self._sizes = {}, {}, {}
        key = np.zeros(len(cells), np.int64)
        for name in records:
            place, known = pd.factorize(cells.codes[name])
            codes = pd.Index(known)
            self._sizes[name] = len(codes)
            self._records[name] = codes.get_indexer(pd.Index(records[name].fillna(table.total)))
            self._total[name] = int(codes.get_indexer(pd.Index([table.total]))[0])
            key = key * len(codes) + place
        self._cells = pd.Index(key)
        # each record has one row for the total of an expanded column, and one for each of its codes
        self._coded = {name: records[name].notna().to_numpy() for name in table.expanded}

    def cells_by(self, columns: tuple[str, ...]) -> np.ndarray:
        """Return the cell of each record that has codes in these columns, or -1 if there is none."""
        key = np.zeros(self._length, np.int64)
        there = np.ones(self._length, bool)
        for name, size in self._sizes.items():
            place = self._records[name] if name in columns or name in self._coded else self._total[name]
            key, there = key * size + place, there & (place >= 0)
            if name in self._coded:
                there = there & (self._coded[name] == (name in columns))
        return np.where(there, self._cells.get_indexer(pd.Index(key)), -1)


def _completed(contributed: pd.DataFrame, cells: Cells) -> Contributions:
    """Add anonymous contributors to cells of which some contributors are known and others are missing.

    At most three are added, enough to show that the known contributors are not all. Their amounts are at most
    1 unit, except that a single missing contributor has the rest of the cell. In tables without negative
    values, contributors of 0 are removed, because they add no uncertainty about a cell.
    """
    assert cells.contributors is not None
    number = np.bincount(contributed["cell"], minlength=len(cells))
    sums = np.bincount(contributed["cell"], contributed["amount"], minlength=len(cells))
    missing = np.where(number > 0, cells.contributors - number, 0).astype(np.int64)
    others = np.repeat(np.arange(len(cells)), np.clip(missing, 0, 3))
    rest = np.maximum(cells.units - sums, 0.0)
    amounts = np.where(missing == 1, rest, np.minimum(rest / np.maximum(missing, 1), 1.0))[others]
    first = np.searchsorted(others, others)
    names = [
        number_of(f"other {rank} of cell {cell} of {len(cells)}".encode())
        for cell, rank in zip(others.tolist(), (np.arange(len(others)) - first).tolist(), strict=True)
    ]
    added = pd.DataFrame({"cell": others, "unit": np.array(names, np.int64), "amount": amounts})
    chosen = pd.concat([contributed, added], ignore_index=True)
    chosen = chosen.iloc[np.lexsort((chosen["unit"], chosen["cell"]))]
    if not np.any(cells.units < 0) and not np.any(contributed["amount"] < 0):
        chosen = chosen[chosen["amount"] > 0]
    return Contributions(*(chosen[name].to_numpy() for name in ("cell", "unit", "amount")))


def _contents(records: pd.DataFrame, labels: list[str]) -> pd.Series:
    """Return a text for each record: its codes, its amount, and its number among equal records."""
    equal = records.groupby([*labels, "amount"], dropna=False).cumcount()
    columns = [records[name].astype(str) for name in [*labels, "amount"]]
    return pd.Series([json.dumps(row) for row in zip(*columns, equal.tolist(), strict=True)])


def _units(identities: pd.Series) -> np.ndarray:
    """Return a number for each text; equal texts have equal numbers in every table."""
    texts, place = np.unique(identities.to_numpy(str), return_inverse=True)
    return np.array([number_of(each.encode()) for each in texts], np.int64)[place]


def contributions_of_numbers(cells: Cells) -> Contributions | None:
    """Return contributions to cells if only the numbers of contributors are known."""
    if cells.contributors is None:
        return None
    number, total_of = cells.contributors.astype(np.int64), _parts(cells.tabulation.relations)
    known: dict[int, dict[int, float]] = {}  # cell -> contributor -> amount
    same: list[int] = []  # maps a contributor to an identical one, or to itself

    def first(unit: int) -> int:
        while same[unit] != unit:
            unit = same[unit]
        return unit

    for cell in _finest_first(total_of, np.flatnonzero(number > 0)):
        found: dict[int, float] = {}
        for parts in total_of.get(cell, ()):
            below: dict[int, float] = {}
            for part in parts.tolist():
                for unit, amount in known.get(part, {}).items():
                    below[first(unit)] = below.get(first(unit), 0.0) + amount
            if number[cell] == 1 and found and below:
                same[first(next(iter(below)))] = first(next(iter(found)))
            else:
                found |= below
        if not found and number[cell] <= 2:
            fresh = list(range(len(same), len(same) + int(number[cell])))
            same += fresh
            found = dict(zip(fresh, _split(cells, cell), strict=True))
        if found:
            known[cell] = found
    rows = [(cell, first(unit), amount) for cell, units in known.items() for unit, amount in units.items()]
    made = [number_of(f"contributor {unit} of {len(cells)} cells".encode()) for unit in range(len(same))]
    frame = pd.DataFrame(rows, columns=["cell", "unit", "amount"]).drop_duplicates(["cell", "unit"])
    frame["unit"] = np.array(made, np.int64)[frame["unit"].to_numpy(np.int64)]
    return _completed(frame, cells)


def _split(cells: Cells, cell: int) -> list[float]:
    """Return the amounts of one or two contributors: derived from the largest one if known, otherwise two
    halves.
    """
    value = float(cells.units[cell])
    assert cells.contributors is not None
    if cells.contributors[cell] == 1:
        return [value]
    largest = min(float(cells.largest[cell, 0]), abs(value)) if cells.largest.shape[1] else value / 2
    return [largest, value - largest]


def _parts(relations: sparse.csr_matrix) -> dict[int, list[np.ndarray]]:
    """Return the parts of the total of each constraint."""
    lines: dict[int, list[np.ndarray]] = {}
    for start, stop in zip(relations.indptr[:-1], relations.indptr[1:], strict=True):
        columns, signs = relations.indices[start:stop], relations.data[start:stop]
        for total in columns[signs < 0]:
            lines.setdefault(int(total), []).append(columns[signs > 0])
    return lines


def _finest_first(total_of: Mapping[int, list[np.ndarray]], cells: np.ndarray) -> list[int]:
    """Order the cells so that parts precede their totals."""
    wanted, ordered, seen = set(cells.tolist()), [], set[int]()
    for start in cells.tolist():
        waiting = [(start, False)]
        while waiting:
            cell, done = waiting.pop()
            if done:
                ordered.append(cell)
            elif cell not in seen:
                seen.add(cell)
                waiting.append((cell, True))
                below = [int(part) for parts in total_of.get(cell, ()) for part in parts]
                waiting += [(part, False) for part in sorted(set(below)) if part in wanted]
    return ordered
