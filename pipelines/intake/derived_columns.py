"""Derived columns, computed from the protected columns, and the count of records that contradict them."""

from __future__ import annotations

from operator import add, mul, sub, truediv

import pyarrow as pa
from microguard.pipelines.engine.column_names import column
from microguard.schemas.expressions import Call, Expression, Operation, Term
from microguard.schemas.specification.model import Specification
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_type

_OPERATIONS = {"+": add, "-": sub, "*": mul, "/": truediv}
_FUNCTIONS = {"log": f.log, "log10": f.log10, "exp": f.exp, "sqrt": f.sqrt, "abs": f.abs}


def with_derived(frame: DataFrame, specification: Specification, schema: pa.Schema) -> DataFrame:
    """Replace the derived columns by their expressions, evaluated on the other columns, in the types of the
    release.

    A value that cannot be computed (a logarithm of 0) is missing. Whole numbers are rounded half to even.

    Parameters
    ----------
    schema : pyarrow.Schema
        Types of the published columns.
    """
    for name, expression in specification.derived_expressions.items():
        frame = frame.withColumn(name, _typed(_value(expression), from_arrow_type(schema.field(name).type)))
    return frame


def contradictions(frame: DataFrame, specification: Specification, schema: pa.Schema) -> int:
    """Count the records whose derived columns differ from their expressions."""
    if not specification.derived:
        return 0
    differs = f.lit(False)
    for name, expression in specification.derived_expressions.items():
        expected = _typed(_value(expression), from_arrow_type(schema.field(name).type))
        differs = differs | ~column(name).eqNullSafe(expected)
    return frame.where(differs).count()


def _typed(value: Column, kind: t.DataType) -> Column:
    finite = f.when(f.abs(value) < float("inf"), value)
    if isinstance(kind, t.IntegralType):
        return f.rint(finite).try_cast(kind)
    # 0.0 and -0.0 are equal in Spark but differ in a file
    return f.when(finite == 0, f.lit(0.0)).otherwise(finite).try_cast(kind)


def _value(expression: Expression) -> Column:
    match expression:
        case Term(name):
            return column(name).try_cast("double")
        case Operation("/", one, other):
            below = _value(other)
            return _value(one) / f.when(below != 0, below)
        case Operation(sign, one, other):
            return _OPERATIONS[sign](_value(one), _value(other))
        case Call(function, of):
            return _FUNCTIONS[function](_value(of))
        case _:
            return f.lit(float(expression))
