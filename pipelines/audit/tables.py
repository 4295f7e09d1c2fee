"""Audit a published table from outside: DuckDB adds the margins from the codes, nothing else is trusted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.audit.queries import number, quoted_name, quoted_text


@dataclass(frozen=True)
class Margins:
    """How many totals of a release were compared with their parts, and how many are wrong."""

    totals: int
    wrong: int


def wrong_columns(folder: Path, manifest: dict[str, Any]) -> int:
    """Files with other columns or types than the manifest's."""
    value = manifest["value"]
    wrong = 0
    for table in manifest["tables"]:
        declared = [*((name, "string") for name in table["columns"]), (value["name"], value["type"])]
        columns = [(entry.name, str(entry.type)) for entry in pq.read_schema(folder / table["file"])]
        wrong += columns != declared
    return wrong


def cells(engine: duckdb.DuckDBPyConnection, folder: Path, manifest: dict[str, Any]) -> int:
    """Cells of all files, each counted where it stands."""
    return sum(number(engine, f"SELECT count(*) FROM {_file(folder, table)}") for table in manifest["tables"])


def repeated(engine: duckdb.DuckDBPyConnection, folder: Path, manifest: dict[str, Any]) -> int:
    """Cells that stand twice in a table, or with two values in linked ones."""
    keys = ", ".join(quoted_name(name) for name in _columns(manifest))
    return number(
        engine,
        f"SELECT count(*) FROM (SELECT 1 FROM ({_every_cell(folder, manifest)}) GROUP BY {keys} "
        "HAVING min(v) <> max(v) OR count(*) <> count(DISTINCT t))",
    )


def off_base(engine: duckdb.DuckDBPyConnection, folder: Path, manifest: dict[str, Any]) -> int:
    """Cells that are no multiple of the base that the manifest names."""
    value, base = quoted_name(manifest["value"]["name"]), int(manifest["method"]["base"])
    return sum(
        number(engine, f"SELECT count(*) FROM {_file(folder, table)} WHERE {value} % {base} <> 0")
        for table in manifest["tables"]
    )


def below(engine: duckdb.DuckDBPyConnection, folder: Path, manifest: dict[str, Any]) -> int:
    """Counts that are not 0 and below the least that the manifest names."""
    value, least = quoted_name(manifest["value"]["name"]), int(manifest["method"]["least"])
    return sum(
        number(
            engine, f"SELECT count(*) FROM {_file(folder, table)} WHERE {value} <> 0 AND {value} < {least}"
        )
        for table in manifest["tables"]
    )


def margins(engine: duckdb.DuckDBPyConnection, folder: Path, manifest: dict[str, Any]) -> Margins:
    """Compare every total with the sum of its parts, in every dimension and at every level, and over every
    further hierarchy that the manifest names. Where every cell has noise, as far as that of a total and its
    parts goes."""
    totals = wrong = 0
    for table in manifest["tables"]:
        for parts in _parts(engine, folder, table, manifest):
            keys = ", ".join(quoted_name(name) for name in table["columns"])
            value = quoted_name(manifest["value"]["name"])
            there = f"coalesce(m.{value}, 0)" if manifest.get("kind") == "frequency" else f"m.{value}"
            ((compared, different),) = engine.execute(
                f"SELECT count(*), count(*) FILTER (WHERE {_off(there, manifest)}) FROM "
                f"(SELECT {keys}, sum({value}) AS s, count(*) AS parts FROM ({parts}) GROUP BY ALL) AS p "
                f"LEFT JOIN {_file(folder, table)} AS m USING ({keys})"
            ).fetchall()
            totals, wrong = totals + compared, wrong + different
    for grouping in manifest.get("groupings", ()):
        compared, different = _grouped(engine, folder, manifest, grouping)
        totals, wrong = totals + compared, wrong + different
    return Margins(totals, wrong)


def _grouped(
    engine: duckdb.DuckDBPyConnection, folder: Path, manifest: dict[str, Any], grouping: dict[str, Any]
) -> tuple[int, int]:
    """Cells of a further hierarchy, of any kind that tables have, compared with the codes they group."""
    above, levels, total = grouping["above"], grouping["levels"], quoted_text(manifest["total"])
    codes = {"__code": list(grouping["codes"])}
    codes |= {f"__{n}": [groups[n] for groups in grouping["codes"].values()] for n in range(len(above))}
    engine.register("codes", pa.table(codes))
    finer, names = quoted_name(grouping["column"]), _columns(manifest)
    summed = [*levels[levels.index(grouping["column"]) + 1 :], *above]
    whole = "".join(f" AND {quoted_name(each)} = {total}" for each in summed)
    put = [f"__{n} AS {quoted_name(name)}" for n, name in enumerate(above)]
    put += [f"{total} AS {quoted_name(name)}" for name in levels]
    keys = ", ".join(quoted_name(name) for name in names)
    kind = " || ".join(f"({quoted_name(name)} = {total})::text" for name in names)
    there = "coalesce(m.v, 0)" if manifest.get("kind") == "frequency" else "m.v"
    ((compared, different),) = engine.execute(
        f"""
        WITH cells AS (SELECT DISTINCT * EXCLUDE (t) FROM ({_every_cell(folder, manifest)})),
        parts AS (
            SELECT * EXCLUDE (__code) REPLACE ({", ".join(put)})
            FROM cells JOIN codes ON __code = {finer} WHERE {finer} <> {total}{whole}
        ),
        sums AS (SELECT {keys}, sum(v) AS s, count(*) AS parts FROM parts GROUP BY ALL)
        SELECT count(*), count(*) FILTER (WHERE {_off(there, manifest)})
        FROM (SELECT * FROM sums WHERE {kind} IN (SELECT {kind} FROM cells)) AS p
        LEFT JOIN cells AS m USING ({keys})
        """
    ).fetchall()
    return int(compared), int(different)


def _parts(
    engine: duckdb.DuckDBPyConnection, folder: Path, table: dict[str, Any], manifest: dict[str, Any]
) -> Iterator[str]:
    """Queries that give the parts of totals, each under the codes of its total."""
    total, file = quoted_text(manifest["total"]), _file(folder, table)
    for dimension in table["dimensions"]:
        levels = dimension["levels"]
        if dimension["parents"]:
            engine.register("parents", _mapping(dimension["parents"]))
            name = quoted_name(levels[0])
            yield (
                f"SELECT * REPLACE (coalesce(parent, {total}) AS {name}) FROM {file} "
                f"LEFT JOIN parents ON code = {name} WHERE {name} <> {total}"
            )
            continue
        for depth, level in enumerate(levels):
            deeper = "".join(f" AND {quoted_name(each)} = {total}" for each in levels[depth + 1 :])
            name = quoted_name(level)
            yield f"SELECT * REPLACE ({total} AS {name}) FROM {file} WHERE {name} <> {total}{deeper}"


def _every_cell(folder: Path, manifest: dict[str, Any]) -> str:
    """A query for the cells of all tables: table t, codes in all columns, value v."""
    value, total = quoted_name(manifest["value"]["name"]), quoted_text(manifest["total"])
    return " UNION ALL ".join(
        f"SELECT {position} AS t, {_selected(_columns(manifest), table['columns'], total)}, {value} AS v "
        f"FROM {_file(folder, table)}"
        for position, table in enumerate(manifest["tables"])
    )


def _off(there: str, manifest: dict[str, Any]) -> str:
    """Whether a total is missing, or farther from the sum of its parts than the noise of all of them."""
    noise = int(manifest.get("method", {}).get("largest", 0))
    return f"{there} IS NULL OR abs({there} - p.s) > {noise} * (p.parts + 1)"


def _columns(manifest: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(name for table in manifest["tables"] for name in table["columns"]))


def _mapping(parents: dict[str, str]) -> pa.Table:
    return pa.table({"code": list(parents), "parent": list(parents.values())})


def _selected(names: list[str], columns: list[str], total: str) -> str:
    return ", ".join(
        quoted_name(name) if name in columns else f"{total} AS {quoted_name(name)}" for name in names
    )


def _file(folder: Path, table: dict[str, Any]) -> str:
    return f"read_parquet({quoted_text(str(folder / table['file']))})"
