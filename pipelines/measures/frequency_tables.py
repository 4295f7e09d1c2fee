"""Frequency tables of a frame, weighted ones beside them, in one job, whatever the number of records."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from pipelines.engine.column_names import column
from schemas.specification.consistency import FREQUENCY


def weighted_by(position: int) -> str:
    """Column of the counts weighted by the weight at a position; no variable has such a name."""
    return f"__weighted{position}"


def frequency_tables(
    frame: DataFrame, tables: Sequence[tuple[str, ...]], weights: Sequence[str] = ()
) -> dict[tuple[str, ...], pa.Table]:
    """Cells that occur, with their frequencies.

    Records are first collapsed to distinct combinations; the tables are then grouping sets of these,
    so that the cost does not grow with the number of tables times records.

    Parameters
    ----------
    frame : DataFrame
        Records; must have every column that a table names.
    tables : sequence of tuples of column names
    weights : sequence of column names
        Summed over the records of each cell; a missing one counts nothing.

    Returns
    -------
    dict
        Table -> arrow table of its columns, ``frequency`` (int64) and, of the weight at each position,
        `weighted_by` (double), sorted by cell.
    """
    if not tables:
        return {}
    names = list(dict.fromkeys(name for table in tables for name in table))
    distinct = {_grouping(table, names): table for table in tables}
    aliases = {name: f"v{position}" for position, name in enumerate(names)}
    sums = {weighted_by(position): column(name).cast("double") for position, name in enumerate(weights)}
    weighted = [f.coalesce(f.sum(name), f.lit(0.0)).alias(name) for name in sums]
    combinations = (
        frame.select(
            [column(name).alias(alias) for name, alias in aliases.items()]
            + [weight.alias(name) for name, weight in sums.items()]
        )
        .groupBy(*aliases.values())
        .agg(f.count(f.lit(1)).alias("n"), *weighted)
    )
    sets = [[f.col(aliases[name]) for name in table] for table in distinct.values()]
    cells = (
        combinations.groupingSets(sets, *[f.col(alias) for alias in aliases.values()])
        .agg(f.sum("n").alias(FREQUENCY), *weighted, f.grouping_id().alias("set"))
        .toArrow()
    )
    return {table: _one_table(cells, table, names, aliases, list(sums)) for table in tables}


def _one_table(
    cells: pa.Table, table: tuple[str, ...], names: list[str], aliases: dict[str, str], weighted: list[str]
) -> pa.Table:
    chosen = cells.filter(pc.equal(cells["set"], _grouping(table, names)))
    keys = [aliases[name] for name in table]
    ordered = chosen.sort_by([(key, "ascending") for key in keys])  # a name may look like a path to Arrow
    columns = {name: ordered[key] for name, key in zip(table, keys, strict=True)}
    counts = {FREQUENCY: ordered[FREQUENCY].cast(pa.int64())}
    return pa.table(columns | counts | {name: ordered[name] for name in weighted})


def _grouping(table: tuple[str, ...], names: list[str]) -> int:
    """Spark's grouping id: one bit a column, the first the highest, set where the table lacks it."""
    last = len(names) - 1
    return sum(1 << (last - position) for position, name in enumerate(names) if name not in table)
