"""Published tables, counted by SQL: cells, repeated cells, and totals compared with the sums of their parts.

DuckDB sums the parts of every total, using only the codes, in exact arithmetic. A layout states how to read
the files; it is the part of the manifest that describes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.guarantees.chunks import Mapper, in_turn
from microguard.pipelines.guarantees.original_cells import OriginalCells
from microguard.pipelines.guarantees.queries import number, quiet_engine, quoted_name, quoted_text

STATUS = "status"


@dataclass(frozen=True)
class Totals:
    """Number of totals that were compared with the sums of their parts, and number that differ."""

    compared: int
    wrong: int


@dataclass(frozen=True)
class TableFiles:
    """Tables of a release.

    Attributes
    ----------
    folder : Path
        Folder of the release.
    layout : mapping
        ``kind``, ``total``, ``value``, ``tables`` and ``groupings`` as the manifest has them.
    engine : DuckDBPyConnection
    original : OriginalCells, optional
        The cells before protection, if available.
    mapper : Mapper
        Calls a function with chunks of cells.
    """

    folder: Path
    layout: Mapping[str, Any]
    engine: duckdb.DuckDBPyConnection
    original: OriginalCells | None = None
    mapper: Mapper = in_turn

    def cells(self) -> int:
        """Count the cells of all files."""
        return sum(number(self.engine, f"SELECT count(*) FROM {self._file(each)}") for each in self._tables)

    def cells_where(self, condition: str) -> int:
        """Count the cells whose value ``v`` satisfies an SQL condition."""
        return sum(
            number(self.engine, f"SELECT count(*) FROM (SELECT {value} AS v FROM {file}) WHERE {condition}")
            for file, value in self.relations()
        )

    def relations(self) -> list[tuple[str, str]]:
        """Return SQL for the relation of each table, and SQL for its column of values."""
        return [(self._file(each), quoted_name(self._value)) for each in self._tables]

    def repeated(self) -> int:
        """Count cells that occur twice in a table, or that linked tables publish with two different
        values.
        """
        keys = ", ".join(quoted_name(name) for name in self.columns)
        return number(
            self.engine,
            f"SELECT count(*) FROM (SELECT 1 FROM ({self._every_cell()}) GROUP BY {keys} "
            "HAVING min(v) <> max(v) OR count(v) NOT IN (0, count(*)) OR count(*) <> count(DISTINCT t))",
        )

    def totals(self, wrong: str) -> Totals:
        """Compare every total with the sum of its parts, for each dimension, level and further hierarchy.

        Parameters
        ----------
        wrong : str
            SQL condition of a total that breaks the promise, in ``total`` (NULL if suppressed or absent, but
            an absent count is 0), ``parts_sum``, ``parts`` (number) and ``hidden`` (number of parts that are
            NULL).
        """
        compared = broken = 0
        for table in self._tables:
            for parts in self._parts(table, self._file(table)):
                keys = ", ".join(quoted_name(name) for name in table["columns"])
                value = quoted_name(self._value)
                sums = f"SELECT {keys}, {_sums(value)} FROM ({parts}) GROUP BY {keys}"
                cells = f"SELECT {keys}, {value} AS v FROM {self._file(table)}"
                counted, failed = self._compared(sums, cells, keys, wrong)
                compared, broken = compared + counted, broken + failed
        for grouping in self.layout.get("groupings", ()):
            counted, failed = self._grouped(grouping, wrong)
            compared, broken = compared + counted, broken + failed
        return Totals(compared, broken)

    def by_cell(self) -> pa.Table:
        """Return each cell of all tables once: its codes in all columns, and its value ``v``."""
        keys = ", ".join(quoted_name(name) for name in self.columns)
        query = f"SELECT {keys}, min(v) AS v FROM ({self._every_cell()}) GROUP BY {keys} ORDER BY {keys}"
        return self.engine.sql(query).to_arrow_table()

    def lines(self) -> pa.Table:
        """Return a row for each part of each total: number of the ``line`` (constraint), positions of
        ``total`` and ``part``.

        Positions refer to `by_cell`; a total that no file has is NULL.
        """
        keys = ", ".join(quoted_name(name) for name in self.columns)
        self.engine.register("numbered_cells", self.by_cell())
        self.engine.execute(
            "CREATE OR REPLACE TEMP TABLE numbered AS "
            f"SELECT *, row_number() OVER (ORDER BY {keys}) - 1 AS __cell FROM numbered_cells"
        )
        found: list[pa.Table] = []

        def find(parts: str) -> None:
            self.engine.register("parts_of_totals", self.engine.sql(parts).to_arrow_table())
            found.append(
                self.engine.sql(
                    f"SELECT {len(found)} AS query, dense_rank() OVER (ORDER BY {keys}) AS place, "
                    "m.__cell AS total, p.__cell AS part FROM parts_of_totals AS p "
                    f"LEFT JOIN numbered AS m USING ({keys})"
                ).to_arrow_table()
            )

        for table in self._tables:
            summed = [name for name in self.columns if name not in table["columns"]]
            inside = "".join(f" AND {quoted_name(name)} = {self._total}" for name in summed)
            own = ", ".join(map(quoted_name, table["columns"]))
            for parts in self._parts(table, f"(SELECT {own}, __cell FROM numbered WHERE true{inside})"):
                find(f"SELECT {self._padded(table['columns'])}, __cell FROM ({parts})")
        for grouping in self.layout.get("groupings", ()):
            parts = self._grouped_parts(grouping, f"SELECT {keys}, __cell FROM numbered")
            find(f"SELECT * FROM ({parts}) WHERE {self._kind} IN (SELECT {self._kind} FROM numbered)")
        if not found:
            return pa.table({name: pa.array([], pa.int64()) for name in ("line", "total", "part")})
        self.engine.register("found_lines", pa.concat_tables(found))
        return self.engine.sql(
            "SELECT dense_rank() OVER (ORDER BY query, place) - 1 AS line, total, part FROM found_lines "
            "ORDER BY line, part"
        ).to_arrow_table()

    @property
    def columns(self) -> list[str]:
        """Return the code columns of all tables."""
        return list(dict.fromkeys(name for table in self._tables for name in table["columns"]))

    @property
    def _tables(self) -> list[dict[str, Any]]:
        return list(self.layout["tables"])

    @property
    def _value(self) -> str:
        return str(self.layout["value"]["name"])

    @property
    def _total(self) -> str:
        return quoted_text(self.layout["total"])

    def _file(self, table: Mapping[str, Any]) -> str:
        path = quoted_text(str(self.folder / table["file"]))
        return f"read_parquet({path}, hive_partitioning = false)"

    def _compared(self, sums: str, cells: str, keys: str, wrong: str) -> tuple[int, int]:
        """Join the sums of parts with the cells by `keys`; return the numbers of compared and of wrong
        totals.
        """
        absent = "0" if self.layout.get("kind") == "frequency" else "NULL"
        ((compared, broken),) = self.engine.execute(
            f"SELECT count(*), count(*) FILTER (WHERE {wrong}) FROM (SELECT p.*, "
            f"CASE WHEN m.listed THEN m.v ELSE {absent} END AS total FROM ({sums}) AS p "
            f"LEFT JOIN (SELECT *, true AS listed FROM ({cells})) AS m USING ({keys}))"
        ).fetchall()
        return int(compared), int(broken)

    def _parts(self, table: Mapping[str, Any], file: str) -> Iterator[str]:
        """Return queries for the parts of totals; each row has the codes of its total."""
        for dimension in table["dimensions"]:
            levels = dimension["levels"]
            if dimension["parents"]:
                parents = {
                    "__code": list(dimension["parents"]),
                    "__above": list(dimension["parents"].values()),
                }
                self.engine.register("parents", pa.table(parents))
                name = quoted_name(levels[0])
                yield (
                    f"SELECT * REPLACE (coalesce(__above, {self._total}) AS {name}) FROM {file} "
                    f"LEFT JOIN parents ON __code = {name} WHERE {name} <> {self._total}"
                )
                continue
            for depth, level in enumerate(levels):
                deeper = "".join(f" AND {quoted_name(each)} = {self._total}" for each in levels[depth + 1 :])
                name = quoted_name(level)
                yield (
                    f"SELECT * REPLACE ({self._total} AS {name}) FROM {file} "
                    f"WHERE {name} <> {self._total}{deeper}"
                )

    def _grouped(self, grouping: Mapping[str, Any], wrong: str) -> tuple[int, int]:
        """Compare the cells of a further hierarchy, if a table contains it, with the codes that they
        group.
        """
        keys = ", ".join(quoted_name(name) for name in self.columns)
        cells = f"SELECT DISTINCT * EXCLUDE (t) FROM ({self._every_cell()})"
        sums = f"SELECT {keys}, {_sums('v')} FROM ({self._grouped_parts(grouping, cells)}) GROUP BY {keys}"
        kinds = f"SELECT {self._kind} FROM ({cells})"
        return self._compared(f"SELECT * FROM ({sums}) WHERE {self._kind} IN ({kinds})", cells, keys, wrong)

    def _grouped_parts(self, grouping: Mapping[str, Any], cells: str) -> str:
        """Return a query for the cells of a column; each row has the codes of its further grouping."""
        above, levels = grouping["above"], grouping["levels"]
        codes = {"__code": list(grouping["codes"])}
        codes |= {f"__{n}": [groups[n] for groups in grouping["codes"].values()] for n in range(len(above))}
        self.engine.register("codes", pa.table(codes))
        finer = quoted_name(grouping["column"])
        summed = [*levels[levels.index(grouping["column"]) + 1 :], *above]
        whole = "".join(f" AND {quoted_name(each)} = {self._total}" for each in summed)
        put = [f"__{n} AS {quoted_name(name)}" for n, name in enumerate(above)]
        put += [f"{self._total} AS {quoted_name(name)}" for name in levels]
        hidden = ", ".join(["__code", *(f"__{n}" for n in range(len(above)))])
        return (
            f"SELECT * EXCLUDE ({hidden}) REPLACE ({', '.join(put)}) FROM ({cells}) "
            f"JOIN codes ON __code = {finer} WHERE {finer} <> {self._total}{whole}"
        )

    @property
    def _kind(self) -> str:
        """Return SQL for the set of columns over which a cell is a sum."""
        return " || ".join(f"({quoted_name(name)} = {self._total})::text" for name in self.columns)

    def _every_cell(self) -> str:
        """Return a query for the cells of all tables: table ``t``, codes in all columns, value ``v``."""
        value = quoted_name(self._value)
        return " UNION ALL ".join(
            f"SELECT {position} AS t, {self._padded(table['columns'])}, {value} AS v FROM {self._file(table)}"
            for position, table in enumerate(self._tables)
        )

    def _padded(self, columns: list[str]) -> str:
        """Select all code columns; a column over which a table is summed contains the total mark."""
        return ", ".join(
            quoted_name(name) if name in columns else f"{self._total} AS {quoted_name(name)}"
            for name in self.columns
        )


@contextmanager
def table_files(
    folder: Path,
    layout: Mapping[str, Any],
    original: OriginalCells | None = None,
    mapper: Mapper = in_turn,
) -> Iterator[TableFiles]:
    """Open the tables of a release."""
    with quiet_engine() as engine:
        yield TableFiles(folder, layout, engine, original, mapper)


def wrong_columns(folder: Path, layout: Mapping[str, Any]) -> int:
    """Count the files whose columns or types differ from the layout."""
    value = layout["value"]
    marks = [(STATUS, "string")] if layout.get("suppressed") else []
    wrong = 0
    for table in layout["tables"]:
        declared = [*((name, "string") for name in table["columns"]), (value["name"], value["type"]), *marks]
        columns = [(entry.name, str(entry.type)) for entry in pq.read_schema(folder / table["file"])]
        wrong += columns != declared
    return wrong


def _sums(value: str) -> str:
    """Select the sum of a total's parts, their number, and the number of parts that are NULL."""
    return f"coalesce(sum({value}), 0) AS parts_sum, count(*) AS parts, count(*) - count({value}) AS hidden"
