"""What is wrong with a file, as a paragraph without any of its contents."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from microguard.pipelines.engine.failures import of_machines
from microguard.schemas.errors import InputRejected, SpecificationError
from microguard.schemas.specification.model import Specification
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException


@contextmanager
def translate_read_errors(specification: Specification) -> Iterator[None]:
    """Turn what Spark says about a file into a paragraph without any of its contents.

    Where machines failed and not the file, what Spark raised goes on to
    `pipelines.engine.failures.without_values_of_records`.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError, pa.ArrowException, OSError) as error:
        if of_machines(error):
            raise
        condition = _condition(error)
        if "CHARSET" in condition:
            raise SpecificationError(
                f"[input] encoding: found {specification.input.encoding!r}, allowed: an encoding that Java "
                "knows, such as utf-8, windows-1252 or iso-8859-1."
            ) from None
        raise InputRejected(_paragraph(condition, specification)) from None


def _condition(error: Exception) -> str:
    """Spark's name of what was wrong; none for a task, whose text holds the faulty line."""
    return (error.getCondition() or "") if isinstance(error, PySparkException) else ""


def _paragraph(condition: str, specification: Specification) -> str:
    name = input_label(specification)
    if "PATH_NOT_FOUND" in condition:
        return (
            f"{name} does not exist. Set input.path to a file, a directory or a glob; it is relative to the "
            "specification."
        )
    if "COLUMN_ALREADY_EXISTS" in condition:
        return f"{name} has two columns of the same name. Rename one of them in the file."
    if specification.input.format == "csv":
        return (
            f"{name} cannot be read as CSV: a line has another number of fields than the header, the files "
            "have different headers, or the encoding is another one. Check input.delimiter, input.encoding "
            "and the file's lines (a line break inside of a field is not supported)."
        )
    return (
        f"{name} cannot be read as Parquet: it is no Parquet file, is cut off, or its files differ in their "
        "columns. Check input.path and input.format."
    )


def input_label(specification: Specification) -> str:
    """The input as messages name it."""
    return f"The input {specification.input.path!r}"
