"""DuckDB for all audits: an engine without output, quoted names and texts, and queries for a single
number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

#: Column that contains the path of a record's file; no column of a release has this prefix.
FILE = "__filename"
#: Optimisers that use the statistics in the footer of a Parquet file to answer queries or skip values. They
#: are disabled, because the file's writer also writes the statistics, which may be wrong and never include
#: NaN.
_BY_STATISTICS = (
    "statistics_propagation",
    "filter_pushdown",
    "join_filter_pushdown",
    "row_group_pruner",
    "partial_aggregate_pushdown",
    "compressed_materialization",
    "top_n",
    "late_materialization",
)


@contextmanager
def quiet_engine() -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield an in-memory DuckDB connection that counts values and does not use file statistics.

    It draws no progress bar and has no access to variables of Python.
    """
    with duckdb.connect() as engine:
        known = {name for (name,) in engine.execute("SELECT name FROM duckdb_optimizers()").fetchall()}
        chosen = ",".join(each for each in _BY_STATISTICS if each in known)
        engine.execute(f"SET disabled_optimizers = {quoted_text(chosen)}")
        engine.execute("SET enable_progress_bar = false")
        engine.execute("SET python_enable_replacements = false")
        yield engine


def number(engine: duckdb.DuckDBPyConnection, query: str) -> int:
    """Run a query that returns a single integer, and return this integer."""
    ((value,),) = engine.execute(query).fetchall()
    return int(value)


def quoted_name(name: str) -> str:
    """Quote the name of a column for a query; the name may contain any characters."""
    return '"' + name.replace('"', '""') + '"'


def quoted_text(text: str) -> str:
    """Quote a text for a query; the text may contain any characters."""
    return "'" + text.replace("'", "''") + "'"


def show(
    engine: duckdb.DuckDBPyConnection,
    view: str,
    files: Sequence[Path],
    columns: Sequence[str],
    computed: str = "",
) -> None:
    """Create a view of Parquet files whose columns are named by position, because DuckDB treats "Sex" and
    "sex" as equal names.

    Parameters
    ----------
    columns : sequence of str
        One name for each column of the files.
    computed : str
        Further columns, as SQL expressions of the column `FILE`.
    """
    listed = ", ".join(quoted_text(str(path)) for path in files)
    relation = engine.sql(
        f"SELECT * FROM read_parquet([{listed}], filename = {quoted_text(FILE)}, hive_partitioning = false)"
    )
    quoted = [quoted_name(name) for name in relation.columns[:-1]]
    shown = [f"{name} AS {column}" for name, column in zip(quoted, columns, strict=True)]
    relation.project(", ".join([*shown, *([computed] if computed else [])])).create_view(view, replace=True)
