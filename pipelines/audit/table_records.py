"""Records that a Delta or Iceberg table must hold for a release: its own, and of the nights it continues."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from microguard.pipelines.guarantees.queries import quiet_engine, quoted_name


def record_files_of_table(public: Path, manifest: dict[str, Any]) -> list[str]:
    """Record files that a reader of the table has with a release: its own, and of earlier nights that stand.

    Parameters
    ----------
    public : Path
        The public area.
    manifest : dict
        The release's; of a night of events it names the nights that make the whole.
    """
    nights = [*manifest.get("series", {}).get("releases", []), manifest["release_id"]]
    return sorted(
        str(path.resolve())
        for night in set(nights)
        for path in (public / night / "microdata").glob("*.parquet")
    )


def count_records(files: Sequence[str]) -> int:
    """Number of records, as the files themselves say."""
    return sum(pq.read_metadata(file).num_rows for file in files)


def multiset_hash(files: Sequence[str]) -> tuple[int, ...]:
    """Number of records, sum and exclusive or of their hashes: equal for equal multisets of records.

    Columns are taken by position, as names that differ in case alone are one name to DuckDB.
    """
    with quiet_engine() as engine:
        relation = engine.read_parquet(list(files))
        names = ", ".join(map(quoted_name, relation.columns))
        ((records, total, mixed),) = relation.aggregate(
            f"count(*), sum(hash({names})::HUGEINT), bit_xor(hash({names}))"
        ).fetchall()
    return int(records), int(total or 0), int(mixed or 0)
