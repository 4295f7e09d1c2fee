"""Step from one release to the next in a table: replace all files, add files, or replace changed files.

The history of a table, including which files stay and which change, follows from the published releases
alone. It discloses only what the releases disclose together, which is audited.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.engine.files import parse_json, read_json
from microguard.pipelines.engine.sql_text import quoted_name
from microguard.pipelines.publication.public_area import MANIFEST, PublicArea
from microguard.schemas.errors import ProtectionFailed

#: Maximum number of records in a file of changes, because removing one record rewrites all others of its
#: file.
RECORDS_PER_FILE = 100_000
#: DuckDB's column with the position of a record in its file.
_POSITION = "file_row_number"

Step = Literal["whole", "add", "change"]


@dataclass(frozen=True)
class Changes:
    """Files to remove from a table, and files to add to it.

    Attributes
    ----------
    leaving : tuple of str
        Files of the table that contain a record which the release does not have.
    arriving : tuple of Path
        New files with the records of the release that no remaining file has.
    """

    leaving: tuple[str, ...]
    arriving: tuple[Path, ...]


def released_files(public: Path, release_id: str) -> list[str]:
    """Return the record files of a release in order."""
    return [str(path.resolve()) for path in sorted((public / release_id / "microdata").glob("*.parquet"))]


def record_files(public: PublicArea, release_id: str, without: str = "") -> list[str]:
    """Return the record files of a release and of the earlier releases that it extends, as names in the area.

    Parameters
    ----------
    without : str
        Id of a release that is being removed.
    """
    earlier = [each for each in _extended(public, release_id) if each != without and public.exists(each)]
    return [name for each in (*earlier, release_id) for name in _own_files(public, each)]


def record_files_of_all(public: PublicArea) -> dict[str, list[str]]:
    """Return the same for every release of the area; each folder is listed once."""
    own = {release_id: _own_files(public, release_id) for release_id in public.releases()}
    return {
        release_id: [
            name for each in (*_extended(public, release_id), release_id) for name in own.get(each, ())
        ]
        for release_id in own
    }


def _extended(public: PublicArea, release_id: str) -> list[str]:
    """Return the earlier releases that a release extends."""
    content = public.storage.get(f"{release_id}/{MANIFEST}")
    assert content is not None
    remedy = "Withdraw the release, and run its job again."
    manifest = parse_json(content.content, f"{MANIFEST} of release {release_id}", remedy)
    return [each for each in manifest.get("series", {}).get("releases", ()) if each != release_id]


def _own_files(public: PublicArea, release_id: str) -> list[str]:
    files = public.storage.list_files(f"{release_id}/microdata")
    return [name for name in files if name.endswith(".parquet")]


def not_yet_committed(public: Path, release_id: str, committed: Sequence[str]) -> list[str]:
    """Return the releases to commit: this one, and earlier ones of its series that the table does not
    contain.
    """
    releases = _manifest(public, release_id).get("series", {}).get("releases", [release_id])
    published = [each for each in releases if each == release_id or (public / each).is_dir()]
    return [each for each in published if each not in committed]


def step(public: Path, release_id: str, before: str | None) -> Step:
    """Return the step that adds a release to a table.

    Parameters
    ----------
    before : str or None
        The newest release in the table.

    Raises
    ------
    ProtectionFailed
        If a release of a series has other columns than the releases to which it is added.
    """
    if before is None:
        return "whole"
    manifest, last = _manifest(public, release_id), _manifest(public, before)
    series, alike = manifest.get("series", {}), manifest["columns"] == last["columns"]
    if before in series.get("releases", ()):
        if not alike:
            raise ProtectionFailed(
                f"Release {release_id}: expected the columns and types of the earlier releases of its "
                "series, because one table contains them all; found other columns or types. Nothing was "
                "published. Use the earlier columns, or begin a series with another name."
            )
        return "add"
    kinds = {series.get("kind"), last.get("series", {}).get("kind")}
    return "change" if alike and kinds == {"register"} else "whole"


def changes(table: Sequence[str], released: Sequence[str], folder: Path, release_id: str) -> Changes:
    """Compare a table with a release as multisets of records; write the records that the table does not
    contain.

    A file stays if the release has each of its records at least as often as this file and earlier files
    together.

    Parameters
    ----------
    table, released : sequence of str
        Parquet files with the same columns.
    folder : Path
        Folder for the new files; their names are unique.
    """
    names = pq.read_schema(released[0]).names
    # two queries, because one DuckDB query cannot return both results
    if _POSITION in [name.lower() for name in names]:
        leaving, places = list(range(len(table))), None
    else:
        leaving, places = _compared(sorted(table), released, names)
    arriving = _written(_records(released, places), folder, f"{release_id}-{uuid.uuid4().hex}")
    return Changes(tuple(sorted(table)[each] for each in leaving), tuple(arriving))


def _compared(
    table: Sequence[str], released: Sequence[str], names: Sequence[str]
) -> tuple[list[int], dict[int, np.ndarray]]:
    """Return the files to remove, and the positions in the released files of the records to add."""
    columns = ", ".join(map(quoted_name, names))
    ranked = "row_number() OVER (PARTITION BY one, other ORDER BY file, position) AS rank"
    with duckdb.connect() as engine:
        engine.execute("SET enable_progress_bar = false")
        for view, files in (("before", table), ("after", released)):
            engine.execute(
                f"CREATE TEMP TABLE {view} (file INTEGER, position BIGINT, one UBIGINT, other UBIGINT)"
            )
            for number, file in enumerate(files):  # 128 bits, so that collisions are negligible
                engine.execute(
                    f"INSERT INTO {view} SELECT ?, {_POSITION}, hash({columns}), hash('other', {columns}) "
                    f"FROM read_parquet(?, {_POSITION} = true, hive_partitioning = false)",
                    [number, file],
                )
        engine.execute(
            "CREATE TEMP TABLE leaving AS SELECT DISTINCT file "
            f"FROM (SELECT file, one, other, {ranked} FROM before) LEFT JOIN "
            "(SELECT one, other, count(*) AS wanted FROM after GROUP BY ALL) USING (one, other) "
            "WHERE rank > coalesce(wanted, 0)"
        )
        leaving = [int(file) for (file,) in engine.execute("FROM leaving ORDER BY file").fetchall()]
        lacking = engine.execute(
            f"SELECT file, position FROM (SELECT *, {ranked} FROM after) LEFT JOIN "
            "(SELECT one, other, count(*) AS held FROM before WHERE file NOT IN (FROM leaving) GROUP BY ALL) "
            "USING (one, other) WHERE rank > coalesce(held, 0) ORDER BY file, position"
        ).fetchnumpy()
    return leaving, {each: lacking["position"][lacking["file"] == each] for each in range(len(released))}


def _records(released: Sequence[str], places: dict[int, np.ndarray] | None) -> Iterator[pa.Table]:
    """Return the records at given positions of the released files as plain values; None means no
    positions.
    """
    for number, file in enumerate(released):
        start = 0
        for batch in pq.ParquetFile(file).iter_batches():
            there = np.arange(len(batch))
            if places is not None:
                there = places[number][(places[number] >= start) & (places[number] < start + len(batch))]
                there = there - start
            start += len(batch)
            if len(there):
                table = pa.Table.from_batches([batch]).take(pa.array(there))
                yield table.cast(pa.schema([_plain(entry) for entry in table.schema]))


def _plain(entry: pa.Field) -> pa.Field:
    kind = entry.type.value_type if pa.types.is_dictionary(entry.type) else entry.type
    if pa.types.is_timestamp(kind):
        # microseconds are the unit of both formats; columns with finer units are refused
        kind = pa.timestamp("us", kind.tz)
    return pa.field(entry.name, kind, entry.nullable)


def _written(tables: Iterator[pa.Table], folder: Path, name: str) -> Iterator[Path]:
    """Write records in their order to files of at most `RECORDS_PER_FILE` records each."""
    writer, room, number = None, 0, 0
    try:
        for table in tables:
            while len(table):
                if writer is None:
                    folder.mkdir(exist_ok=True)
                    path = folder / f"{name}-{number:05d}.parquet"
                    writer = pq.ParquetWriter(path, table.schema, store_schema=False)
                    room, number = RECORDS_PER_FILE, number + 1
                    yield path
                writer.write_table(table.slice(0, room))
                written = min(len(table), room)
                table, room = table.slice(written), room - written
                if not room:
                    writer.close()
                    writer = None
    finally:
        if writer is not None:
            writer.close()


def _manifest(public: Path, release_id: str) -> dict[str, Any]:
    what, remedy = f"manifest.json of release {release_id}", "Withdraw the release, and run its job again."
    return read_json(public / release_id / "manifest.json", what, remedy)
