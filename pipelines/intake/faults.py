"""Translation of errors while reading a file into messages that contain none of its values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from microguard.pipelines.engine.failures import of_machines
from microguard.schemas.errors import InputRejected, SpecificationError
from microguard.schemas.specification.model import Specification
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

#: For each scheme of an address: the scheme that Spark's connector reads, and the connector's package.
_CONNECTORS = {
    "s3": ("s3a", "org.apache.hadoop:hadoop-aws"),
    "s3n": ("s3a", "org.apache.hadoop:hadoop-aws"),
    "s3a": ("s3a", "org.apache.hadoop:hadoop-aws"),
    "gs": ("gs", "com.google.cloud.bigdataoss:gcs-connector"),
    "abfs": ("abfs", "org.apache.hadoop:hadoop-azure"),
    "abfss": ("abfss", "org.apache.hadoop:hadoop-azure"),
    "wasbs": ("abfss", "org.apache.hadoop:hadoop-azure"),
}
#: Remedies by class of Java errors about a path that exists but cannot be opened.
_PATHS = {
    **dict.fromkeys(
        ("AccessControlException", "AccessDeniedException", "(Permission denied)"),
        "this user has no permission to read it. Grant the permission, or run as another user",
    ),
    "InvalidPathException": (
        "its path contains characters that Java cannot represent in the locale of this machine. Set LC_ALL "
        "to C.UTF-8, or rename the path"
    ),
}
#: Phrases in Hadoop's errors if a connector is missing; they contain the scheme or class, but no record.
_NO_CONNECTOR = ("No FileSystem for scheme", "ClassNotFoundException", "UNSUPPORTED_FILE_SYSTEM")


@contextmanager
def translate_read_errors(specification: Specification) -> Iterator[None]:
    """Translate Spark's error about a file into a paragraph that contains none of the file's values.

    An error that a failed machine caused is raised unchanged, and
    `pipelines.engine.failures.without_values_of_records` translates it.

    Raises
    ------
    InputRejected
        If the file is missing or cannot be read.
    SpecificationError
        If Java does not support the encoding.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError, pa.ArrowException, OSError) as error:
        if of_machines(error):
            raise
        condition = _condition(error)
        scheme = specification.input_path.partition("://")[0]
        if scheme in _CONNECTORS and any(sign in str(error) for sign in _NO_CONNECTOR):
            wanted, package = _CONNECTORS[scheme]
            raise InputRejected(
                f"{input_label(specification)}: expected a Spark with the connector for {scheme}://, found "
                f"none. Add the package {package} in the version of Spark's Hadoop (spark.jars.packages, or "
                f"Spark's folder jars) and write the address with {wanted}://, or copy the files to a "
                "folder."
            ) from None
        if "TABLE_OR_VIEW_NOT_FOUND" in condition:
            raise InputRejected(
                f"{input_label(specification)} does not exist in the catalogue of Spark. Set input.table to "
                "its full name, and configure the catalogue in Spark (spark.sql.catalog.<name>)."
            ) from None
        if "CHARSET" in condition:
            raise SpecificationError(
                "[input] encoding: expected an encoding that Java supports, found "
                f"{specification.input.encoding!r}. Use its Java name, such as utf-8, windows-1252 or "
                "iso-8859-1."
            ) from None
        for sign, remedy in _PATHS.items():
            if sign in str(error) or isinstance(error, PermissionError):
                raise InputRejected(f"{input_label(specification)} cannot be opened: {remedy}.") from None
        raise InputRejected(_paragraph(condition, specification)) from None


def _condition(error: Exception) -> str:
    """Return the name of Spark's error condition; the text is not used, because for a failed task it contains
    the faulty line.
    """
    return (error.getCondition() or "") if isinstance(error, PySparkException) else ""


def _paragraph(condition: str, specification: Specification) -> str:
    name = input_label(specification)
    if "PATH_NOT_FOUND" in condition:
        return (
            f"{name} does not exist. Set input.path to a file, a directory or a glob; the path is relative "
            "to the specification."
        )
    if "COLUMN_ALREADY_EXISTS" in condition:
        return (
            f"{name}: expected distinct column names, found two equal ones. Rename one of them in the file."
        )
    if specification.input.format == "csv":
        return (
            f"{name} cannot be read as CSV: a line has another number of fields than the header, the files "
            "have different headers, or input.encoding is not the encoding of the file. Check "
            "input.delimiter, input.encoding and the lines of the file (in a quoted field, a quotation "
            "mark is written twice, and a line break is not supported)."
        )
    return (
        f"{name} cannot be read as Parquet: it is not a Parquet file, is truncated, its files have "
        "different columns, or a time is outside of the years -290307 to 294246 of Spark. Check input.path, "
        "input.format and the times."
    )


def input_label(specification: Specification) -> str:
    """Return the name of the input for use in messages."""
    if specification.input.table is not None:
        return f"The input table {specification.input.table!r}"
    return f"The input {specification.input.path!r}"
