"""Records of a DataFrame (Spark, or a library that exports Arrow), written to files once.

Otherwise Spark would compute the plan of a frame again in each pass of a run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pyarrow as pa
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.intake.columns import check_columns
from microguard.pipelines.intake.faults import translate_read_errors
from microguard.pipelines.intake.read import Microdata, microdata_from_frame
from microguard.pipelines.intake.written_input import INPUT, PrivatePlace, write_down
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.model import Specification
from pyspark.sql import SparkSession


def is_spark_frame(frame: Any) -> bool:
    """Return whether a frame is a Spark DataFrame, classic or Connect."""
    return hasattr(frame, "sparkSession")


def write_frame(
    spark: SparkSession, frame: Any, specification: Specification, staging: PrivatePlace
) -> Microdata:
    """Write the declared columns of a frame, without identifiers, to files and return the records read from
    them.

    Parameters
    ----------
    frame : DataFrame of Spark, pandas or polars; Arrow table, batch or reader; DuckDB relation
        The frame, which is read once. The index of a pandas frame is not a column.
    staging : PrivatePlace
        The place for the files; the caller removes it.

    Raises
    ------
    InputRejected
        If it is none of these, lacks declared columns, or has a column that cannot be read.
    """
    records = frame if is_spark_frame(frame) else arrow_reader(frame)
    names = records.columns if is_spark_frame(frame) else records.schema.names
    check_columns(names, specification)
    needed = [
        name
        for name in names
        if name in specification.variables and specification.variables[name].role != "identifier"
    ]
    with translate_read_errors(specification):
        if is_spark_frame(frame):
            # the types of the frame are checked, because the written file may declare other types for the
            # same values
            microdata_from_frame(frame, specification)
            staging.write(frame.select([column(name) for name in needed]), INPUT)
            microdata = microdata_from_frame(staging.read(spark, INPUT), specification, names)
            return replace(microdata, private=True)
        chosen = pa.schema([records.schema.field(name) for name in needed])
        batches = (batch.select(needed) for batch in records)
        written = write_down(spark, pa.RecordBatchReader.from_batches(chosen, batches), staging)
    microdata = microdata_from_frame(written, specification, names, sorted(written.inputFiles()))
    return replace(microdata, private=True)


def arrow_reader(frame: Any) -> pa.RecordBatchReader:
    """Return a reader of the records of a frame that is not a Spark DataFrame.

    Raises
    ------
    InputRejected
        If the frame is of none of the libraries, or has two columns of one name.
    """
    if isinstance(frame, pd.DataFrame):
        if not frame.columns.is_unique:
            raise InputRejected(
                "The input: expected distinct column names, found two equal ones. Rename one of these "
                "columns."
            )
        try:
            return pa.Table.from_pandas(frame.rename(columns=str), preserve_index=False).to_reader()
        except (pa.ArrowException, OverflowError):
            raise InputRejected(
                "The input: expected one Arrow type for all values of a column, found several types or an "
                "unknown one. Convert each column to one type (text, number, boolean, date or time)."
            ) from None
    # a lazy polars frame must be computed first
    if hasattr(frame, "collect_schema") and hasattr(frame, "collect"):
        try:
            frame = frame.collect()
        except Exception as error:  # the text of the error is not shown, because it may quote a value
            raise InputRejected(
                f"The input is a lazy polars frame that cannot be computed ({type(error).__name__}). Call "
                "its collect() to see the cause, and pass the result."
            ) from None
    if not hasattr(frame, "__arrow_c_stream__"):
        raise InputRejected(
            "The input: expected a DataFrame of Spark, pandas or polars, an Arrow table, or a DuckDB "
            f"relation; found a {type(frame).__module__.split('.')[0]} {type(frame).__name__}. Convert it "
            "to one of these, or name the file by input.path and call microguard protect."
        )
    return pa.RecordBatchReader.from_stream(frame)
