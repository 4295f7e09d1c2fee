"""One value for one cell, for ever: what was published of a cell is published of it again.

A cell is identified by source, period, measure and those of its codes that are not totals; a part of a
value (`table.parts`) is a measure of its own, in whatever table it is published. A cell of the same units
with the same true value is the same cell under other codes: a section with a single branch is that branch.
Another source or period that is of the same records, as the true values of its cells tell, has the same
cells all the same. A cell's value is taken from the first table that published it, whatever release, seed,
version of the software or table it is published in now. So linked tables agree, and two tables tell no more
about a cell that both have than one. The table is refused where a standing value no longer protects its cell
(the source was revised, or the rule asks for more), or where no additive table holds the standing values.

The list of `PublishedCell` is kept by whoever keeps the ledger; this module reads one and writes the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
import pandas as pd
from microguard.pipelines.tables.cells import Cells
from microguard.pipelines.tables.files import decimals
from microguard.pipelines.tables.hierarchy import families
from microguard.schemas.specification.table import Table
from microguard.sdc.cta import CellTable
from microguard.sdc.errors import SdcError

COUNT = "(count)"
"""Measure of a frequency table."""
ALIKE = 0.5
"""Share of common cells with one true value from which two tables are of the same records: of other records a
few small counts coincide, after a month much of a register has changed."""
CellCodes = tuple[tuple[str, str], ...]
"""Column and code of each dimension that is not summed over, finest code only, ordered by column."""


class StandingValueFails(SdcError):
    """A cell was published before at a value that cannot be published again."""


@dataclass(frozen=True)
class PublishedCell:
    """A cell as it was published.

    Attributes
    ----------
    source, period : of the units that the cell counts or adds up
    measure : column that is added up, `COUNT` for numbers of contributors; weighted ones are marked
    codes : CellCodes
    value : as published, exact
    direction : 1 up, -1 down, 0 unchanged; private like all of the ledger
    release_id : the first release that published it
    original : true value then, private; None in lists of software that did not keep it
    members : digest of its units, private; None where they were not known, or not kept
    """

    source: str
    period: str
    measure: str
    codes: CellCodes
    value: Decimal
    direction: int
    release_id: str
    original: Decimal | None = None
    members: str | None = None


@dataclass(frozen=True, eq=False)
class PublishedValues:
    """Published values of the cells of one table.

    Attributes
    ----------
    published : (cells,) boolean array, whether a cell was published before
    units : (cells,) its value in units of the last digit, 0 elsewhere
    renamed : (cells,) boolean array or None, whether it was published under other codes alone
    """

    published: np.ndarray
    units: np.ndarray
    renamed: np.ndarray | None = None


def measures_of(table: Table) -> set[str]:
    """What is added up in the cells of a table."""
    columns = [table.value or COUNT, *(name for columns in table.parts.values() for name in columns)]
    return {_measure(name, table) for name in columns}


def _measure(column: str, table: Table) -> str:
    return column + (" (weighted)" if table.weighted else "")


def cell_measures(cells: Cells, table: Table) -> list[str]:
    """What is added up in each cell."""
    total = _measure(table.value or COUNT, table)
    if not table.parts:
        return [total] * len(cells)
    (dimension,) = table.parts
    return [total if code == table.total else _measure(code, table) for code in cells.codes[dimension]]


def cell_codes(cells: Cells, table: Table) -> list[CellCodes]:
    """The codes that identify each cell in any table that has it."""
    texts = {name: cells.codes[name].to_numpy(str) for name in cells.codes}
    labels: list[list[tuple[str, str]]] = [[] for _ in range(len(cells))]
    for columns in families(table):
        if columns[0] in table.parts:
            continue
        for row, codes in enumerate(labels):
            finest = [name for name in columns if texts[name][row] != table.total]
            if finest:
                codes.append((finest[-1], str(texts[finest[-1]][row])))
    return [tuple(sorted(codes)) for codes in labels]


def of_the_same_units(cells: Cells, table: Table) -> np.ndarray:
    """(cells,) number of the units and the value that a cell has under whatever codes, -1 where not known.

    Where empty combinations stand in the table too, a total and its one part that is not empty are two
    cells: of neither it is known here.
    """
    if cells.members is None or (table.counts and table.zeros == "all"):
        return np.full(len(cells), -1)
    told = pd.DataFrame(
        {"measure": cell_measures(cells, table), "members": cells.members, "units": cells.units}
    )
    return np.where(cells.members == "", -1, told.groupby(list(told), sort=False).ngroup())


def of_the_same_records(
    cells: Cells, table: Table, before: Iterable[PublishedCell], origin: Mapping[str, str]
) -> list[PublishedCell]:
    """Cells of this source and period, and of tables of the same records, whatever these call their source.

    Another source or period is of the same records where at least `ALIKE` of the cells that it shares with
    this table, and that are not 0, have the true value that they have here. Those that have another are
    other cells, and beside such a source those that this table does not have are.

    Parameters
    ----------
    before : cells of every source and period, in the order of their publication
    origin : ``source`` and ``period`` of this table
    """
    listed = list(before)
    places = _Places(cells, table)
    shared = Counter[tuple[str, str]]()
    equal = Counter[tuple[str, str]]()
    unchanged: list[bool | None] = []  # None where this table does not have the cell
    for cell in listed:
        rows = places.of(cell)
        same = None if not rows else any(_same_amount(cell.original, cells, table, row) for row in rows)
        unchanged.append(same)
        if rows and (cell.original or cells.units[rows].any()):
            shared[cell.source, cell.period] += 1
            equal[cell.source, cell.period] += bool(same)
    here = origin["source"], origin["period"]
    found = []
    for cell, same in zip(listed, unchanged, strict=True):
        name = cell.source, cell.period
        needed = shared[name] * (1.0 if same is None else ALIKE)
        if name == here or (same is not False and shared[name] and equal[name] >= needed):
            found.append(cell)
    return found


class _Places:
    """Where published cells stand in a table: under their own codes, or those of cells of the same units."""

    def __init__(self, cells: Cells, table: Table) -> None:
        self._cells, self._table = cells, table
        self.identities = list(zip(cell_measures(cells, table), cell_codes(cells, table), strict=True))
        self._by_codes = {identity: row for row, identity in enumerate(self.identities)}
        self._by_members: dict[tuple[str, str], list[int]] = {}
        if cells.members is not None:
            for row, members in enumerate(cells.members):
                if members:
                    self._by_members.setdefault((self.identities[row][0], str(members)), []).append(row)

    def of(self, cell: PublishedCell) -> list[int]:
        """Rows of a published cell: the one of its codes, else those of its units and its true value."""
        row = self._by_codes.get((cell.measure, cell.codes))
        if row is not None:
            return [row]
        rows = self._by_members.get((cell.measure, cell.members), []) if cell.members else []
        return [row for row in rows if _same_amount(cell.original, self._cells, self._table, row)]


def _same_amount(original: Decimal | None, cells: Cells, table: Table, row: int) -> bool:
    """Whether a true value is that of a cell, where each record may have been rounded to fewer digits."""
    if original is None:
        return False
    digits = -int(original.as_tuple().exponent)
    records = 1 if cells.contributors is None else max(int(cells.contributors[row]), 1)
    rounding = Decimal(0 if digits == table.digits else records).scaleb(-min(digits, table.digits))
    (amount,) = decimals(np.rint(cells.units[row : row + 1]), table.digits)
    return abs(original - amount) <= rounding


def standing_cells(cells: Cells, table: Table, before: Iterable[PublishedCell]) -> PublishedValues:
    """Find the cells of a table among those published before, under their own codes or else under others.

    Of several cells of the same units (a section with a single branch, and its only size class) that is
    taken whose codes differ least.

    Raises
    ------
    StandingValueFails
        Where a standing value has more digits than this table publishes.
    """
    places = _Places(cells, table)
    found: dict[int, tuple[int, PublishedCell]] = {}
    for cell in before:
        for row in places.of(cell):
            apart = len(set(cell.codes) ^ set(places.identities[row][1]))
            if row not in found or apart < found[row][0]:
                found[row] = apart, cell
    published, renamed = np.zeros((2, len(cells)), dtype=bool)
    units = np.zeros(len(cells))
    for row, (apart, cell) in found.items():
        scaled = cell.value.scaleb(table.digits)
        if scaled != int(scaled):
            raise StandingValueFails(
                f"cell {row} was published before with more digits than table.decimals = {table.digits}; "
                f"publish as many digits as then, table.decimals = {-int(cell.value.as_tuple().exponent)}",
                variable=row,
            )
        published[row], renamed[row], units[row] = True, apart > 0, float(int(scaled))
    return PublishedValues(published, units, renamed)


def new_cells(
    cells: Cells,
    table: Table,
    values: np.ndarray,
    standing: PublishedValues | None,
    origin: Mapping[str, str],
) -> list[PublishedCell]:
    """Cells that this release publishes for the first time under their codes, for the ledger.

    Parameters
    ----------
    values : (cells,) published values in units
    origin : ``source``, ``period`` and ``release_id``
    """
    listed = np.zeros(len(cells), dtype=bool) if standing is None else standing.published.copy()
    if standing is not None and standing.renamed is not None:
        listed &= ~standing.renamed
    members = [""] * len(cells) if cells.members is None else cells.members
    amounts = decimals(np.rint(values), table.digits)
    originals = decimals(np.rint(cells.units), table.digits)
    signs = np.sign(values - cells.units).astype(int)
    return [
        PublishedCell(origin["source"], origin["period"], measure, codes, amounts[row],
                      int(signs[row]), origin["release_id"], originals[row],
                      str(members[row]) or None)
        for row, (measure, codes) in enumerate(zip(cell_measures(cells, table), cell_codes(cells, table),
                                                   strict=True))
        if not listed[row]
    ]  # fmt: skip


def held_values(variables: np.ndarray, standing: PublishedValues) -> np.ndarray:
    """(variables,) value in units that each variable stands published with, NaN where it does not.

    Raises
    ------
    StandingValueFails
        Where cells that are one and the same stand with two values.
    """
    rows = np.flatnonzero(standing.published)
    units = standing.units[rows]
    held = np.full(int(variables.max()) + 1, np.nan)
    held[variables[rows]] = units
    differing = int(np.sum(held[variables[rows]] != units))
    if differing:
        raise StandingValueFails(
            f"{differing} cell(s) are the same as others here and stand published with another value; leave "
            "one of the tables out"
        )
    return held


def refuse_other_multiples(held: np.ndarray, base: int) -> None:
    """Refuse to round to a base beside values that are no multiples of it.

    Parameters
    ----------
    held : (variables,) of `held_values`

    Raises
    ------
    StandingValueFails
    """
    off_base = np.isfinite(held) & (held % base != 0)
    if off_base.any():
        raise StandingValueFails(
            f"{int(off_base.sum())} cell(s) stand published at values that are no multiples of table.base = "
            f"{base}; take the base of then, or the method of then",
            variable=int(np.argmax(off_base)),
        )


def keep_standing(table: CellTable, by_rule: CellTable, held: np.ndarray) -> CellTable:
    """The table with every standing cell held at its published value.

    Parameters
    ----------
    table : CellTable
        The variables, with secret levels or draws.
    by_rule : CellTable
        The variables, with the levels of the rule.
    held : (variables,) of `held_values`

    Raises
    ------
    StandingValueFails
        Where a value is nearer to the original than the rule allows.
    """
    keep = np.isfinite(held)
    change = np.where(keep, held, table.values) - table.values
    fails = keep & by_rule.sensitive & (by_rule.lower_protection > 0) & (by_rule.upper_protection > 0)
    fails &= (change < by_rule.upper_protection) & (change > -by_rule.lower_protection)
    if fails.any():
        cell = int(np.argmax(fails))
        raise StandingValueFails(
            f"{int(fails.sum())} sensitive cell(s), cell {cell} among them, stand published at a value "
            "nearer to what they are now than the rule allows: the source was revised, or the rule asks for "
            "more than then. Publish the table without these cells, or by the rule of then, or (of a revised "
            "source) of another period",
            variable=cell,
        )
    level = np.abs(change)
    return replace(
        table,
        sensitive=np.where(keep, change != 0, table.sensitive),
        lower_protection=np.where(keep, level, table.lower_protection),
        upper_protection=np.where(keep, level, table.upper_protection),
        lower_capacity=np.where(keep, np.maximum(-change, 0.0), table.lower_capacity),
        upper_capacity=np.where(keep, np.maximum(change, 0.0), table.upper_capacity),
    )
