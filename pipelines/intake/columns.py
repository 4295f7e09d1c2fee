"""Comparison of the columns of a file and their types with the variables that the specification declares.

A message shows names of columns only if the file plausibly has a header.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote

from microguard.pipelines.intake.faults import input_label
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.sections import Variable
from pyspark.sql import DataFrame
from pyspark.sql import types as t

#: Prefix of the columns that a run adds; no column of the input may have it.
RESERVED = "__"

_NUMERIC = (t.ByteType, t.ShortType, t.IntegerType, t.LongType, t.FloatType, t.DoubleType, t.DecimalType)
_NAMED = (t.StringType, t.ByteType, t.ShortType, t.IntegerType, t.LongType)
_NESTED: tuple[type[t.DataType], ...] = (t.ArrayType, t.MapType, t.StructType, t.NullType)
if hasattr(t, "VariantType"):  # Spark 3.5 has no such type
    _NESTED += (t.VariantType,)


def check_columns(columns: list[str], specification: Specification) -> None:
    """Compare the names of the columns with the variables that the specification declares.

    Names of the file are shown only if at least half of the declared variables are among them: otherwise the
    first line may be a record.

    Raises
    ------
    InputRejected
        If columns are missing, undeclared or reserved.
    """
    absent = [name for name in specification.variables if name not in columns]
    unknown = [
        name for name in columns if name not in specification.variables and not is_ignored(name, columns)
    ]
    if absent and 2 * len(absent) > len(specification.variables):
        raise InputRejected(
            f"{input_label(specification)}: found {len(columns)} columns, expected those of the "
            f"{len(specification.variables)} variables that the specification declares; "
            f"{len(specification.variables) - len(absent)} of them are among these columns. Check "
            "input.path and, for CSV, input.delimiter, input.encoding and whether the first line is a "
            "header."
        )
    faults = []
    if absent:
        derived = any(specification.variables[name].role == "derived" for name in absent)
        remedy = "write their names as in the file, or remove them from [variables]"
        remedy += "; a derived column is computed again, and must be in the file" if derived else ""
        faults.append(f"lacks the declared column(s) {_listed(absent)} ({remedy})")
    if unknown and specification.input.unmentioned == "fail":
        faults.append(
            f"has column(s) that the specification does not declare: {_listed(unknown)} (declare them, or "
            'set input.unmentioned to "drop")'
        )
    reserved = [name for name in columns if name in specification.variables and name.startswith(RESERVED)]
    if reserved:
        faults.append(
            f"has column(s) whose names begin with {RESERVED!r}, which are reserved: {_listed(reserved)} "
            "(rename them)"
        )
    if faults:
        raise InputRejected(f"{input_label(specification)} {'; and it '.join(faults)}.")


def is_ignored(name: str, columns: Sequence[str]) -> bool:
    """Return whether a column needs no declaration: the index of pandas, or the text after a final
    delimiter.
    """
    return re.fullmatch("__index_level_[0-9]+__", name) is not None or (name == "" and columns[-1] == "")


def check_types(frame: DataFrame, specification: Specification) -> None:
    """Compare the types of columns with the roles and kinds of their variables.

    Raises
    ------
    InputRejected
        With every column whose type does not fit.
    """
    faults, no_numbers = [], []
    for entry in frame.schema:
        variable = specification.variables[entry.name]
        if isinstance(entry.dataType, _NESTED):
            faults.append(f"{entry.name} is nested ({entry.dataType.typeName()})")
        elif (
            specification.input.format == "parquet"
            and is_number(variable)
            and variable.date is None
            and not isinstance(entry.dataType, _NUMERIC)
        ):
            faults.append(f"{entry.name} is declared numeric but has type {entry.dataType.simpleString()}")
            no_numbers.append(entry.name)
        elif (
            variable.kind in ("ordinal", "hierarchical")
            and variable.bands is None
            and not isinstance(entry.dataType, _NAMED)
        ):
            faults.append(
                f"{entry.name} is declared {variable.kind} but has type {entry.dataType.simpleString()}"
            )
        elif variable.costs is not None and variable.bands is None and not isinstance(entry.dataType, _NAMED):
            faults.append(f"{entry.name} has costs but has type {entry.dataType.simpleString()}")
    if faults:
        raise InputRejected(
            f"{input_label(specification)} has columns whose types do not fit: {'; '.join(faults)}. Change "
            f"the file, or kind and role in the specification.{_advice_on_folders(frame, no_numbers)}"
        )


def _advice_on_folders(frame: DataFrame, names: list[str]) -> str:
    """Return the remedy for columns that exist only in folder names; an empty text if there are none."""
    first = next(iter(frame.inputFiles()), "")
    named = [name for name in names if f"/{quote(name)}=" in first or f"/{name}=" in first]
    if not named:
        return ""
    return (
        f" Folder names are text, so that 007 and 7 differ ({_listed(named)}): write a column of numbers "
        "into the files instead."
    )


def is_number(variable: Variable) -> bool:
    """Return whether a variable's column must contain numbers; this includes variables whose bands are
    computed from numbers.
    """
    return variable.kind == "numeric" or variable.role in ("weight", "risk") or variable.bands is not None


def _listed(names: list[str], most: int = 10) -> str:
    shown = ", ".join(name or "a column without a name" for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
