"""Release written to the private staging folder, with only the published columns of the input."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.files import checksum, in_threads
from microguard.pipelines.engine.row_hash import HASH, summed, with_hash
from microguard.pipelines.intake.contract import Contract
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.record_files.batches import record_batches
from microguard.pipelines.publication.record_files.csv_file import CSV, csv_parts, write_csv
from microguard.pipelines.publication.record_files.partition_files import encoded, write_partitions
from microguard.pipelines.publication.staging.staging_area import StagingArea
from microguard.pipelines.publication.staging.task_frames import WrittenParts, write_in_tasks
from microguard.schemas.specification.consistency import FREQUENCY
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

RECORDS_PER_FILE = 500_000
#: Name of the folder that contains the records of a release.
RECORDS = "microdata"


@dataclass(frozen=True)
class StagedFiles:
    """Files of a release in a private folder, with their checksums at the time of writing.

    Attributes
    ----------
    checksums : mapping of file name to checksum
        Checksum of every file when it was written: only files with these checksums may be published.
    """

    release_id: str
    folder: Path
    checksums: Mapping[str, str]

    @classmethod
    def from_folder(
        cls, release_id: str, folder: Path, written: Mapping[str, str] = MappingProxyType({})
    ) -> StagedFiles:
        """Return all files in the folder, except hidden files that a task is still writing.

        Parameters
        ----------
        written : mapping of file name to checksum
            Checksums of files that were hashed while they were written; all other files are read for their
            checksums.
        """
        found = {path.relative_to(folder).as_posix() for path in folder.rglob("[!.]*") if path.is_file()}
        others = sorted(found - set(written))
        read = dict(zip(others, in_threads(checksum, [folder / name for name in others]), strict=True))
        return cls(release_id, folder, dict(sorted({**written, **read}.items())))


@dataclass(frozen=True)
class Staged:
    """Release that is staged but not verified yet.

    Attributes
    ----------
    files : StagedFiles
    contract : Contract
    content : (int, int)
        Number of records and sum of row hashes, computed before the records were written.
    place : StagingArea
        Area from which tasks read the records, under the name `RECORDS`.
    formulas : tuple of str
        Columns of the CSV file with text that a spreadsheet would run as a formula.
    csv_ends : tuple of int
        Positions in the CSV file where its parts end.
    schema : StructType or None
        Columns as Spark reads them; None to infer them from the files.
    """

    files: StagedFiles
    contract: Contract
    content: tuple[int, int]
    place: StagingArea
    formulas: tuple[str, ...] = ()
    csv_ends: tuple[int, ...] = ()
    schema: StructType | None = None

    @property
    def folder(self) -> Path:
        """Return the private folder of the staged release."""
        return self.files.folder

    @property
    def microdata(self) -> list[Path]:
        """Return the record files in order."""
        return record_files(self.folder)

    def records(self, spark: SparkSession) -> DataFrame:
        """Return a frame, read by tasks, with the columns of the contract."""
        frame = self.place.read(spark, RECORDS, self.schema)
        return frame.select([column(name) for name in self.contract.names])


def stage(
    frame: DataFrame,
    contract: Contract,
    tables: Mapping[tuple[str, ...], pa.Table],
    areas: Areas,
    release_id: str,
    records: int,
) -> Staged:
    """Write the protected records and tables to the staging folder of a release.

    Rows are distributed and ordered by a hash of the published row alone, so that their order discloses
    nothing about the input. Files have the types of the input but none of its metadata; their statistics and
    dictionaries are those of published values only.

    Parameters
    ----------
    frame : DataFrame
        Frame with exactly the published columns.
    contract : Contract
    tables : mapping of table to its cells
    areas : Areas
    release_id : str
    records : int
        Number of records of the frame; it determines the number of files.
    """
    folder = areas.work(release_id, "staging")
    shutil.rmtree(folder)
    folder = areas.work(release_id, "staging")
    columns = [column(name) for name in contract.names]
    published, place = frame.select(*columns), areas.staging_area(release_id, "staging")
    whole = contract.partition_by is None
    write = _write_files if whole else write_partitions
    written = write(place, published, RECORDS, contract, records, RECORDS_PER_FILE)
    hashed = {f"{RECORDS}/{part.path}": part.checksum for part in written.parts}
    place.fetch(RECORDS)
    _write_tables(tables, contract, folder / "tables")
    formulas: tuple[str, ...] = ()
    ends: tuple[int, ...] = ()
    if contract.csv:
        parts = [partial(record_batches, part, contract) for part in csv_parts(record_files(folder))]
        for_each = partial(place.for_each, frame.sparkSession)
        formulas, ends, hashed[CSV] = write_csv(folder / CSV, parts, contract.plain, for_each)
    handed_over = [json.loads(each) for each in written.texts]
    content = (sum(rows for rows, _ in handed_over), sum(total for _, total in handed_over))
    schema = None if whole else published.schema
    return Staged(
        StagedFiles.from_folder(release_id, folder, hashed), contract, content, place, formulas, ends, schema
    )


def record_files(folder: Path) -> list[Path]:
    """Return the record files of a release in order."""
    return sorted((folder / RECORDS).rglob("*.parquet"))


def _write_files(
    place: StagingArea, frame: DataFrame, name: str, contract: Contract, records: int, most: int
) -> WrittenParts:
    """Write files of at most about `most` records each; return the result of `_encode` for each file."""
    columns = [column(each) for each in contract.names]
    ordered = (
        with_hash(frame, contract.names)
        .repartition(max(1, math.ceil(records / most)), f.col(HASH))
        .sortWithinPartitions(HASH, *columns)
    )
    encode = partial(
        _encode,
        schema=contract.schema.serialize().to_pybytes(),
        categories={each: list(values) for each, values in contract.categories.items()},
    )
    return write_in_tasks(place, ordered, name, encode, frame.schema)


def _encode(
    batches: Iterable[pa.RecordBatch], schema: bytes, categories: Mapping[str, Sequence[Any]]
) -> Iterator[tuple[pa.Table, str]]:
    """Write the records of a file in a task with the types of the contract; return their number and
    hash sum.
    """
    records = list(batches)
    if records:
        table = pa.Table.from_batches(records)
        said = json.dumps([len(table), summed(table[HASH].to_numpy())])
        yield encoded(table, pa.ipc.read_schema(pa.py_buffer(schema)), categories), said


def _write_tables(tables: Mapping[tuple[str, ...], pa.Table], contract: Contract, folder: Path) -> None:
    """Write the cells of each table with the types of the records; dictionaries are decoded."""
    folder.mkdir()
    for table, name in zip(tables, table_files(list(tables)), strict=True):
        cells = tables[table]
        types = [contract.schema.field(variable).type for variable in table]
        plain = [each.value_type if pa.types.is_dictionary(each) else each for each in types]
        arrays = [cells[variable].cast(kind) for variable, kind in zip(table, plain, strict=True)]
        named = pa.table([*arrays, cells[FREQUENCY]], names=[*table, FREQUENCY])
        pq.write_table(named, folder / name)


def table_files(tables: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the file names of tables: a number, followed by as many variable names as fit into a
    file name.
    """
    names = []
    for position, table in enumerate(tables, start=1):
        readable = "_by_".join("".join(c if c.isalnum() else "_" for c in name) for name in table)
        names.append(f"{position:03d}_{readable[:120]}.parquet")
    return names
