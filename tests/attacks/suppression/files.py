"""Attack program: recompute the interval of every sensitive cell from the rows of the published files.

Constraints are built from codes and parents; no code is shared with the product. For each sensitive cell and
side, the program searches a table that reaches the level. Each attacker who can exclude that table gets a
separate program. Levels are relative to the level of the cell, and so are tolerances.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import sparse

from tests.attacks.interval_programs import IntervalPrograms

Cell = frozenset[tuple[str, str]]
"""Codes of a cell by column, without those that are the total."""
Parents = Mapping[str, Mapping[str, str]]
TOLERANCE = 1e-5
# cost of a cell whose value an attacker may know; few such cells should be excluded from tables
_WATCHED = 5.0
# number of cells of the first programs of a sensitive cell
_NEAR = 250


@dataclass(frozen=True)
class Secret:
    """Knowledge of the office about a cell: true value, levels if it is sensitive, and bounds known to
    readers.
    """

    value: float
    lower: float
    upper: float
    fall: float
    rise: float


@dataclass(frozen=True)
class Contributor:
    """An attacker: the contribution to each cell, and the cells without another contributor."""

    kind: str
    amounts: Mapping[Cell, float]
    alone: frozenset[Cell]


def key(codes: Mapping[str, str], total: str = "Total") -> Cell:
    """Return the cell of a row."""
    return frozenset((name, code) for name, code in codes.items() if code != total)


def covers(cell: Cell, parents: Parents) -> Iterator[Cell]:
    """Return a cell and all cells that contain it."""
    choices: list[list[tuple[tuple[str, str], ...]]] = []
    for name, code in sorted(cell):
        above: list[tuple[tuple[str, str], ...]] = [((name, code),)]
        at: str | None = code
        while (at := parents.get(name, {}).get(at)) is not None:
            above.append(((name, at),))
        choices.append([*above, ()])
    found: list[tuple[tuple[str, str], ...]] = [()]
    for options in choices:
        found = [(*one, *option) for one in found for option in options]
    return map(frozenset, found)


class PublishedRows:
    """Cells of the files of one or more tables, and the constraints that they satisfy."""

    def __init__(self, tables: Iterable[pd.DataFrame], parents: Parents, total: str = "Total") -> None:
        self.value: dict[Cell, float] = {}
        lines: dict[tuple[Cell, str, str], list[Cell]] = defaultdict(list)
        own: list[tuple[Cell, tuple[str, ...]]] = []
        for rows in tables:
            *columns, value, _ = rows.columns
            for row in rows.to_dict("records"):
                cell = key({name: str(row[name]) for name in columns}, total)
                amount = np.nan if row[value] is None else float(row[value])
                if np.isnan(self.value.get(cell, np.nan)):
                    self.value[cell] = amount
                own.append((cell, tuple(columns)))
        for cell, columns in dict.fromkeys(own):
            codes = dict(cell)
            for name in columns:
                if name in codes:
                    above = parents.get(name, {}).get(codes[name], total)
                    whole = key({**codes, name: above}, total)
                    lines[whole, name, total].append(cell)
        self.cells = list(self.value)
        self.place = {cell: position for position, cell in enumerate(self.cells)}
        self.hidden = np.isnan(np.array([self.value[cell] for cell in self.cells]))
        entries = [
            (number, self.place[cell], sign)
            for number, ((whole, *_), parts) in enumerate(
                (line, list(dict.fromkeys(parts))) for line, parts in lines.items() if line[0] in self.place
            )
            for cell, sign in ((whole, -1.0), *((part, 1.0) for part in parts))
        ]
        rows_, columns_, signs = (np.array(each) for each in zip(*entries, strict=True))
        self.lines = sparse.csr_matrix((signs, (rows_, columns_)), shape=(rows_.max() + 1, len(self.cells)))


class Attack:
    """Linear programs over the suppressed cells of published rows."""

    def __init__(
        self, rows: PublishedRows, secrets: Mapping[Cell, Secret], attackers: Iterable[Contributor] = ()
    ) -> None:
        self._rows, self._secrets, self._attackers = rows, secrets, list(attackers)
        given = [secrets[cell] for cell in rows.cells]
        self._fall, self._rise = (np.array([getattr(s, n) for s in given]) for n in ("fall", "rise"))
        self._values = np.array([s.value for s in given])
        facts = [
            (number, rows.place[cell], *self._known(attacker, cell))
            for number, attacker in enumerate(self._attackers)
            for cell in attacker.amounts
            if cell in rows.place and rows.hidden[rows.place[cell]]
        ]
        table = np.array(facts, dtype=float).reshape(-1, 4)
        self._who, self._where = table[:, 0].astype(int), table[:, 1].astype(int)
        self._least, self._most = table[:, 2], table[:, 3]
        self._weight = np.ones(len(given))
        self._weight[self._where] = _WATCHED
        self._programs = {True: self._over(rows.hidden), False: self._over(np.ones(len(given), bool))}
        self._centre, self._around = -1, self._programs[True]

    def narrow(self, among: Collection[Cell] | None = None) -> dict[str, set[Cell]]:
        """Return the sensitive cells that each kind of attacker narrows below their levels.

        A table that reaches the level of one cell, or its mirror image, is shrunk for further cells.
        Attackers who can exclude all of these tables get tables of their own, one after the other; a new
        table is compared with the knowledge of the others first. Once an attacker of a kind narrows a cell,
        others of the kind do not attack it.

        Parameters
        ----------
        among : sensitive cells to attack; default all
        """
        found: dict[str, set[Cell]] = {"outsider": set()} | {each.kind: set() for each in self._attackers}
        aims = [
            (cell, side, level)
            for cell, secret in self._secrets.items()
            for side, level in ((1.0, secret.upper), (-1.0, secret.lower))
            if level > 0 and cell in self._rows.place and (among is None or cell in among)
        ]
        tables: list[np.ndarray] = []
        for cell, side, level in sorted(aims, key=lambda aim: -aim[2]):
            if not self._rows.hidden[self._rows.place[cell]]:
                found["outsider"].add(cell)
                continue
            left = self._excluding_all(self._shrunk(tables, cell, side, level), level)
            if left is None:
                table = self._table(cell, side, level)
                if table is None:
                    found["outsider"].add(cell)
                    continue
                tables.append(table * level)
                left = self._excluding(table, level)
            while len(left):
                attacker, left = self._attackers[left[0]], left[1:]
                if cell in attacker.alone or cell in found[attacker.kind]:
                    continue
                table = self._table(cell, side, level, attacker)
                if table is not None:
                    tables.append(table * level)
                    left = self._excluding(table, level, left)
                elif self._narrowed(cell, side, level, attacker):
                    found[attacker.kind].add(cell)
        return found

    def _excluding_all(self, tables: Iterable[np.ndarray], level: float) -> np.ndarray | None:
        """Return the attackers who know that no table is the original one; None if there are no tables."""
        left = None
        for table in tables:
            left = self._excluding(table, level, left)
            if len(left) == 0:
                break
        return left

    def _shrunk(
        self, tables: list[np.ndarray], cell: Cell, side: float, level: float
    ) -> Iterator[np.ndarray]:
        """Return tables of other cells, in levels, that readers cannot exclude and that reach the level."""
        place = self._rows.place[cell]
        for table in tables:
            reached = abs(table[place])
            if reached >= level * (1 - TOLERANCE / 2):
                shrunk = table * (np.sign(table[place]) * side / max(reached, level))
                beyond = np.maximum(-shrunk - self._fall / level, shrunk - self._rise / level)
                if max(beyond.max(), np.abs(self._rows.lines @ shrunk).max()) <= TOLERANCE / 10:
                    yield shrunk

    def _known(self, attacker: Contributor, cell: Cell) -> tuple[float, float]:
        """Return the decrease and increase of an own cell that an attacker considers possible."""
        place = self._rows.place[cell]
        fall, rise = self._fall[place], self._rise[place]
        if cell in attacker.alone:
            return 0.0, 0.0
        if self._values[place] - fall < 0:
            return fall, rise
        return min(fall, max(self._values[place] - attacker.amounts[cell], 0.0)), rise

    def _over(self, free: np.ndarray) -> tuple[np.ndarray, IntervalPrograms]:
        """Return the positions of some cells, and the linear programs over them."""
        cells = np.flatnonzero(free)
        lines = self._rows.lines[:, cells]
        return cells, IntervalPrograms(lines[np.diff(lines.indptr) > 0], self._weight[cells])

    def _table(
        self, cell: Cell, side: float, level: float, attacker: Contributor | None = None
    ) -> np.ndarray | None:
        """Return deviations in levels that an attacker cannot exclude and in which the cell deviates by one
        level; None if there are none.

        The suppressed cells near the cell are tried before all.
        """
        fall, rise = (each / level for each in self._limits(attacker))
        own = self._rows.place[cell]
        if (rise if side > 0 else fall)[own] < 1 - TOLERANCE:
            return None
        fall[own], rise[own] = (0.0, 1.0) if side > 0 else (1.0, 0.0)
        for cells, programs in (self._near(own), self._programs[True]):
            aim = int(np.searchsorted(cells, own))
            found = programs.witness(aim, side, 1.0 - TOLERANCE / 2, fall[cells], rise[cells])
            if found is not None:
                table = np.zeros(len(self._values))
                table[cells] = found
                return table
        return None

    def _near(self, own: int) -> tuple[np.ndarray, IntervalPrograms]:
        """Return the suppressed cells with the most lines that meet lines of a cell, and the linear programs
        over them.
        """
        if self._centre != own:
            cells, _ = self._programs[True]
            lines = abs(self._rows.lines[:, cells])
            beside = lines.T @ lines[:, [int(np.searchsorted(cells, own))]].toarray().ravel() > 0
            met = lines @ beside > 0
            share = (lines.T @ met) / np.maximum(lines.getnnz(axis=0), 1)
            room = np.minimum(self._fall, self._rise)[cells]
            nearest = np.lexsort((-room, -share, ~beside))[:_NEAR]
            free = np.zeros(len(self._values), dtype=bool)
            free[cells[nearest]] = True
            self._centre, self._around = own, self._over(free)
        return self._around

    def _excluding(self, table: np.ndarray, level: float, among: np.ndarray | None = None) -> np.ndarray:
        """Return the attackers, of all or of some, who know that a table is not the original one."""
        facts = slice(None) if among is None else np.flatnonzero(np.isin(self._who, among))
        moved, slack = table[self._where[facts]], TOLERANCE / 10
        bad = (moved < -self._least[facts] / level - slack) | (moved > self._most[facts] / level + slack)
        return np.unique(self._who[facts][bad])

    def _narrowed(self, cell: Cell, side: float, level: float, attacker: Contributor) -> bool:
        """Return whether a contributor's interval is narrower than the level and than the prior knowledge."""
        reached = self._furthest(cell, side, level, attacker, published=True)
        if reached >= 1 - TOLERANCE:
            return False
        return reached < min(1.0, self._furthest(cell, side, level, attacker, published=False)) - TOLERANCE

    def _furthest(
        self, cell: Cell, side: float, level: float, attacker: Contributor, *, published: bool
    ) -> float:
        """Return the largest deviation that an attacker considers possible, in levels."""
        cells, programs = self._programs[published]
        fall, rise = self._limits(attacker)
        aim = int(np.searchsorted(cells, self._rows.place[cell]))
        return programs.furthest(aim, side, fall[cells] / level, rise[cells] / level)

    def _limits(self, attacker: Contributor | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the decrease and increase of each cell that an attacker considers possible."""
        fall, rise = self._fall.copy(), self._rise.copy()
        for own in () if attacker is None else attacker.amounts:
            if own in self._rows.place:
                place = self._rows.place[own]
                fall[place], rise[place] = self._known(attacker, own)
        return fall, rise


def contributors_of_records(
    records: pd.DataFrame, columns: list[str], value: str, parents: Parents, total: str = "Total"
) -> list[Contributor]:
    """Return sole contributors, pairs of contributors and all contributors of a table of records.

    Parameters
    ----------
    records : frame of `columns`, `value` and ``unit``
    """
    amounts: dict[str, dict[Cell, float]] = defaultdict(lambda: defaultdict(float))
    members: dict[Cell, set[str]] = defaultdict(set)
    for row in records.to_dict("records"):
        if row[value] == 0:
            continue
        for cell in set(covers(key({name: str(row[name]) for name in columns}, total), parents)):
            amounts[row["unit"]][cell] += float(row[value])
            members[cell].add(row["unit"])

    def coalition(kind: str, units: frozenset[str]) -> Contributor:
        together: dict[Cell, float] = defaultdict(float)
        for unit in units:
            for cell, amount in amounts[unit].items():
                together[cell] += amount
        return Contributor(kind, together, frozenset(cell for cell in together if members[cell] <= units))

    few = {frozenset(each) for each in members.values() if len(each) <= 2}
    found = [coalition("single" if len(each) == 1 else "pair", each) for each in sorted(few, key=sorted)]
    return found + [coalition("unit", frozenset([unit])) for unit in sorted(amounts)]


def contributors_of_numbers(
    numbers: Mapping[Cell, int],
    values: Mapping[Cell, float],
    parents: Parents,
    largest: Mapping[Cell, float] | None = None,
) -> list[Contributor]:
    """Return those who alone, and the two who together, contribute to a cell, by numbers of contributors.

    Cells with one contributor that contain each other have the same one. Whoever contributes to a cell does
    so to all that contain it. Of a cell with two parts that are his, the larger amount is used.

    Parameters
    ----------
    largest : contribution by cell, optional
        Then each of two contributors attacks for himself too ("member").
    """
    above: dict[Cell, set[Cell]] = {cell: set(covers(cell, parents)) & set(numbers) for cell in numbers}
    below: dict[Cell, set[Cell]] = defaultdict(set)
    for cell, wider in above.items():
        for each in wider:
            below[each].add(cell)
    first = {cell: cell for cell, number in numbers.items() if number == 1}

    def root(cell: Cell) -> Cell:
        while first[cell] != cell:
            cell = first[cell]
        return cell

    for cell in first:
        for wider in above[cell]:
            if numbers[wider] == 1:
                first[root(wider)] = root(cell)
    groups: dict[Cell, set[Cell]] = defaultdict(set)
    for cell in first:
        groups[root(cell)].add(cell)
    starts = [("single", group) for group in groups.values()]
    starts += [("pair", {cell}) for cell, number in numbers.items() if number == 2]
    found = []
    for kind, group in starts:
        amounts: dict[Cell, float] = {}
        alone: set[Cell] = set()
        for cell in group:
            for each in below[cell]:
                amounts[each] = values[each]
                alone.add(each)
            for wider in above[cell]:
                amounts[wider] = max(amounts.get(wider, 0.0), values[cell])
                if numbers[wider] == numbers[cell]:
                    alone.add(wider)
        found.append(Contributor(kind, amounts, frozenset(alone)))
    for cell, number in numbers.items() if largest is not None else ():
        if number == 2:
            most = min(largest[cell], values[cell])
            found += [
                Contributor("member", dict.fromkeys(above[cell], own), frozenset())
                for own in (most, values[cell] - most)
            ]
    return found
