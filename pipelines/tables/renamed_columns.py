"""Refusal of columns that an earlier table published under another name.

A cell is identified by its columns and codes, or by its contributors. If the contributors are unknown (counts
without a unit, equal amounts), a renamed column makes other cells of the same records, with second values.
True values show that two columns are the same: at least half of their totals by single codes are equal, and
more cells than coincidence explains. Their codes may differ, too. A column of which most totals changed,
because the source was revised, is not recognised.

Two other columns, such as two questions with the answers 1 and 2, can have equal totals by chance. They are
told apart if their cells have other units, or if their cells with codes of a third column are not equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from math import lgamma, log

import numpy as np
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.cells.identity import CellCodes, measures_of, written_alike
from microguard.pipelines.tables.published_before import ALIKE, Places, PublishedCell
from microguard.pipelines.tables.rescaled_duplicates import COINCIDENCE, proportional
from microguard.schemas.errors import GateRefused
from microguard.schemas.specification.table import Table

#: Row of a cell of the new table, and the published cell with which it is compared.
Pair = tuple[int, PublishedCell]
#: Cells of one column, in which all other columns are summed over, by code.
Totals = Mapping[str, PublishedCell]


@dataclass(frozen=True)
class _Earlier:
    """Cells of one measure, source and period, by their codes."""

    measure: str
    cells: dict[CellCodes, PublishedCell] = field(default_factory=dict)

    @cached_property
    def totals(self) -> dict[str, dict[str, PublishedCell]]:
        """Return the cells with a single code, by column and code."""
        found: dict[str, dict[str, PublishedCell]] = {}
        for codes, cell in self.cells.items():
            if len(codes) == 1:
                ((column, code),) = codes
                found.setdefault(column, {})[code] = cell
        return found


def refuse_renamed_columns(cells: Cells, table: Table, before: Iterable[PublishedCell]) -> None:
    """Refuse a table with a column that an earlier table published under another name, if its cells are not
    recognised by their contributors.

    Parameters
    ----------
    before : cells of every table that is or was published, of any source and measure

    Raises
    ------
    GateRefused
    """
    earlier: dict[tuple[str, str, str], _Earlier] = {}
    for cell in before:
        if cell.original:
            key = cell.source, cell.period, cell.measure
            known = earlier.setdefault(key, _Earlier(cell.measure)).cells
            known.setdefault(written_alike(cell.codes), cell)
    if not earlier:
        return
    rows = _Rows(cells, table)
    for each in earlier.values():
        found = list(rows.renamed(each))
        if found:
            recoded = not all(rows.coded_alike(pairs) for _, _, pairs in found)
            names = {ours: theirs for theirs, ours, _ in found}
            nested = dict.fromkeys(rows.by_size(each, theirs, ours) for theirs, ours, _ in found)
            release_id = found[0][2][0][1].release_id
            raise GateRefused(_reason(names, release_id, recoded, [pair for pair in nested if pair]))


def _reason(
    names: Mapping[str, str], release_id: str, recoded: bool, nested: Iterable[tuple[str, str]]
) -> str:
    """Return the reason of a refusal with the keys that must be changed.

    Parameters
    ----------
    names : column of the new table -> column of the published table
    nested : columns with different numbers of codes, the coarser one first
    """
    same = ", ".join(f"the codes of {ours} as those of {theirs}" for ours, theirs in names.items())
    renamed = [(ours, theirs) for ours, theirs in names.items() if ours != theirs]
    mends = [
        f'rename {ours} to {theirs} in the input, in [variables] and in [table] (tables = [["{theirs}", '
        "...]])"
        for ours, theirs in renamed
    ]
    mends += ["use the codes of that table"] if recoded else []
    mend = ", ".join(mends) or "use the earlier amounts under their name and in their unit"
    both = ", ".join(f'["{coarser}", "{finer}"]' for coarser, finer in nested)
    if both:
        mend = (
            f"if codes of one column are sums of codes of the other, publish both in one table "
            f"(table.hierarchies = [{both}]); otherwise {mend}"
        )
    return (
        f"This table has the same true values as the published table {release_id}: {same}. Expected the same "
        "names, because the same cells would otherwise be published with second values. "
        f"{mend[0].upper()}{mend[1:]}. Or set publish.successive to "
        '"accept" if a steward has decided that both tables may be published, for example because the '
        "columns are different and their totals are equal by chance."
    )


class _Rows:
    """Rows of the new table by measure and codes; cells with the value 0 are left out."""

    def __init__(self, cells: Cells, table: Table) -> None:
        self._cells, self._table = cells, table
        self._places = Places(cells, table)
        self._by_codes: dict[str, dict[CellCodes, int]] = {}
        self._totals: dict[str, dict[str, dict[str, int]]] = {}
        self._step = max(int(np.gcd.reduce(np.rint(cells.units).astype(np.int64), initial=0)), 1)
        for row, (measure, codes) in enumerate(self._places.identities):
            if not cells.units[row]:
                continue
            alike = written_alike(codes)
            self._by_codes.setdefault(measure, {})[alike] = row
            if len(alike) == 1:
                ((column, code),) = alike
                self._totals.setdefault(measure, {}).setdefault(column, {})[code] = row

    def renamed(self, earlier: _Earlier) -> Iterator[tuple[str, str, list[Pair]]]:
        """Return the columns of an earlier table that this table has under other names: both names, and the
        totals with equal true values.
        """
        theirs = earlier.totals
        if earlier.measure not in measures_of(self._table):
            yield from self._rescaled(theirs)
            return
        ours = self._totals.get(earlier.measure, {})
        tied = self._ties(earlier)
        kept = {name for name in theirs if name in ours and self._alike(_labelled(theirs[name], ours[name]))}
        names = {name: name for name in sorted(kept)}
        others = [(one, other) for one in theirs for other in ours if one not in kept and other not in kept]
        for one, other in others:
            if one not in names and self._alike(_labelled(theirs[one], ours[other])):
                names[one] = other
        for one, other in names.items():
            pairs = self._equal(_labelled(theirs[one], ours[other])) if one != other else []
            if tied and self._of_other_units(pairs):
                continue
            if self._untied(pairs) and self._certain(earlier, names, one):
                yield one, other, pairs
        for one, other in others:
            pairs = self._recoded(theirs[one], ours[other])
            if self._untied(pairs) and not (tied and self._of_other_units(pairs)):
                yield one, other, pairs

    def coded_alike(self, pairs: list[Pair]) -> bool:
        """Return whether the cells of each pair have the same codes, in columns of any name."""
        for row, cell in pairs:
            theirs, ours = written_alike(cell.codes), written_alike(self._places.identities[row][1])
            if [code for _, code in theirs] != [code for _, code in ours]:
                return False
        return True

    def by_size(self, earlier: _Earlier, theirs: str, ours: str) -> tuple[str, str] | None:
        """Return a column of an earlier table and one of this table, the one with fewer codes first; None if
        they have equally many codes.
        """
        there = len(earlier.totals[theirs])
        here = max(len(columns.get(ours, ())) for columns in self._totals.values())
        return None if there == here else (theirs, ours) if there < here else (ours, theirs)

    def _rescaled(self, theirs: Mapping[str, Totals]) -> Iterator[tuple[str, str, list[Pair]]]:
        """Return the renamed columns of a table of another measure, of which the values are a multiple."""
        for ours in self._totals.values():
            for one, other in ((one, other) for one in theirs for other in ours if one not in ours):
                pairs = _labelled(theirs[one], ours[other])
                amounts = [(row, cell.original) for row, cell in pairs if cell.original is not None]
                if amounts and proportional(self._cells, self._table, amounts):
                    yield one, other, pairs

    def _equal(self, pairs: list[Pair]) -> list[Pair]:
        """Return the pairs with equal true values; those of records rounded to other digits are near."""
        rows = np.array([row for row, _ in pairs], np.int64)
        there, coarser = self._amounts(cell for _, cell in pairs)
        found = np.abs(self._cells.units[rows] - there) <= self._records(rows) * coarser
        return [pair for pair, equal in zip(pairs, found, strict=True) if equal]

    def _amounts(self, cells: Iterable[PublishedCell]) -> tuple[np.ndarray, np.ndarray]:
        """Return true values of published cells in units of this table, and how much the rounding of a record
        changes them.
        """
        amounts = [cell.original or Decimal() for cell in cells]
        digits = np.array([-int(amount.as_tuple().exponent) for amount in amounts], np.int64)
        coarser = np.where(
            digits == self._table.digits, 0.0, 10.0 ** np.maximum(self._table.digits - digits, 0)
        )
        return np.array([float(amount.scaleb(self._table.digits)) for amount in amounts]), coarser

    def _records(self, rows: np.ndarray) -> np.ndarray:
        counted = self._cells.contributors
        return np.ones(len(rows)) if counted is None else np.maximum(counted[rows], 1)

    def _alike(self, pairs: list[Pair]) -> bool:
        equal = self._equal(pairs)
        return bool(equal) and len(equal) >= ALIKE * len(pairs)

    def _untied(self, pairs: list[Pair]) -> bool:
        """Return whether some cells are not recognised by contributors, and would get second values."""
        return any(row not in self._places.of(cell) for row, cell in pairs)

    def _ties(self, earlier: _Earlier) -> bool:
        """Return whether some cell has the units of an earlier cell, so that units have the same keys."""
        known = set() if self._cells.members is None else set(self._cells.members) - {""}
        return any(cell.members in known for cell in earlier.cells.values())

    def _of_other_units(self, pairs: list[Pair]) -> bool:
        """Return whether the units of all pairs are known, and those of no pair are the same."""
        members = self._cells.members
        return members is not None and all(
            cell.members and members[row] and cell.members != members[row] for row, cell in pairs
        )

    def _certain(self, earlier: _Earlier, names: Mapping[str, str], column: str) -> bool:
        """Return whether the true values of two columns with the same codes are not equal by chance.

        They are, if most cells with codes of further columns are not equal. Otherwise, either all codes and
        totals must be equal, or cells of the column (together with the same other columns) must be equal more
        often than by chance.
        """
        theirs = earlier.totals[column]
        ours = self._totals[earlier.measure][names[column]]
        crossed: dict[tuple[str, ...], list[Pair]] = {}
        for codes, cell in earlier.cells.items():
            columns = tuple(name for name, _ in codes)
            if column in columns and names.keys() >= set(columns):
                here = tuple(sorted((names[name], code) for name, code in codes))
                row = self._by_codes[earlier.measure].get(here)
                if row is not None:
                    crossed.setdefault(columns, []).append((row, cell))
        alike = {columns: self._alike(pairs) for columns, pairs in crossed.items()}
        if not all(alike.values()):
            return False
        if len(theirs) > 1 and theirs.keys() == ours.keys():
            pairs = _labelled(theirs, ours)
            if len(self._equal(pairs)) == len(pairs):
                return True
        return any(
            self._by_chance(self._equal(pairs), len(pairs)) <= log(COINCIDENCE) for pairs in crossed.values()
        )

    def _by_chance(self, equal: list[Pair], compared: int, others: int | None = None) -> float:
        """Return a bound of the logarithm of the probability that so many true values are equal by chance.

        Parameters
        ----------
        compared : number of true values, of which some are equal
        others : number of values with which each of them is compared, if the codes differ
        """
        sizes = np.maximum(np.abs(self._cells.units[[row for row, _ in equal]]) / self._step, 1.0)
        ways = _log_choices(compared, len(equal)) - float(np.log(sizes).sum())
        return ways if others is None else ways + _log_choices(others, len(equal)) + lgamma(len(equal) + 1)

    def _recoded(self, theirs: Totals, ours: Mapping[str, int]) -> list[Pair]:
        """Return the totals of two columns with equal true values under any codes; none if so few are equal
        that this may be by chance, or if all are equally large, as in a balanced sample.

        Totals with the same units are paired first.
        """
        free = set(ours.values())
        cells: list[PublishedCell] = []
        pairs: list[Pair] = []
        for cell in theirs.values():
            row = next((row for row in self._places.of(cell) if row in free), None)
            if row is None:
                cells.append(cell)
            else:
                pairs.append((row, cell))
                free.remove(row)
        rows = np.array(sorted(free, key=lambda row: (float(self._cells.units[row]), row)), np.int64)
        there, coarser = self._amounts(cells)
        order = np.argsort(there, kind="stable")
        here, records = self._cells.units[rows].tolist(), self._records(rows).tolist()
        place = 0
        for cell, amount, rounding in zip(order, there[order].tolist(), coarser[order].tolist(), strict=True):
            while place < len(here) and here[place] < amount - records[place] * rounding:
                place += 1
            if place < len(here) and here[place] <= amount + records[place] * rounding:
                pairs.append((int(rows[place]), cells[cell]))
                place += 1
        fewer = min(len(theirs), len(ours))
        telling = len(np.unique(self._cells.units[[row for row, _ in pairs]])) > 1
        enough = telling and len(pairs) >= ALIKE * fewer
        return pairs if enough and self._by_chance(pairs, fewer, len(ours)) <= log(COINCIDENCE) else []


def _log_choices(n: int, k: int) -> float:
    """Return the logarithm of the binomial coefficient."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _labelled(theirs: Totals, ours: Mapping[str, int]) -> list[Pair]:
    """Return the totals of two columns that have the same code."""
    return [(ours[code], cell) for code, cell in theirs.items() if code in ours]
