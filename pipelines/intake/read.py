"""Read the microdata: only the columns the specification names, identifiers left out at the reader.

Types are kept as the file has them, unless a variable is recoded. CSV text stays as it is written ("007");
only numeric variables, bands and the weight become numbers. No message holds anything that stands in the
file, except names of columns, and these only where the file plausibly has a header.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from microguard.pipelines.engine.column_names import column
from microguard.pipelines.gate.agency_suite import AgencySuite, agency_suite
from microguard.pipelines.intake.column_types import SchemaConflict
from microguard.pipelines.intake.columns import check_columns, check_types
from microguard.pipelines.intake.contract import Contract, contract_from_files
from microguard.pipelines.intake.csv_files import read_csv
from microguard.pipelines.intake.faults import input_label, translate_read_errors
from microguard.pipelines.intake.lake_tables import local_path, refuse_lake_tables
from microguard.pipelines.intake.parquet_files import read_parquet
from microguard.pipelines.intake.recode import retyped
from microguard.pipelines.intake.typed import UNREADABLE, typed_values, with_recodes
from microguard.schemas.errors import InputRejected, SpecificationError
from microguard.schemas.specification.consistency import within
from microguard.schemas.specification.model import Specification
from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Microdata:
    """The original records as far as a run may know them.

    Attributes
    ----------
    frame : DataFrame
        Published columns in the order of the file, recoded, then those that are needed and never published
        (unit, household), then `UNREADABLE`.
    contract : Contract
        Names and types of the published columns: as in the file, unless recoding gave them another.
    files : int
        Files read.
    suite : AgencySuite or None
        What an agency expects of its records beside ourselves.
    originals : DataFrame or None
        Where there is a suite: all declared columns but identifiers, before any recoding; missing marks and
        codes are NULL, numbers of a CSV are numbers.
    raw : DataFrame
        Every column of the input that Spark can read, as it came.
    """

    frame: DataFrame
    contract: Contract
    files: int
    raw: DataFrame
    suite: AgencySuite | None = None
    originals: DataFrame | None = None

    @property
    def published(self) -> list[str]:
        """Published columns, in the order of the file."""
        return self.contract.names


def read(
    spark: SparkSession, specification: Specification, declared: Specification | None = None
) -> Microdata:
    """Read what the specification names.

    Parameters
    ----------
    declared : Specification, optional
        With the variables that the agency's suite may speak of, where the reader leaves some of them out.

    Raises
    ------
    InputRejected
        Where the file is absent, unreadable, or does not have the columns that are declared.
    SpecificationError
        Where the agency's suite cannot be judged, or records lie in the public area.
    """
    suite = agency_suite(declared or specification)
    with translate_read_errors(specification):
        refuse_lake_tables([specification.input_path], input_label(specification), spark)
        raw, names = (
            read_csv(spark, specification)
            if specification.input.format == "csv"
            else read_parquet(spark, specification)
        )
        files = sorted(raw.inputFiles())
        if not files:
            raise InputRejected(f"{input_label(specification)} has no files with records. Check input.path.")
        _refuse_public(files, specification)
        microdata = _microdata(raw, names, files, specification)
        return _with_suite(microdata, suite, raw, declared or specification)


def _refuse_public(files: list[str], specification: Specification) -> None:
    """Refuse original records that lie where readers look, by a glob or a link."""
    places = [local_path(file) or file for file in files]
    exposed = sum(within(place, specification.public_area) for place in places)
    if exposed:
        raise SpecificationError(
            f"[input] path: found {specification.input.path!r}, which reads {exposed} file(s) of the public "
            "area, allowed: a place outside the public area. Original records lie where readers look: move "
            "them, or choose another publish.path."
        )


def microdata_from_frame(frame: DataFrame, specification: Specification) -> Microdata:
    """Take the records of a frame in place of those of `input.path`; its types are those of the release.

    Raises
    ------
    InputRejected
        Where it does not have the columns that are declared.
    SpecificationError
        Where the agency's suite cannot be judged.
    """
    suite = agency_suite(specification)
    given = specification.input.model_copy(update={"format": "parquet"})  # typed, and empty text is a text
    typed = specification.model_copy(update={"input": given})
    with translate_read_errors(specification):
        return _with_suite(_microdata(frame, frame.columns, [], typed), suite, frame, typed)


def _microdata(
    raw: DataFrame, columns: list[str], files: list[str], specification: Specification
) -> Microdata:
    """Select what the specification names; `columns` also has names of columns that Spark cannot read."""
    check_columns(columns, specification)
    names = [
        name
        for name in raw.columns
        if name in specification.variables and specification.variables[name].role != "identifier"
    ]
    check_types(raw.select([column(name) for name in names]), specification)
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
    """With the suite, and the records that it is to judge."""
    if suite is None:
        return microdata
    named = [each for each in raw.columns if each in declared.variables and each not in declared.identifiers]
    return replace(microdata, suite=suite, originals=typed_values(raw, named, declared).drop(UNREADABLE))
