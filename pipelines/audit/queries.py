"""What every audit asks of DuckDB: a quiet engine, quoted names and texts, and one number back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb


@contextmanager
def quiet_engine() -> Iterator[duckdb.DuckDBPyConnection]:
    """An engine in memory that draws no progress bar."""
    with duckdb.connect() as engine:
        engine.execute("SET enable_progress_bar = false")
        yield engine


def number(engine: duckdb.DuckDBPyConnection, query: str) -> int:
    """The single whole number that a query gives."""
    ((value,),) = engine.execute(query).fetchall()
    return int(value)


def quoted_name(name: str) -> str:
    """A column's name in a query, whatever stands in it."""
    return '"' + name.replace('"', '""') + '"'


def quoted_text(text: str) -> str:
    """A text in a query, whatever stands in it."""
    return "'" + text.replace("'", "''") + "'"
