"""Public records of a release, on which guarantees are counted with DuckDB."""

from __future__ import annotations

from typing import Any

import duckdb
from microguard.pipelines.audit.partitions import MICRODATA
from microguard.pipelines.guarantees.record_files import RecordFiles


class PublicRecords(RecordFiles):
    """View ``microdata`` of the public files, queried with DuckDB."""

    def __init__(self, engine: duckdb.DuckDBPyConnection, columns: dict[str, str]) -> None:
        self.columns = columns
        self._engine = engine
        kinds = dict(
            engine.execute(
                "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = ?", [MICRODATA]
            ).fetchall()
        )
        self.floating = frozenset(
            name for name, column in columns.items() if kinds.get(column) in ("FLOAT", "DOUBLE")
        )

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query on the records and return its result."""
        return self._engine.execute(sql.format(records=MICRODATA)).fetchall()
