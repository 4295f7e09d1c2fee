"""Count all guarantees again in plain Python, as an oracle for the counts of the product."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

Row = dict[str, Any]


def _key(value: Any) -> Any:
    """Return a value as it is grouped: NaN is one value, -0.0 is 0.0, None is a value."""
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    return value


def class_sizes(records: Sequence[Row], names: Sequence[str]) -> list[int]:
    """Return the sizes of the equivalence classes, in ascending order."""
    return sorted(Counter(tuple(_key(row[name]) for name in names) for row in records).values())


def fewest_showing(records: Sequence[Row], names: Sequence[str], region: Sequence[str]) -> int:
    """Return the least number of records in a region that show all values which one record shows."""

    def shows(other: Row, one: Row) -> bool:
        same = all(one[name] is None or _key(one[name]) == _key(other[name]) for name in names)
        return same and all(_key(one[name]) == _key(other[name]) for name in region)

    return min((sum(shows(other, one) for other in records) for one in records), default=0)


def fewest_values(
    records: Sequence[Row], names: Sequence[str], sensitive: str, *, withholds: bool = False
) -> int:
    """Return the least number of distinct values of a sensitive variable in a class with any value.

    NaN is no value.
    """
    values: dict[Any, set[Any]] = defaultdict(set)
    for row in records:
        values[tuple(_key(row[name]) for name in names)] |= {_key(row[sensitive])} - {None, "NaN"}
    return min((len(each) for each in values.values() if each or not withholds), default=0)


class Tables:
    """Published tables, row by row."""

    def __init__(self, folder: Path, layout: Mapping[str, Any]) -> None:
        self.layout, self.total, self.counts = layout, layout["total"], layout["kind"] == "frequency"
        value = layout["value"]["name"]
        self.tables = [
            [(each, _number(each.pop(value))) for each in pq.read_table(folder / table["file"]).to_pylist()]
            for table in layout["tables"]
        ]

    @property
    def values(self) -> list[Decimal | None]:
        """Return the values of all cells."""
        return [value for cells in self.tables for _, value in cells]

    def repeated(self) -> int:
        """Return cells that occur twice in a table, or with two values (or a value and none) in linked
        tables.
        """
        columns = list(dict.fromkeys(name for table in self.layout["tables"] for name in table["columns"]))
        found: dict[Any, list[tuple[int, Decimal | None]]] = defaultdict(list)
        for position, cells in enumerate(self.tables):
            for codes, value in cells:
                found[tuple(codes.get(name, self.total) for name in columns)].append((position, value))
        return sum(
            len({value for _, value in each}) > 1 or len({place for place, _ in each}) < len(each)
            for each in found.values()
        )

    def lines(self) -> Iterator[tuple[Decimal | None, list[Decimal | None]]]:
        """Return each total (None if it has no value or is absent; an absent count is 0) with its parts."""
        for table, cells in zip(self.layout["tables"], self.tables, strict=True):
            columns = table["columns"]
            listed: dict[Any, list[Decimal | None]] = defaultdict(list)
            for codes, value in cells:
                listed[tuple(codes[name] for name in columns)].append(value)
            for dimension in table["dimensions"]:
                for parts in self._parts(columns, cells, dimension):
                    for key, values in parts.items():
                        for total in listed.get(key, [Decimal(0) if self.counts else None]):
                            yield total, values

    def follow(self) -> int:
        """Return suppressed cells whose value follows from the constraints, by elimination in exact
        fractions.
        """
        columns = list(dict.fromkeys(name for table in self.layout["tables"] for name in table["columns"]))
        values: dict[Any, Decimal | None] = {}
        rows: list[dict[Any, Fraction]] = []
        for cells in self.tables:
            for codes, value in cells:
                key = tuple(codes.get(name, self.total) for name in columns)
                values[key] = values.get(key) if value is None else value
        for table, cells in zip(self.layout["tables"], self.tables, strict=True):
            own = table["columns"]
            named = {
                tuple(codes.get(name, self.total) for name in columns): codes for codes, _ in cells
            }  # a cell that occurs twice in a table counts once
            for dimension in table["dimensions"]:
                for parts in self._parts(own, [(codes, key) for key, codes in named.items()], dimension):
                    for total, keys in parts.items():
                        whole = tuple(
                            dict(zip(own, total, strict=True)).get(name, self.total) for name in columns
                        )
                        if whole in values:
                            line = Counter({key: Fraction(1) for key in keys})
                            line[whole] -= Fraction(1)
                            rows.append({key: n for key, n in line.items() if values[key] is None and n})
        return sum(len(row) == 1 for row in _eliminated(rows))

    def _parts(
        self, columns: Sequence[str], cells: Sequence[tuple[Row, Decimal | None]], dimension: Row
    ) -> Iterator[dict[Any, list[Decimal | None]]]:
        levels = dimension["levels"]
        if dimension["parents"]:
            (name,) = levels
            yield _grouped(
                columns, cells, lambda codes: codes[name] != self.total,
                lambda codes: {name: dimension["parents"].get(codes[name], self.total)},
            )  # fmt: skip
            return
        for depth, level in enumerate(levels):
            deeper = levels[depth + 1 :]
            yield _grouped(
                columns, cells,
                lambda codes, level=level, deeper=deeper: codes[level] != self.total
                and all(codes[each] == self.total for each in deeper),
                lambda codes, level=level: {level: self.total},
            )  # fmt: skip


def _eliminated(rows: list[dict[Any, Fraction]]) -> list[dict[Any, Fraction]]:
    """Return the reduced row echelon form without empty rows."""
    left, done = [row for row in rows if row], []
    while left:
        pivot = left.pop()
        key, factor = next(iter(pivot.items()))
        pivot = {name: n / factor for name, n in pivot.items()}

        def without(row: dict[Any, Fraction], key: Any = key, pivot: Any = pivot) -> dict[Any, Fraction]:
            times = row.get(key, Fraction(0))
            names = {*row, *pivot} if times else row.keys()
            changed = {name: row.get(name, Fraction(0)) - times * pivot.get(name, 0) for name in names}
            return {name: n for name, n in changed.items() if n}

        left = [row for row in map(without, left) if row]
        done = [*map(without, done), pivot]
    return done


def additive(total: Decimal | None, parts: Sequence[Decimal | None]) -> bool:
    """Return whether a total has a value that is the sum of its parts, all of which have a value."""
    return (
        total is not None and None not in parts and total == sum(each for each in parts if each is not None)
    )


def within_noise(total: Decimal | None, parts: Sequence[Decimal | None], largest: int) -> bool:
    """Return whether a total is within the combined noise limits of the sum of its parts."""
    if total is None or None in parts:
        return False
    return abs(total - sum(each for each in parts if each is not None)) <= largest * (len(parts) + 1)


def adds_up_if_shown(total: Decimal | None, parts: Sequence[Decimal | None]) -> bool:
    """Return whether a constraint without suppressed cells is satisfied."""
    return total is None or None in parts or additive(total, parts)


def cube(records: Sequence[Row], columns: Sequence[str], value: str, total: str) -> list[Row]:
    """Return all cells of the table of some columns: sums of a value over every subset of them."""
    sums: Counter[tuple[str, ...]] = Counter()
    subsets = [each for size in range(len(columns) + 1) for each in combinations(columns, size)]
    for row in records:
        for kept in subsets:
            sums[tuple(row[name] if name in kept else total for name in columns)] += row[value]
    return [{**dict(zip(columns, key, strict=True)), value: amount} for key, amount in sums.items()]


def _grouped(columns: Any, cells: Any, chosen: Any, above: Any) -> dict[Any, list[Decimal | None]]:
    parts: dict[Any, list[Decimal | None]] = defaultdict(list)
    for codes, value in cells:
        if chosen(codes):
            parts[tuple({**codes, **above(codes)}[name] for name in columns)].append(value)
    return parts


def _number(value: Any) -> Decimal | None:
    return None if value is None else Decimal(value)
