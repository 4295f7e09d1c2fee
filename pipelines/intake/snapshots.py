"""Delta or Iceberg table, read as one snapshot by the library of its format.

The current snapshot is read, or the one that `input.version` or `input.timestamp` names. Deletion vectors,
position deletes, renamed columns and partition values are applied by delta-rs and pyiceberg.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from microguard.pipelines.engine.catalogs import answering, open_catalog, store_settings
from microguard.pipelines.intake.faults import input_label
from microguard.pipelines.intake.lake_tables import local_path, table_format
from microguard.schemas.errors import InputRejected, MicroguardError
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.sections import Input
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyiceberg.table import DataScan, Table

_METADATA = ".metadata.json"


@dataclass(frozen=True)
class Snapshot:
    """One snapshot of a table.

    Attributes
    ----------
    name : str
        Format and id, for the evidence: ``delta version 4``, ``iceberg snapshot 81...``.
    schema : pyarrow.Schema
        All columns, with the types that the table declares.
    files : list of str
        Addresses of its data files.
    batches : callable
        Function of names of columns: reads the records with these columns.
    """

    name: str
    schema: pa.Schema
    files: list[str]
    batches: Callable[[Sequence[str]], pa.RecordBatchReader]


def snapshot_of(specification: Specification, spark: SparkSession | None = None) -> Snapshot:
    """Return the snapshot that `input.path` names, or `input.table` in a catalogue.

    Parameters
    ----------
    spark : SparkSession, optional
        Needed for addresses with a scheme other than ``file``.

    Raises
    ------
    InputRejected
        If the table, its version or a feature of it cannot be read, or the input is no table.
    """
    catalog, table = specification.input_catalog, specification.input.table
    if catalog is not None and table is not None:
        found = _of_catalog(catalog, table, specification)
        with _readable("iceberg", specification):
            return _of_iceberg(found, specification)
    place = specification.input_path
    kind = table_format(place, spark)
    if kind is None:
        raise InputRejected(
            f"{input_label(specification)}: expected a Delta or Iceberg table, because only these have "
            "versions. Remove input.version and input.timestamp, or set input.path to the folder of the "
            "table."
        )
    address = local_path(place) or place.replace("s3a://", "s3://", 1)
    with _readable(kind, specification):
        return (_delta if kind == "delta" else _iceberg)(address, specification)


def current_snapshot(path: str) -> Snapshot:
    """Return the current snapshot of the table in a folder, for a caller without a specification.

    Raises
    ------
    InputRejected
    """
    return snapshot_of(Specification.model_construct(input=Input(path=path)))


def _of_catalog(catalog: str, name: str, specification: Specification) -> Table:
    from pyiceberg.exceptions import NoSuchTableError

    with answering("[input] catalog", catalog):
        try:
            return open_catalog(catalog).load_table(name)
        except NoSuchTableError:
            raise InputRejected(
                f"{input_label(specification)} does not exist in the catalogue of input.catalog. Set "
                "input.table to its namespace and name, such as statistics.persons."
            ) from None


def _delta(address: str, specification: Specification) -> Snapshot:
    from deltalake import DeltaTable

    table = DeltaTable(address, version=specification.input.version)
    if specification.input.timestamp is not None:
        _load_delta_at(table, specification)
    schema = pa.schema(table.schema().to_arrow())

    def batches(names: Sequence[str]) -> pa.RecordBatchReader:
        declared = pa.schema([schema.field(name) for name in names])
        with _readable("delta", specification):
            reader = pa.RecordBatchReader.from_stream(table.scan(columns=list(names)))
        return _as_declared(reader, declared, "delta", specification)

    return Snapshot(f"delta version {table.version()}", schema, table.file_uris(), batches)


def _load_delta_at(table: DeltaTable, specification: Specification) -> None:
    """Load the version that was current at `input.timestamp`.

    delta-rs compares the dates of the log files, which copying a table changes, and returns the first version
    for an earlier time. We therefore require that the times in the log lead to the same version.
    """
    moment, newest = _instant(specification), table.version()
    table.load_as_version(moment)
    times = [commit.get("timestamp", float("inf")) for commit in table.history()]
    later = sum(time > moment.timestamp() * 1000 for time in times)
    if later == len(times):
        raise _no_version(specification)
    if table.version() != newest - later:
        raise InputRejected(
            f"{input_label(specification)}: the times in the table's log and the dates of the log's files "
            "give different versions at input.timestamp, as happens if a table was copied. Set "
            "input.version instead."
        )


def _as_declared(
    reader: pa.RecordBatchReader, declared: pa.Schema, kind: str, specification: Specification
) -> pa.RecordBatchReader:
    """Return a reader whose columns have the types and the order that the table declares."""

    def batches() -> Iterator[pa.RecordBatch]:
        with _readable(kind, specification):
            for batch in reader:
                yield batch.select(declared.names).cast(declared)

    return pa.RecordBatchReader.from_batches(declared, batches())


def _iceberg(address: str, specification: Specification) -> Snapshot:
    from pyiceberg.table import StaticTable

    metadata = address if address.endswith(_METADATA) else _newest(address)
    return _of_iceberg(StaticTable.from_metadata(metadata, store_settings()), specification)


def _of_iceberg(table: Table, specification: Specification) -> Snapshot:
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    scan = _scan(table, specification)
    chosen = scan.snapshot()
    schema = schema_to_pyarrow(scan.projection(), include_field_ids=False)
    files = [] if chosen is None else [task.file.file_path for task in scan.plan_files()]

    def batches(names: Sequence[str]) -> pa.RecordBatchReader:
        declared = pa.schema([schema.field(name) for name in names])
        with _readable("iceberg", specification):
            reader = scan.select(*names).to_arrow_batch_reader()
        return _as_declared(reader, declared, "iceberg", specification)

    name = "without a snapshot" if chosen is None else f"snapshot {chosen.snapshot_id}"
    return Snapshot(f"iceberg {name}", schema, files, batches)


def _newest(folder: str) -> str:
    """Return the current metadata file of a table in a folder: the one in its version hint, otherwise the
    only one.

    A commit that failed may have left the file with the highest number.
    """
    from pyiceberg.io import load_file_io

    hint = load_file_io(store_settings(), folder).new_input(f"{folder}/metadata/version-hint.text")
    if hint.exists():
        return folder  # pyiceberg itself uses the hint
    here = local_path(folder)
    if here is None:
        raise _Ambiguous
    found = list(Path(here, "metadata").glob(f"*{_METADATA}"))
    if len(found) != 1:
        raise _Ambiguous
    return str(found[0])


class _Ambiguous(Exception):
    """Raised for an Iceberg table whose current metadata file is known only to a catalogue."""


def _scan(table: Table, specification: Specification) -> DataScan:
    source = specification.input
    if source.version is not None:
        if table.snapshot_by_id(source.version) is None:
            raise _no_version(specification)
        return table.scan(snapshot_id=source.version)
    if source.timestamp is not None:
        chosen = table.snapshot_as_of_timestamp(int(_instant(specification).timestamp() * 1000))
        if chosen is None:
            raise _no_version(specification)
        return table.scan(snapshot_id=chosen.snapshot_id)
    return table.scan()


def _instant(specification: Specification) -> datetime:
    moment = datetime.fromisoformat(str(specification.input.timestamp))
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _no_version(specification: Specification) -> InputRejected:
    named = "version" if specification.input.version is not None else "timestamp"
    return InputRejected(
        f"{input_label(specification)}: input.{named} names no existing snapshot; it never existed, or "
        "maintenance of the table removed it. Name another one, or remove the key to read the current "
        "snapshot."
    )


@contextmanager
def _readable(kind: str, specification: Specification) -> Iterator[None]:
    """Translate every error of the two libraries, because their texts may quote values of records."""
    try:
        yield
    except MicroguardError:
        raise
    except _Ambiguous:
        raise InputRejected(
            f"{input_label(specification)}: expected version-hint.text in the folder of the Iceberg table, "
            "found none; only its catalogue knows the current metadata file. Set input.path to that file "
            "(its name ends in .metadata.json)."
        ) from None
    except Exception as error:
        if kind == "delta" and specification.input.version is not None and "version" in str(error).lower():
            raise _no_version(specification) from None
        features = ": it has deletes by equality" if "equality" in str(error).lower() else ""
        raise InputRejected(
            f"{input_label(specification)} is {'a Delta' if kind == 'delta' else 'an Iceberg'} table that "
            f"cannot be read{features or f' ({type(error).__name__})'}. Its log or files are damaged, "
            "moved or need credentials, or it uses a feature that the library does not know. Export the "
            "snapshot to a folder of Parquet files with the engine that writes the table, and set input.path "
            "to that folder."
        ) from None
