"""Published values of cells, which every later table with the same cell keeps.

Two cells are the same if they have the same measure, the same codes (totals left out) and the same source and
period. A part of a value (`table.parts`) is a measure of its own. Under any source, period and codes, two
cells are also the same if their contributors and true values are equal. This is decided cell by cell: a table
of some of the units shares the cells whose contributors are all among these units, and a section with a
single branch is the same cell as the branch. If contributors are unknown, a value with many digits identifies
the cell. A value with fewer digits identifies it only if half of the table's cells have their earlier values.

The value is that of the first table that published the cell, for any later release, seed, software version or
table. Linked tables therefore agree, and two tables disclose no more about a common cell than one. A table is
refused if an earlier value no longer protects its cell (the source was revised, or the rule is stricter), or
if no additive table has the earlier values.

The module that keeps the ledger also stores the lists of `PublishedCell`; this module reads a list and
computes the next one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property

import numpy as np
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.cells.identity import (
    CellCodes,
    cell_codes,
    cell_measures,
    written_alike,
)
from microguard.pipelines.tables.files import decimals
from microguard.schemas.specification.table import Table
from microguard.sdc.cta import CellTable
from microguard.sdc.errors import SdcError

ALIKE = 0.5
"""Share of common cells with equal true values from which small values count as those of the same records.
Other records have a few equal values by chance; within a month, much of a register changes."""
DISTINCTIVE = 10_000
"""Minimum value, in units of the last digit, for which equality is not a coincidence."""


CHANGED, TRUE, SUPPRESSED = "changed", "true", "suppressed"


class StandingValueFails(SdcError):
    """Raised if a cell was published before with a value that cannot be published again."""


@dataclass(frozen=True)
class PublishedCell:
    """A cell as it was published.

    Attributes
    ----------
    source, period : source and period of the units that the cell counts or sums
    measure : column that is summed, `COUNT` for numbers of contributors; weighted measures are marked
    codes : CellCodes
    value : as published, exact; None if it was suppressed
    direction : 1 up, -1 down, 0 unchanged; private like all of the ledger
    release_id : the first release that published it
    original : true value at that time, private; None in lists of software that did not store it
    members : digest of its units, private; None if the units were unknown, or the digest was not stored
    status : "changed" by adjustment, rounding or noise; "true" or "suppressed" in a suppressed table
    error, deviation : for amounts with noise by cell keys: the noise that a reader does not know, and its
        standard deviation; private
    level : protection level if the amount is sensitive; private
    entropy : entropy of the draw of that noise, in nats; private
    """

    source: str
    period: str
    measure: str
    codes: CellCodes
    value: Decimal | None
    direction: int
    release_id: str
    original: Decimal | None = None
    members: str | None = None
    status: str = CHANGED
    error: float | None = None
    deviation: float | None = None
    level: float | None = None
    entropy: float | None = None


@dataclass(frozen=True, eq=False)
class PublishedValues:
    """Published values of the cells of one table.

    Attributes
    ----------
    published : (cells,) boolean array, whether a cell was published before
    units : (cells,) its value in units of the last digit, 0 elsewhere
    renamed : (cells,) boolean array or None, whether it was published only under other codes
    releases : ids of the releases that published these cells first
    suppressed : (cells,) boolean array or None, whether it was published as a suppressed cell, or estimates
        one (`suppression.revised_cells`)
    every : ids of all releases that published cells of the same records, oldest first
    elsewhere : ids of those that have another source or period
    estimates : (cells,) boolean array or None, whether it estimates a suppressed cell of another source or
        period, and was not published before
    """

    published: np.ndarray
    units: np.ndarray
    renamed: np.ndarray | None = None
    releases: tuple[str, ...] = ()
    suppressed: np.ndarray | None = None
    every: tuple[str, ...] = ()
    elsewhere: frozenset[str] = frozenset()
    estimates: np.ndarray | None = None


def of_the_same_records(
    cells: Cells, table: Table, before: Iterable[PublishedCell], origin: Mapping[str, str]
) -> list[PublishedCell]:
    """Return the published cells of this source and period, and cells of the same records under other names.

    A cell of another source or period is the same if it has the same true value, and one of three conditions
    holds: its contributors are the same, its value is `DISTINCTIVE`, or its table shares at least `ALIKE` of
    the values of common cells. Cells that this table does not have are returned if all common cells have
    their earlier values.

    Parameters
    ----------
    before : cells of every source and period, in the order of their publication
    origin : ``source`` and ``period`` of this table
    """
    listed = list(before)
    places = Places(cells, table)
    shared = Counter[tuple[str, str]]()
    equal = Counter[tuple[str, str]]()
    rows = [places.of(cell) for cell in listed]
    same = [places.equal(cell, found) for cell, found in zip(listed, rows, strict=True)]
    for cell, found, equal_rows in zip(listed, rows, same, strict=True):
        if found and (cell.original or cells.units[found].any()):
            shared[cell.source, cell.period] += 1
            equal[cell.source, cell.period] += bool(equal_rows)
    here = origin["source"], origin["period"]
    kept = []
    for cell, found, equal_rows in zip(listed, rows, same, strict=True):
        name = cell.source, cell.period
        needed = shared[name] * (ALIKE if found else 1.0)
        alike = bool(shared[name]) and equal[name] >= needed
        if found:
            alike = bool(equal_rows) and (alike or places.certain(cell, equal_rows))
        if name == here or alike:
            kept.append(cell)
    return kept


class Places:
    """Rows of a table that equal published cells, either by their codes or as cells of the same units."""

    def __init__(self, cells: Cells, table: Table) -> None:
        self._cells, self._table = cells, table
        self.identities = list(zip(cell_measures(cells, table), cell_codes(cells, table), strict=True))
        self._by_codes = {identity: row for row, identity in enumerate(self.identities)}
        self._by_members: dict[tuple[str, str], list[int]] = {}
        if cells.members is not None:
            for row, members in enumerate(cells.members):
                if members:
                    self._by_members.setdefault((self.identities[row][0], str(members)), []).append(row)

    @cached_property
    def _by_number(self) -> dict[tuple[str, CellCodes], int]:
        return {(measure, written_alike(codes)): row for row, (measure, codes) in enumerate(self.identities)}

    def of(self, cell: PublishedCell) -> list[int]:
        """Return the rows of a published cell: those with its codes, otherwise those with its units and
        value.
        """
        row = self._by_codes.get((cell.measure, cell.codes))
        if row is None:
            row = self._by_number.get((cell.measure, written_alike(cell.codes)))
        if row is not None:
            return [row]
        rows = self._by_members.get((cell.measure, cell.members), []) if cell.members else []
        return self.equal(cell, rows)

    def equal(self, cell: PublishedCell, rows: Iterable[int]) -> list[int]:
        """Return the rows whose true value equals that of a published cell."""
        return [row for row in rows if _same_amount(cell.original, self._cells, self._table, row)]

    def certain(self, cell: PublishedCell, rows: Iterable[int]) -> bool:
        """Return whether the value or the contributors exclude that these rows are equal by chance."""
        assert cell.original is not None
        if abs(cell.original).scaleb(-int(cell.original.as_tuple().exponent)) >= DISTINCTIVE:
            return True
        members = self._cells.members
        return members is not None and any(members[row] and members[row] == cell.members for row in rows)


def _same_amount(original: Decimal | None, cells: Cells, table: Table, row: int) -> bool:
    """Return whether a true value equals that of a cell whose records may have been rounded to fewer
    digits.
    """
    if original is None:
        return False
    digits = -int(original.as_tuple().exponent)
    records = 1 if cells.contributors is None else max(int(cells.contributors[row]), 1)
    rounding = Decimal(0 if digits == table.digits else records).scaleb(-min(digits, table.digits))
    (amount,) = decimals(np.rint(cells.units[row : row + 1]), table.digits)
    return abs(original - amount) <= rounding


def standing_cells(cells: Cells, table: Table, before: Iterable[PublishedCell]) -> PublishedValues:
    """Find the cells of a table among the published cells, by their codes or, failing that, by their units.

    If several cells have the same units (a section with a single branch, and its only size class), the cell
    whose codes differ least is used.

    Raises
    ------
    StandingValueFails
        If an earlier value has more digits than this table publishes.
    """
    places = Places(cells, table)
    found: dict[int, tuple[int, PublishedCell]] = {}
    every: dict[str, None] = {}
    for cell in before:
        every[cell.release_id] = None
        for row in places.of(cell):
            apart = len(set(cell.codes) ^ set(places.identities[row][1]))
            if row not in found or apart < found[row][0]:
                found[row] = apart, cell
    published, renamed, suppressed = np.zeros((3, len(cells)), dtype=bool)
    units = np.zeros(len(cells))
    for row, (apart, cell) in found.items():
        published[row], renamed[row] = True, apart > 0
        if cell.value is None:
            suppressed[row] = True
            continue
        scaled = cell.value.scaleb(table.digits)
        if scaled != int(scaled):
            raise StandingValueFails(
                f"cell {row} was published by {cell.release_id} with more digits than table.decimals = "
                f"{table.digits}; publish the same number of digits, table.decimals = "
                f"{-int(cell.value.as_tuple().exponent)}",
                variable=row,
            )
        units[row] = float(int(scaled))
    releases = tuple(sorted({each.release_id for _, each in found.values()}))
    return PublishedValues(published, units, renamed, releases, suppressed, tuple(every))


def in_common(cells: Cells, table: Table, before: Iterable[PublishedCell]) -> list[PublishedCell]:
    """Return the published cells that a table contains, under the same codes or others."""
    places = Places(cells, table)
    return [cell for cell in before if places.of(cell)]


def new_cells(
    cells: Cells,
    table: Table,
    values: np.ndarray,
    standing: PublishedValues | None,
    origin: Mapping[str, str],
    status: str = CHANGED,
    private: Mapping[str, np.ndarray] | None = None,
) -> list[PublishedCell]:
    """Return the cells whose codes this release publishes for the first time, for the ledger.

    Parameters
    ----------
    values : (cells,) published values in units; NaN means suppressed
    origin : ``source``, ``period`` and ``release_id``
    private : ``error``, ``deviation``, ``level`` and ``entropy`` of each cell
    """
    listed = np.zeros(len(cells), dtype=bool) if standing is None else standing.published.copy()
    if standing is not None and standing.renamed is not None:
        listed &= ~standing.renamed
    members = [""] * len(cells) if cells.members is None else cells.members
    hidden = np.isnan(values)
    values = np.where(hidden, cells.units, values)
    amounts = decimals(np.rint(values), table.digits)
    originals = decimals(np.rint(cells.units), table.digits)
    signs = np.sign(values - cells.units).astype(int)
    return [
        PublishedCell(origin["source"], origin["period"], measure, codes,
                      None if hidden[row] else amounts[row], int(signs[row]), origin["release_id"],
                      originals[row], str(members[row]) or None, SUPPRESSED if hidden[row] else status,
                      **{name: float(each[row]) for name, each in (private or {}).items()})
        for row, (measure, codes) in enumerate(zip(cell_measures(cells, table), cell_codes(cells, table),
                                                   strict=True))
        if not listed[row]
    ]  # fmt: skip


def held_values(variables: np.ndarray, standing: PublishedValues) -> np.ndarray:
    """Return the earlier published values in units, (variables,); NaN for variables without one.

    Raises
    ------
    StandingValueFails
        If cells of the same records were published with two values.
    """
    rows = np.flatnonzero(standing.published)
    units = standing.units[rows]
    held = np.full(int(variables.max()) + 1, np.nan)
    held[variables[rows]] = units
    differing = int(np.sum(held[variables[rows]] != units))
    if differing:
        raise StandingValueFails(
            f"{differing} cell(s) of this table have the same records as other cells of it, but earlier "
            "tables published them with other values. Leave out one of the groupings of table.tables"
        )
    return held


def refuse_other_multiples(held: np.ndarray, base: int) -> None:
    """Refuse rounding to a base if earlier published values are not multiples of it.

    Parameters
    ----------
    held : (variables,) array from `held_values`

    Raises
    ------
    StandingValueFails
    """
    off_base = np.isfinite(held) & (held % base != 0)
    if off_base.any():
        raise StandingValueFails(
            f"table.base = {base}: expected a base of which all published values are multiples, found "
            f"{int(off_base.sum())} cell(s) that an earlier release published with other values. Use the "
            "base or the method of that release",
            variable=int(np.argmax(off_base)),
        )


def keep_standing(table: CellTable, by_rule: CellTable, held: np.ndarray) -> CellTable:
    """Return the table in which every published cell is fixed at its earlier value.

    Parameters
    ----------
    table : CellTable
        The variables, with secret levels or draws.
    by_rule : CellTable
        The variables, with the levels of the rule.
    held : (variables,) array from `held_values`

    Raises
    ------
    StandingValueFails
        If a value is nearer to the original than the rule allows.
    """
    keep = np.isfinite(held)
    change = np.where(keep, held, table.values) - table.values
    fails = keep & by_rule.sensitive & (by_rule.lower_protection > 0) & (by_rule.upper_protection > 0)
    fails &= (change < by_rule.upper_protection) & (change > -by_rule.lower_protection)
    if fails.any():
        cell = int(np.argmax(fails))
        raise StandingValueFails(
            f"{int(fails.sum())} sensitive cell(s), for example cell {cell}, were published with a value "
            "that is nearer to their current value than the rule allows: the source was revised, or the "
            "rule is stricter now. Publish the table without these cells, by the earlier rule, or (if the "
            "source was revised) for another period",
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
