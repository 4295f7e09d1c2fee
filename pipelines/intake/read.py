"""Microdata read from the input: only the columns that the specification names, and no identifiers.

Columns keep the types of the file unless they are recoded. CSV text is not changed ("007" stays "007"); only
numeric variables, bands and the weight become numbers. Messages contain nothing of the file except names of
columns, and these only if the file plausibly has a header.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from microguard.pipelines.engine.column_names import column
from microguard.pipelines.gate.agency_suite import agency_suite
from microguard.pipelines.gate.expected import AgencySuite
from microguard.pipelines.intake.column_types import SchemaConflict
from microguard.pipelines.intake.columns import check_columns, check_types
from microguard.pipelines.intake.contract import Contract, contract_from_files
from microguard.pipelines.intake.faults import input_label, translate_read_errors
from microguard.pipelines.intake.folder_names import decode_folder_names
from microguard.pipelines.intake.lake_tables import local_path, refuse_lake_tables, table_format
from microguard.pipelines.intake.parquet_files import nanosecond_columns, read_parquet
from microguard.pipelines.intake.recode import retyped
from microguard.pipelines.intake.typed import UNREADABLE, typed_values, with_days, with_recodes
from microguard.schemas.errors import InputRejected, SpecificationError
from microguard.schemas.specification.consistency import within
from microguard.schemas.specification.model import Specification
from pyspark.sql import DataFrame, SparkSession

if TYPE_CHECKING:
    from microguard.pipelines.intake.written_input import PrivatePlace


@dataclass(frozen=True)
class Microdata:
    """Original records without identifiers, and the contract for publishing them.

    Attributes
    ----------
    frame : DataFrame
        Recoded published columns in the order of the file, then columns that are needed but never published
        (unit, household), then `UNREADABLE`.
    contract : Contract
        Names and types of the published columns: those of the file, unless recoding changed them.
    files : int
        Number of files read.
    suite : AgencySuite or None
        Expectations of the agency in addition to our requirements.
    originals : DataFrame or None
        If there is a suite: all declared columns but identifiers, before recoding. Missing marks and missing
        codes are NULL, and numbers of a CSV are parsed.
    raw : DataFrame
        Every column of the input that Spark can read, unchanged; of a table its declared columns.
    snapshot : str or None
        Format and id of the snapshot, if the input is a Delta or Iceberg table.
    private : bool
        Whether the records are read from private files of the run already.
    """

    frame: DataFrame
    contract: Contract
    files: int
    raw: DataFrame
    suite: AgencySuite | None = None
    originals: DataFrame | None = None
    snapshot: str | None = None
    private: bool = False

    @property
    def published(self) -> list[str]:
        """Return the published columns in the order of the file."""
        return self.contract.names


def read(
    spark: SparkSession,
    specification: Specification,
    staging: Callable[[], PrivatePlace] | None = None,
    declared: Specification | None = None,
) -> Microdata:
    """Read the columns of the input that the specification names.

    Parameters
    ----------
    staging : callable, optional
        Creates the private place of the run, to which the snapshot of a Delta or Iceberg table is written
        once; without one a table is refused.
    declared : Specification, optional
        Specification with all variables that the agency's suite may use, if `specification` has fewer.

    Raises
    ------
    InputRejected
        If the file is missing, unreadable, or lacks declared columns.
    SpecificationError
        If the agency's suite cannot be evaluated, or the input contains files of the public area.
    """
    declared = declared or specification
    suite = agency_suite(declared)
    with translate_read_errors(specification):
        if staging is not None and _names_table_of_spark(specification):
            microdata = _read_table_of_spark(spark, specification, declared, staging())
            return _with_suite(microdata, suite, microdata.raw, declared)
        if staging is not None and _names_snapshot(spark, specification):
            microdata = _read_snapshot(spark, specification, declared, staging())
            return _with_suite(microdata, suite, microdata.raw, declared)
        if specification.input.table is not None:
            raise InputRejected(
                f"{input_label(specification)}: expected a verb that reads tables of Spark's catalogue "
                "(protect, check), found another verb. Export the table to a folder of Parquet files, and "
                "set input.path to it."
            )
        refuse_lake_tables([specification.input_path], input_label(specification), spark)
        raw, names = (
            _read_csv(spark, specification)
            if specification.input.format == "csv"
            else read_parquet(spark, specification)
        )
        files = sorted(raw.inputFiles())
        if not files:
            raise InputRejected(f"{input_label(specification)} has no files with records. Check input.path.")
        _refuse_public(files, specification)
        raw = decode_folder_names(raw, files, specification.input_path, input_label(specification))
        microdata = _microdata(raw, names, files, specification)
        return _with_suite(microdata, suite, raw, declared)


def _read_csv(spark: SparkSession, specification: Specification) -> tuple[DataFrame, list[str]]:
    from microguard.pipelines.intake.csv_files import read_csv

    return read_csv(spark, specification)


def _names_table_of_spark(specification: Specification) -> bool:
    return specification.input.table is not None and specification.input.catalog is None


def _names_snapshot(spark: SparkSession, specification: Specification) -> bool:
    """Return whether the input is a Delta or Iceberg table, or the specification declares it to be one."""
    source = specification.input
    if source.format == "csv":  # other tables are refused when their files are listed
        return False
    named = source.table is not None or source.version is not None or source.timestamp is not None
    return named or table_format(specification.input_path, spark) is not None


def _read_snapshot(
    spark: SparkSession, specification: Specification, declared: Specification, staging: PrivatePlace
) -> Microdata:
    """Write the declared columns of a snapshot, without identifiers, to files and return the records read
    from them.
    """
    from microguard.pipelines.intake.snapshots import snapshot_of
    from microguard.pipelines.intake.written_input import INPUT, write_down

    snapshot = snapshot_of(specification, spark)
    names = snapshot.schema.names
    _refuse_public(snapshot.files, specification)
    check_columns(names, declared)
    needed = _needed(names, declared)
    # a later read in this run, of other columns or of a newer snapshot, must not replace these files
    content = hashlib.sha256(repr((snapshot.name, needed)).encode()).hexdigest()
    place = f"{INPUT}-{content[:8]}"
    raw = write_down(spark, snapshot.batches(needed), staging, place)
    microdata = _microdata(raw, names, sorted(raw.inputFiles()), specification)
    return replace(microdata, files=len(snapshot.files), snapshot=snapshot.name, private=True)


def _read_table_of_spark(
    spark: SparkSession, specification: Specification, declared: Specification, staging: PrivatePlace
) -> Microdata:
    """Write the declared columns of a table in Spark's catalogue to files and return the records read from
    them.
    """
    from microguard.pipelines.intake.written_input import INPUT

    source, reader = specification.input, spark.read
    for option, value in (("versionAsOf", source.version), ("timestampAsOf", source.timestamp)):
        if value is not None:
            reader = reader.option(option, value)
    frame = reader.table(str(source.table))
    _refuse_public(frame.inputFiles(), specification)
    names = frame.columns
    check_columns(names, declared)
    # every read writes its own files: the table may have changed since, and earlier frames still read theirs
    place = f"{INPUT}-{secrets.token_hex(4)}"
    staging.write(frame.select([column(name) for name in _needed(names, declared)]), place)
    microdata = _microdata(staging.read(spark, place), names, [], specification)
    version = "" if source.version is None else f", version {source.version}"
    return replace(microdata, snapshot=f"table {source.table} of Spark's catalogue{version}")


def _needed(names: Sequence[str], declared: Specification) -> list[str]:
    """Return those columns of a table that are written to files: the declared ones, without identifiers."""
    return [n for n in names if n in declared.variables and declared.variables[n].role != "identifier"]


def _refuse_public(files: list[str], specification: Specification) -> None:
    """Refuse an input path that reads files of the public area, directly or through a glob or a link."""
    places = [local_path(file) or file for file in files]
    exposed = sum(within(place, specification.public_area) for place in places)
    if exposed:
        raise SpecificationError(
            f"[input] path: expected a path outside the public area, found {specification.input.path!r}, "
            f"which reads {exposed} file(s) in it. Readers can open original records in this area: move "
            "them, or choose another publish.path."
        )


def microdata_from_frame(
    frame: DataFrame,
    specification: Specification,
    names: Sequence[str] | None = None,
    files: Sequence[str] = (),
) -> Microdata:
    """Return the records of a frame, used in place of `input.path`; the release has the types of the frame.

    Parameters
    ----------
    names : sequence of str, optional
        All columns of the input, if the frame has fewer.
    files : sequence of str
        The files that the frame reads, if they declare the types of its columns.

    Raises
    ------
    InputRejected
        If the frame lacks declared columns.
    SpecificationError
        If the agency's suite cannot be evaluated.
    """
    suite = agency_suite(specification)
    # a frame has types, like Parquet, so that an empty text in it is not a missing value
    source = specification.input.model_copy(update={"format": "parquet"})
    typed = specification.model_copy(update={"input": source})
    with translate_read_errors(specification):
        return _with_suite(
            _microdata(frame, list(names or frame.columns), list(files), typed), suite, frame, typed
        )


def _microdata(
    raw: DataFrame, columns: list[str], files: list[str], specification: Specification
) -> Microdata:
    """Select, type and recode the named columns; `columns` also includes columns that Spark cannot read."""
    check_columns(columns, specification)
    names = [
        name
        for name in raw.columns
        if name in specification.variables and specification.variables[name].role != "identifier"
    ]
    check_types(raw.select([column(name) for name in names]), specification)
    dates = [name for name in names if specification.variables[name].date is not None]
    if dates and specification.input.format == "parquet":
        raw = with_days(raw, nanosecond_columns(files, dates))
    frame = with_recodes(typed_values(raw, names, specification), specification)
    published = [name for name in names if name in specification.published]
    hidden = [name for name in names if name not in published]
    try:
        contract = contract_from_files(
            frame.select([column(name) for name in published]),
            files,
            bool(files) and specification.input.format == "parquet",
            retyped(specification),
            hidden,
        )
    except SchemaConflict as error:
        raise InputRejected(f"{input_label(specification)} {error}") from None
    ordered = frame.select(*[column(name) for name in [*published, *hidden]], UNREADABLE)
    return Microdata(ordered, contract, len(files), raw)


def _with_suite(
    microdata: Microdata, suite: AgencySuite | None, raw: DataFrame, declared: Specification
) -> Microdata:
    """Add the agency's suite, and the records on which it is evaluated."""
    if suite is None:
        return microdata
    named = [each for each in raw.columns if each in declared.variables and each not in declared.identifiers]
    originals = typed_values(raw, named, declared, as_written=True).drop(UNREADABLE)
    return replace(microdata, suite=suite, originals=originals)
